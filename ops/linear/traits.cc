#include "ops/traits.h"

#include "ops/linear/linear.h"

namespace oxbow {
namespace {

void set_output_scale(schema::StepT& step, float scale) {
  step.options.AsLinearOptions()->output_scale = scale;
}

// The step computes activation(x W + b) + residual, so an activation may follow directly, and an addition may follow
// that, never the other way round.
bool absorb(const schema::ModelT& model, schema::StepT& step, const schema::StepT& next,
            size_t input) {
  schema::LinearOptionsT& o = *step.options.AsLinearOptions();
  if (o.has_residual) return false;
  if (next.op == schema::OpCode::Activate) {
    if (o.activation != schema::Activation::None) return false;
    o.activation = next.options.AsActivateOptions()->activation;
    o.limit = next.options.AsActivateOptions()->limit;
    return true;
  }
  if (next.op == schema::OpCode::Add) {
    const uint32_t residual = next.inputs[1 - input];
    const schema::TensorT &a = *model.tensors[step.outputs[0]], &b = *model.tensors[residual];
    if (a.width != b.width || a.rows_symbol != b.rows_symbol || a.rows != b.rows) return false;
    o.has_residual = true;
    step.inputs.push_back(residual);
    return true;
  }
  return false;
}

/// Rows of the matrix, where nothing is between it and the output that sees more than signs.
std::vector<std::vector<ScaledInput>> scaled_by(const schema::StepT& step) {
  const schema::LinearOptionsT& o = *step.options.AsLinearOptions();
  const bool linear =
      o.activation == schema::Activation::None || o.activation == schema::Activation::Relu;
  if (!linear || o.has_residual) return {};
  std::vector<ScaledInput> all = {{1, ScaledInput::kRows}};
  if (o.has_bias) all.push_back({2, ScaledInput::kColumns});
  return {all};
}

bool drop_bias(schema::StepT& step) {
  schema::LinearOptionsT& o = *step.options.AsLinearOptions();
  if (!o.has_bias || o.has_residual || o.activation != schema::Activation::None) return false;
  o.has_bias = false;
  step.inputs.resize(2);
  return true;
}

double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const schema::TensorT& weight = *model.tensors[step.inputs[1]];
  return static_cast<double>(weight.rows) * weight.width;
}

std::string options(const schema::StepT& step) {
  const schema::LinearOptionsT& o = *step.options.AsLinearOptions();
  return in_words({o.has_bias ? "bias" : "",
                   o.activation == schema::Activation::None
                       ? ""
                       : in_lower_case(schema::EnumNameActivation(o.activation)),
                   o.has_residual ? "residual" : ""});
}

}  // namespace

extern const OpTraits linear_traits;
const OpTraits linear_traits = {
    .code = schema::OpCode::Linear,
    .signature = &kLinearSignature,
    .category = OpCategory::kMatrix,
    .multiplied_input = 0,
    .set_output_scale = set_output_scale,
    .absorb = absorb,
    .scaled_by = scaled_by,
    .drop_bias = drop_bias,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
