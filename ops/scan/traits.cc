#include "ops/traits.h"

#include "ops/scan/scan.h"

namespace oxbow {
namespace {

/// For each channel: a step of the selective rule has a product for every row of its state on both sides.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const double width = model.tensors[step.inputs[0]]->width;
  const bool selective = step.options.AsScanOptions()->rule == schema::ScanRule::Selective;
  return width * (selective ? 2.0 * model.tensors[step.inputs[2]]->width : 1.0);
}

std::string options(const schema::StepT& step) {
  const schema::ScanOptionsT& o = *step.options.AsScanOptions();
  return in_words({in_lower_case(schema::EnumNameScanRule(o.rule)),
                   o.window > 1 ? counted(o.window, "rows") : ""});
}

}  // namespace

extern const OpTraits scan_traits;
const OpTraits scan_traits = {
    .code = schema::OpCode::Scan,
    .signature = &kScanSignature,
    .category = OpCategory::kMemory,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
