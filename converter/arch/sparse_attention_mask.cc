// One attention with a pattern of OpenAI's Sparse Transformer (sparse_attention/attention.py): no
// weights, queries, keys and values are inputs. Numbers that its assertions refuse are refused.

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct SparseAttention {
  uint32_t length, heads, head_width;
  schema::PatternT pattern;
};

schema::PatternT fixed(const Checkpoint& checkpoint, uint32_t heads, uint32_t context,
                       uint32_t block) {
  const uint32_t sets = checkpoint.size("num_verts", 1, heads, 4);
  const uint32_t blocks = context / block;
  const uint32_t size = checkpoint.size("vertsize", 1, kMaxSize, 1);
  require_multiple(checkpoint, "heads", heads, "num_verts", sets);
  require_multiple(checkpoint, "local_attn_ctx / blocksize", blocks, "vertsize", size);
  if (blocks == 0 || uint64_t{sets} * size > blocks) {
    checkpoint.refuse("num_verts * vertsize is " + std::to_string(uint64_t{sets} * size) +
                      ", expected at most " + std::to_string(blocks) +
                      ": local_attn_ctx / blocksize");
  }
  schema::PatternT pattern;
  pattern.kind = schema::PatternKind::Fixed;
  pattern.length = blocks * block;
  pattern.summary = size * block;
  pattern.summary_sets = sets;
  return pattern;
}

schema::PatternT read_pattern(const Checkpoint& checkpoint, uint32_t length, uint32_t heads) {
  const std::string mode = checkpoint.choice("attn_mode", "", {"all", "local", "strided", "fixed"});
  if (mode.empty()) checkpoint.refuse("key attn_mode is missing");
  const uint32_t block = checkpoint.size("blocksize", 1, length, 32);
  require_multiple(checkpoint, "n", length, "blocksize", block);
  schema::PatternT pattern;
  // Only `fixed` has the columns that these describe.
  if (mode != "fixed") checkpoint.ignore_keys({"num_verts", "vertsize"});
  if (mode == "all") {
    checkpoint.ignore_keys({"local_attn_ctx"});
    return pattern;
  }
  const uint32_t context = checkpoint.size("local_attn_ctx", 1, kMaxSize);
  if (mode == "fixed") return fixed(checkpoint, heads, context, block);
  if (mode == "local") {
    require_multiple(checkpoint, "local_attn_ctx", context, "blocksize", block);
    pattern.kind = schema::PatternKind::Window;
    pattern.before = context - 1;
    pattern.causal = true;
    return pattern;
  }
  require_multiple(checkpoint, "n", length, "local_attn_ctx", context);
  require_multiple(checkpoint, "n / local_attn_ctx", length / context, "blocksize", block);
  pattern.kind = schema::PatternKind::Strided;
  pattern.length = context;
  return pattern;
}

SparseAttention read(const Checkpoint& checkpoint) {
  SparseAttention config;
  config.length = checkpoint.size("n", 1, kMaxSize);
  config.heads = checkpoint.size("heads", 1, 4096);
  config.head_width = checkpoint.size("head_dim", 1, 4096);
  config.pattern = read_pattern(checkpoint, config.length, config.heads);
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_sparse_attention_mask(const Checkpoint& checkpoint, const ImportOptions& options,
                                  Graph& graph) {
  const SparseAttention config = read(checkpoint);
  const uint32_t width = config.heads * config.head_width;
  GraphBuilder builder(graph);
  GraphBuilder::Entry entry;
  entry.name = "encode";
  entry.tokens = "query";
  entry.float_width = width;
  entry.max_segment = options.max_segment != 0 ? options.max_segment : config.length;
  entry.starts = true;
  builder.begin_entry(entry);

  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = config.heads;
  attention.scale = attention_scale(config.head_width);
  attention.pattern = config.pattern;
  const uint32_t key = builder.float_input("key", width);
  attention.sources = {{key, builder.float_input("value", width)}};
  builder.output("output", builder.attention("attended", builder.tokens(), attention));
  graph.model.task = schema::Task::Encode;
  write_metadata(checkpoint, graph,
                 {{"head_dim", config.head_width}, {"heads", config.heads}, {"n", config.length}});
}

}  // namespace oxbow::convert
