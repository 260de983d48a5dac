#include "ops/common/vulkan_rows.h"
#include "ops/embedding/embedding.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(embedding);

Status bind_embedding_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_EmbeddingOptions();
  // Whether such a table has all the ids shows in the data alone, and a shader cannot fail. Ids are below
  // the end of every other table.
  if (options.first() != 0 && !options.partial()) return Status::kOk;
  const Tensor table = context.input(1);
  const bool i8 = table.type == DataType::kI8;
  if (table.layout != Layout::kRowMajor || options.turned() != 0) return Status::kOk;
  if (!i8 && table.type != DataType::kF32) return Status::kOk;
  return bind_elements(
      context, shader_embedding, {context.in(0), context.in(1), context.out(0)},
      {table.width, table.rows, std::bit_cast<uint32_t>(options.scale()), options.first(),
       i8 ? static_cast<uint32_t>(table.stride() / 4) : 0, scale_word(table)});
}

}  // namespace oxbow
