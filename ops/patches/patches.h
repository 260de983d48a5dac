#pragma once

// Cuts an image, or anything else that lies on a grid, into patches, each a row: what is left of a convolution is a
// linear step. Patches may overlap; what is outside of the image is zeros. See schema::PatchesOptions for the order
// of elements.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

struct PatchGrid {
  size_t channels = 0, height = 0, width = 0;
  size_t patch_height = 0, patch_width = 0;
  size_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0;
  bool planar = false;

  size_t across() const { return (width + 2 * pad_x - patch_width) / stride_x + 1; }
  size_t down() const { return (height + 2 * pad_y - patch_height) / stride_y + 1; }
};

/// Patch number `patch` of the image x.
void patches_f32_f32_ref(const float* x, const PatchGrid& grid, size_t patch, float* y);

extern const OpSignature kPatchesSignature;
Status bind_patches(BindContext& context, RunFunction* run);

}  // namespace oxbow
