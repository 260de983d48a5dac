#include "ops/common/vulkan_rows.h"
#include "ops/slice_columns/slice_columns.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(copy_columns);

Status bind_slice_columns_vulkan(VulkanBindContext& context) {
  const uint32_t first = context.step().options_as_SliceColumnsOptions()->first();
  const uint32_t width = context.output(0).width;
  return bind_elements(context, shader_copy_columns, {context.in(0), context.out(0)},
                       {width, context.input(0).width, first, width, 0});
}

}  // namespace oxbow
