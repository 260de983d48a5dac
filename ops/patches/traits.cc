#include "ops/traits.h"

#include "ops/patches/patches.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::PatchesOptionsT& o = *step.options.AsPatchesOptions();
  const auto size = [](uint32_t height, uint32_t width) {
    return std::to_string(height) + " x " + std::to_string(width);
  };
  return in_words({counted(o.channels, "channels"), size(o.height, o.width),
                   "patches of " + size(o.patch_height, o.patch_width)});
}

}  // namespace

extern const OpTraits patches_traits;
const OpTraits patches_traits = {
    .code = schema::OpCode::Patches,
    .signature = &kPatchesSignature,
    .category = OpCategory::kEmbedding,
    .needs_all_rows = true,
    .options = options,
};

}  // namespace oxbow
