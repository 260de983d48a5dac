#include "converter/formats/gguf_model.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "converter/formats/gguf_keys.h"
#include "converter/formats/gguf_rope.h"
#include "converter/formats/limits.h"
#include "host/errors.h"
#include "host/folder.h"

namespace oxbow::convert {
namespace {

/// How llama.cpp's converter has laid out a tensor.
enum class Layout : uint8_t {
  kSame,
  /// The other way round.
  kTransposed,
  /// The rows of each head: those of a rotated pair side by side, instead of half a head apart.
  kQueryPairs,
  kKeyPairs,
};

struct Renamed {
  std::string_view from;
  std::string_view to;
  Layout layout = Layout::kSame;
  bool required = true;
};

/// What an architecture calls its tensors; those of a layer without "blk.N." and `layer` + "N.".
struct Architecture {
  const char* name;
  std::span<const Renamed> outer;
  const char* layer;
  std::span<const Renamed> inner;
};

constexpr const char* kWords = "token_embd.weight";
constexpr const char* kHead = "output.weight";
constexpr const char* kRopeFactors = "rope_freqs.weight";

constexpr Renamed kGpt2Outer[] = {
    {kWords, "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {kHead, "lm_head.weight", Layout::kSame, false},
};
constexpr Renamed kGpt2Inner[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Layout::kTransposed},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Layout::kTransposed},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Layout::kTransposed},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Layout::kTransposed},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};
constexpr Architecture kGpt2 = {"gpt2", kGpt2Outer, "transformer.h.", kGpt2Inner};

constexpr Renamed kLlamaOuter[] = {
    {kWords, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {kHead, "lm_head.weight", Layout::kSame, false},
};
constexpr Renamed kLlamaInner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Layout::kQueryPairs},
    {"attn_q.bias", "self_attn.q_proj.bias", Layout::kQueryPairs, false},
    {"attn_k.weight", "self_attn.k_proj.weight", Layout::kKeyPairs},
    {"attn_k.bias", "self_attn.k_proj.bias", Layout::kKeyPairs, false},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias", Layout::kSame, false},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias", Layout::kSame, false},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_gate.bias", "mlp.gate_proj.bias", Layout::kSame, false},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_up.bias", "mlp.up_proj.bias", Layout::kSame, false},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_down.bias", "mlp.down_proj.bias", Layout::kSame, false},
};
constexpr Architecture kLlama = {"llama", kLlamaOuter, "model.layers.", kLlamaInner};

/// Sizes that both the configuration and the layout of tensors depend on.
struct Sizes {
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
};

[[noreturn]] void fail_tensor(const Gguf& gguf, const std::string& name, const std::string& what) {
  throw InputError(gguf.path() + ": tensor " + printable(name) + " " + what);
}

const StoredTensor& tensor_of(const Gguf& gguf, const std::string& name) {
  const auto found = gguf.tensors().find(name);
  if (found == gguf.tensors().end()) fail_tensor(gguf, name, "is missing");
  return found->second;
}

StoredTensor with_layout(const Gguf& gguf, const std::string& name, StoredTensor tensor,
                         Layout layout, const Sizes& sizes) {
  if (layout == Layout::kSame) return tensor;
  if (layout == Layout::kTransposed) {
    if (tensor.shape.size() != 2) {
      fail_tensor(gguf, name, "is " + tensor.describe() + ", expected a matrix");
    }
    const uint64_t rows = tensor.shape[0], width = tensor.shape[1];
    tensor.shape = {width, rows};
    tensor.strides = {1, width};
    return tensor;
  }
  const uint64_t heads = layout == Layout::kQueryPairs ? sizes.heads : sizes.kv_heads;
  const uint64_t rows = tensor.shape[0];
  if (rows % (2 * heads) != 0) {
    fail_tensor(gguf, name,
                "is " + tensor.describe() + ", expected pairs of rows for each of " +
                    std::to_string(heads) + " heads");
  }
  const uint64_t width = tensor.count / rows, pairs = rows / heads / 2;
  tensor.stride_shape = {heads, 2, pairs, width};
  tensor.strides = {2 * pairs * width, width, 2 * width, 1};
  return tensor;
}

/// "blk.7.attn_q.weight" is tensor "attn_q.weight" of layer 7; nothing for other names.
struct LayerName {
  uint64_t layer;
  std::string_view name;
};
std::optional<LayerName> split_layer(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return std::nullopt;
  const char *begin = name.data() + kBlock.size(), *end = name.data() + name.size();
  uint64_t layer = 0;
  const auto [rest, error] = std::from_chars(begin, end, layer);
  if (error != std::errc() || rest == end || *rest != '.') return std::nullopt;
  // Each layer has one name only.
  if (std::string_view(begin, rest) != std::to_string(layer)) return std::nullopt;
  return LayerName{layer, std::string_view(rest + 1, end)};
}

const Renamed* find_name(std::span<const Renamed> list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Renamed& row) { return row.from == name; });
  return found == list.end() ? nullptr : &*found;
}

TensorMap rename(const Gguf& gguf, const Architecture& architecture, const Sizes& sizes) {
  TensorMap out;
  std::string unknown;
  for (const auto& [name, tensor] : gguf.tensors()) {
    const std::optional<LayerName> split = split_layer(name);
    const Renamed* row =
        split ? find_name(architecture.inner, split->name) : find_name(architecture.outer, name);
    if (row == nullptr || (split && split->layer >= sizes.layers)) {
      // It is part of the configuration; see rope_config().
      if (name != kRopeFactors) unknown += (unknown.empty() ? "" : ", ") + printable(name);
      continue;
    }
    const std::string prefix =
        split ? architecture.layer + std::to_string(split->layer) + "." : std::string();
    out.emplace(prefix + std::string(row->to), with_layout(gguf, name, tensor, row->layout, sizes));
  }
  if (!unknown.empty()) {
    throw InputError(gguf.path() + ": tensors that " + architecture.name + " with " +
                     std::to_string(sizes.layers) +
                     " layers does not know: " + printable(unknown, 400));
  }
  // By the names that the file should have used; the rest is up to the importer.
  for (const Renamed& row : architecture.outer) {
    if (row.required) tensor_of(gguf, std::string(row.from));
  }
  for (uint32_t i = 0; i < sizes.layers; ++i) {
    for (const Renamed& row : architecture.inner) {
      if (row.required) tensor_of(gguf, "blk." + std::to_string(i) + "." + std::string(row.from));
    }
  }
  return out;
}

/// Converters of the past wrote the same matrix twice.
bool is_tied(const Gguf& gguf) {
  if (!gguf.tensors().contains(kHead)) return true;
  const StoredTensor &words = tensor_of(gguf, kWords), &head = tensor_of(gguf, kHead);
  return words.dtype == head.dtype && words.shape == head.shape &&
         std::equal(words.bytes.begin(), words.bytes.end(), head.bytes.begin(), head.bytes.end());
}

/// What configurations of all models say.
nlohmann::json common_config(const Gguf& gguf, const char* model_type, const GgufKeys& keys) {
  nlohmann::json config = {{"model_type", model_type}};
  const uint64_t rows = tensor_of(gguf, kWords).shape[0];
  config["vocab_size"] = rows;
  if (keys.has("vocab_size") && keys.size("vocab_size", 1, kMaxSize) != rows) {
    keys.fail("vocab_size", std::to_string(rows) + ", the rows of " + kWords);
  }
  config["tie_word_embeddings"] = is_tied(gguf);
  const std::pair<const char*, const char*> kTokens[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},
  };
  for (const auto& [name, key] : kTokens) {
    const std::optional<uint64_t> id = gguf.integer(key);
    // -1 in 32 bits, and what else is no token: none.
    if (id && *id <= INT32_MAX) config[name] = *id;
  }
  if (const std::optional<std::string> licence = gguf.text("general.license")) {
    config["license"] = *licence;
  }
  // Of old files, about what is done to the layout in any case.
  const std::string layout = keys.text("tensor_data_layout", "");
  if (!layout.empty() && layout != "Meta AI original pth") {
    keys.fail("tensor_data_layout", "Meta AI original pth");
  }
  return config;
}

HuggingFaceModel read_gpt2(const Gguf& gguf) {
  const GgufKeys keys(gguf, "gpt2");
  Sizes sizes;
  sizes.layers = keys.size("block_count", 1, kMaxLayers);
  sizes.heads = sizes.kv_heads = keys.size("attention.head_count", 1, kMaxSize);
  keys.require_size("attention.head_count_kv", sizes.heads, "as many as heads");
  nlohmann::json config = common_config(gguf, "gpt2", keys);
  config["n_layer"] = sizes.layers;
  config["n_head"] = sizes.heads;
  config["n_positions"] = keys.size("context_length", 1, kMaxSize);
  config["n_embd"] = keys.size("embedding_length", 1, kMaxSize);
  config["n_inner"] = keys.size("feed_forward_length", 1, kMaxSize);
  config["layer_norm_epsilon"] = keys.number("attention.layer_norm_epsilon");
  keys.finish();
  return {std::move(config), rename(gguf, kGpt2, sizes)};
}

HuggingFaceModel read_llama(const Gguf& gguf) {
  const GgufKeys keys(gguf, "llama");
  Sizes sizes;
  sizes.layers = keys.size("block_count", 1, kMaxLayers);
  sizes.heads = keys.size("attention.head_count", 1, kMaxSize);
  sizes.kv_heads = keys.size("attention.head_count_kv", 1, sizes.heads, sizes.heads);
  nlohmann::json config = common_config(gguf, "llama", keys);
  const uint32_t width = keys.size("embedding_length", 1, kMaxSize);
  const uint32_t head_width = keys.size("attention.key_length", 2, kMaxSize, width / sizes.heads);
  keys.require_size("attention.value_length", head_width, "the width of a key");
  keys.require_size("rope.dimension_count", head_width,
                    "the width of a head: rotary positions of a part of it are not supported");
  config["num_hidden_layers"] = sizes.layers;
  config["num_attention_heads"] = sizes.heads;
  config["num_key_value_heads"] = sizes.kv_heads;
  config["hidden_size"] = width;
  if (keys.has("attention.key_length")) config["head_dim"] = head_width;
  config["max_position_embeddings"] = keys.size("context_length", 1, kMaxSize);
  config["intermediate_size"] = keys.size("feed_forward_length", 1, kMaxSize);
  config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon");
  config["attention_bias"] = gguf.tensors().contains("blk.0.attn_q.bias");
  config["mlp_bias"] = gguf.tensors().contains("blk.0.ffn_gate.bias");
  config.update(rope_config(gguf, keys, head_width));
  keys.finish();
  return {std::move(config), rename(gguf, kLlama, sizes)};
}

/// Files that are not one whole model.
void refuse_parts(const Gguf& gguf) {
  const std::string type = gguf.text("general.type").value_or("model");
  if (type != "model") {
    gguf.fail("general.type", "a model; a file of another kind is none by itself");
  }
  if (gguf.integer("split.count").value_or(1) > 1) {
    gguf.fail("split.count",
              "the whole model in one file; join the parts with llama-gguf-split --merge");
  }
  const auto is_block = [](const auto& entry) { return dtype_block(entry.second.dtype) > 1; };
  constexpr uint64_t kVersion = 2;
  if (gguf.integer("general.quantization_version").value_or(kVersion) != kVersion &&
      std::any_of(gguf.tensors().begin(), gguf.tensors().end(), is_block)) {
    gguf.fail("general.quantization_version", "2, today's layout of blocks");
  }
}

}  // namespace

HuggingFaceModel to_hugging_face(const Gguf& gguf) {
  const std::optional<std::string> architecture = gguf.text("general.architecture");
  if (!architecture) gguf.fail("general.architecture", "gpt2 or llama");
  refuse_parts(gguf);
  if (*architecture == "gpt2") return read_gpt2(gguf);
  if (*architecture == "llama") return read_llama(gguf);
  throw InputError(gguf.path() + ": general.architecture " + printable(*architecture, 80) +
                   " is not supported, supported: gpt2, llama");
}

GgufFile::GgufFile(const std::string& path) : TensorFile(path), gguf_(path, file_bytes()) {
  HuggingFaceModel model = to_hugging_face(gguf_);
  tensors_ = std::move(model.tensors);
  config_ = std::move(model.config);
}

std::string find_gguf(const std::string& path) {
  constexpr std::string_view kEnding = ".gguf";
  if (is_file(path)) return path;
  std::vector<std::string> found;
  for (const std::string& name : names_in(path)) {
    for (const char* other : {".safetensors", ".bin", ".pt", ".pth", ".ckpt"}) {
      if (name.ends_with(other)) return "";
    }
    if (name.ends_with(kEnding)) found.push_back(name);
  }
  if (found.size() > 1) {
    throw InputError(path + " has " + std::to_string(found.size()) + " GGUF files, " +
                     printable(found[0]) + " and others; give the one to convert instead of " +
                     "the directory");
  }
  return found.empty() ? "" : path + "/" + found[0];
}

}  // namespace oxbow::convert
