#include "ops/common/vulkan_rows.h"
#include "ops/pool/pool.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(pool);

Status bind_pool_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_PoolOptions();
  return bind_elements(context, shader_pool, {context.in(0), context.out(0)},
                       {context.output(0).width, options.group(),
                        options.pooling() == schema::Pooling::Mean, options.neighbours()});
}

}  // namespace oxbow
