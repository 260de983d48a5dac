#include "converter/formats/gguf_config.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/formats/gguf_keys.h"
#include "converter/formats/gguf_rope.h"
#include "converter/formats/limits.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

/// Converters of the past wrote the same matrix twice.
bool is_tied(const Gguf& gguf) {
  const std::string name(kGgufHead);
  if (!gguf.tensors().contains(name)) return true;
  const StoredTensor &words = gguf_tensor(gguf, std::string(kGgufWords)),
                     &head = gguf_tensor(gguf, name);
  return words.dtype == head.dtype && words.shape == head.shape &&
         std::equal(words.bytes.begin(), words.bytes.end(), head.bytes.begin(), head.bytes.end());
}

/// What configurations of all models say.
json common_config(const Gguf& gguf, const char* model_type, const GgufKeys& keys) {
  json config = {{"model_type", model_type}};
  const std::string words(kGgufWords);
  const uint64_t rows = gguf_tensor(gguf, words).shape[0];
  config["vocab_size"] = rows;
  if (keys.has("vocab_size") && keys.size("vocab_size", 1, kMaxSize) != rows) {
    keys.fail("vocab_size", std::to_string(rows) + ", the rows of " + words);
  }
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

/// What is read of one file; each function below makes the configuration of an architecture.
class Reader {
 public:
  Reader(const Gguf& from, const std::string& architecture, const char* model_type)
      : gguf(from), keys(from, architecture), config(common_config(from, model_type, keys)) {
    sizes.layers = size("block_count", kMaxLayers);
  }

  uint32_t size(const char* key, uint32_t max = kMaxSize) const { return keys.size(key, 1, max); }
  bool has_tensor(const char* name) const { return gguf.tensors().contains(name); }

  void read_heads() {
    sizes.heads = size("attention.head_count");
    sizes.kv_heads = keys.size("attention.head_count_kv", 1, sizes.heads, sizes.heads);
  }
  /// As many of keys and values as of queries.
  void read_equal_heads() {
    sizes.heads = sizes.kv_heads = size("attention.head_count");
    keys.require_size("attention.head_count_kv", sizes.heads, "as many as heads");
  }

  /// Sizes by the names that most models have, and the width of a head.
  uint32_t read_decoder() {
    config["tie_word_embeddings"] = is_tied(gguf);
    config["num_hidden_layers"] = sizes.layers;
    config["num_attention_heads"] = sizes.heads;
    config["num_key_value_heads"] = sizes.kv_heads;
    const uint32_t width = size("embedding_length");
    config["hidden_size"] = width;
    config["max_position_embeddings"] = size("context_length");
    config["intermediate_size"] = size("feed_forward_length");
    const uint32_t head_width = keys.size("attention.key_length", 2, kMaxSize, width / sizes.heads);
    keys.require_size("attention.value_length", head_width, "the width of a key");
    return head_width;
  }
  /// The part of a head that is turned, as a fraction.
  double turned_part(uint32_t head_width) const {
    const uint32_t turned = keys.size("rope.dimension_count", 1, head_width, head_width);
    // So that the width, times this and rounded down, is it again.
    return turned == head_width ? 1 : (turned + 0.5) / head_width;
  }
  void require_whole_turns(uint32_t head_width) const {
    keys.require_size("rope.dimension_count", head_width,
                      "the width of a head: rotary positions of a part of it are not supported");
  }

  const Gguf& gguf;
  const GgufKeys keys;
  json config;
  GgufSizes sizes;
};

/// Llama and its kin; the width of a head.
uint32_t read_llama_like(Reader& r) {
  r.read_heads();
  const uint32_t head_width = r.read_decoder();
  if (r.keys.has("attention.key_length")) r.config["head_dim"] = head_width;
  r.config["rms_norm_eps"] = r.keys.number("attention.layer_norm_rms_epsilon");
  r.config.update(rope_config(r.gguf, r.keys, head_width));
  return head_width;
}

const GgufNames* read_llama(Reader& r) {
  r.require_whole_turns(read_llama_like(r));
  r.config["attention_bias"] = r.has_tensor("blk.0.attn_q.bias");
  r.config["mlp_bias"] = r.has_tensor("blk.0.ffn_gate.bias");
  return &kLlamaNames;
}

const GgufNames* read_qwen2(Reader& r) {
  r.require_whole_turns(read_llama_like(r));
  return &kQwen2Names;
}

const GgufNames* read_qwen3(Reader& r) {
  r.require_whole_turns(read_llama_like(r));
  r.config["attention_bias"] = r.has_tensor("blk.0.attn_q.bias");
  return &kQwen3Names;
}

const GgufNames* read_phi3(Reader& r) {
  const uint32_t head_width = read_llama_like(r);
  r.config["partial_rotary_factor"] = r.turned_part(head_width);
  const uint32_t window = r.keys.size("attention.sliding_window", 0, kMaxSize, 0);
  if (window != 0) r.config["sliding_window"] = window;
  // It matters to files that have tensors of factors too.
  r.keys.ignore("rope.scaling.original_context_length");
  return &kPhi3Names;
}

/// Some numbers are the same in all of these models, and not in the file.
const GgufNames* read_gemma3(Reader& r) {
  constexpr uint32_t kLargestLayers = 62, kPattern = 6;
  const uint32_t head_width = read_llama_like(r);
  r.require_whole_turns(head_width);
  r.config["head_dim"] = head_width;
  const uint32_t width = r.config["hidden_size"];
  r.config["query_pre_attn_scalar"] =
      r.sizes.layers == kLargestLayers ? width / r.sizes.heads : head_width;
  r.config["sliding_window"] = r.size("attention.sliding_window");
  r.config["sliding_window_pattern"] =
      r.keys.size("attention.sliding_window_pattern", 1, kMaxSize, kPattern);
  r.config["rope_local_base_freq"] = r.keys.number("rope.freq_base_swa", 1e4);
  const double cap = r.keys.number("final_logit_softcapping", 0);
  if (cap != 0) r.config["final_logit_softcapping"] = cap;
  return &kGemma3Names;
}

const GgufNames* read_phi2(Reader& r) {
  r.read_heads();
  const uint32_t head_width = r.read_decoder();
  r.config["layer_norm_eps"] = r.keys.number("attention.layer_norm_epsilon");
  r.config["partial_rotary_factor"] = r.turned_part(head_width);
  r.config.update(rope_config(r.gguf, r.keys, head_width));
  return &kPhi2Names;
}

const GgufNames* read_gptneox(Reader& r) {
  r.read_equal_heads();
  const uint32_t head_width = r.read_decoder();
  r.config.erase("num_key_value_heads");
  r.config["layer_norm_eps"] = r.keys.number("attention.layer_norm_epsilon");
  r.config["rotary_pct"] = r.turned_part(head_width);
  json rope = rope_config(r.gguf, r.keys, head_width);
  r.config["rotary_emb_base"] = rope["rope_theta"];
  rope.erase("rope_theta");
  r.config.update(rope);
  r.config["use_parallel_residual"] = r.keys.flag("use_parallel_residual", true);
  return &kGptNeoxNames;
}

const GgufNames* read_gpt2(Reader& r) {
  r.read_equal_heads();
  r.config["tie_word_embeddings"] = is_tied(r.gguf);
  r.config["n_layer"] = r.sizes.layers;
  r.config["n_head"] = r.sizes.heads;
  r.config["n_positions"] = r.size("context_length");
  r.config["n_embd"] = r.size("embedding_length");
  r.config["n_inner"] = r.size("feed_forward_length");
  r.config["layer_norm_epsilon"] = r.keys.number("attention.layer_norm_epsilon");
  return &kGpt2Names;
}

const GgufNames* read_bloom(Reader& r) {
  r.read_equal_heads();
  r.config["tie_word_embeddings"] = is_tied(r.gguf);
  r.config["n_layer"] = r.sizes.layers;
  r.config["n_head"] = r.sizes.heads;
  const uint32_t width = r.size("embedding_length");
  r.config["hidden_size"] = width;
  r.config["seq_length"] = r.size("context_length");
  r.keys.require_size("feed_forward_length", 4 * width, "four times embedding_length");
  r.config["layer_norm_epsilon"] = r.keys.number("attention.layer_norm_epsilon");
  return &kBloomNames;
}

const GgufNames* read_mpt(Reader& r) {
  r.read_equal_heads();
  r.config["tie_word_embeddings"] = is_tied(r.gguf);
  r.config["n_layers"] = r.sizes.layers;
  r.config["n_heads"] = r.sizes.heads;
  const uint32_t width = r.size("embedding_length");
  r.config["d_model"] = width;
  r.config["max_seq_len"] = r.size("context_length");
  r.keys.require_size("feed_forward_length", 4 * width, "four times embedding_length");
  r.config["layer_norm_epsilon"] = r.keys.number("attention.layer_norm_epsilon");
  constexpr double kBias = 8;
  if (r.keys.number("attention.max_alibi_bias", kBias) != kBias) {
    r.keys.fail("attention.max_alibi_bias", "8");
  }
  const double clip = r.keys.number("attention.clamp_kqv", 0);
  if (clip != 0) r.config["attn_config"] = {{"clip_qkv", clip}};
  return &kMptNames;
}

/// What both Mambas have.
uint32_t read_scan(Reader& r) {
  r.config["tie_word_embeddings"] = is_tied(r.gguf);
  r.config["num_hidden_layers"] = r.sizes.layers;
  const uint32_t width = r.size("embedding_length"), inner = r.size("ssm.inner_size");
  r.config["hidden_size"] = width;
  r.config["expand"] = static_cast<double>(inner) / width;
  r.config["conv_kernel"] = r.size("ssm.conv_kernel");
  r.config["state_size"] = r.size("ssm.state_size");
  r.config["layer_norm_epsilon"] = r.keys.number("attention.layer_norm_rms_epsilon");
  r.config["use_bias"] = r.has_tensor("blk.0.ssm_in.bias");
  r.config["use_conv_bias"] = r.has_tensor("blk.0.ssm_conv1d.bias");
  // Their streams have no length; this is any number.
  r.keys.ignore("context_length");
  return inner;
}

const GgufNames* read_mamba(Reader& r) {
  r.config["intermediate_size"] = read_scan(r);
  r.config["time_step_rank"] = r.size("ssm.time_step_rank");
  return &kMambaNames;
}

const GgufNames* read_mamba2(Reader& r) {
  const uint32_t inner = read_scan(r);
  const uint32_t heads = r.size("ssm.time_step_rank", inner);
  r.config["num_heads"] = heads;
  r.config["head_dim"] = inner / heads;
  r.config["n_groups"] = r.size("ssm.group_count");
  return &kMamba2Names;
}

/// The heads of keys and values by layer: none where a layer does not attend.
const GgufNames* read_lfm2(Reader& r) {
  const std::string name = "attention.head_count_kv";
  r.sizes.heads = r.size("attention.head_count");
  const std::vector<int64_t> counts = r.keys.list(name);
  std::vector<std::string> kinds;
  for (const int64_t count : counts) {
    const bool attends = count != 0;
    kinds.push_back(attends ? "full_attention" : "conv");
    if (!attends) continue;
    if (count < 0 || count > r.sizes.heads ||
        (r.sizes.kv_heads != 0 && r.sizes.kv_heads != count)) {
      r.keys.fail(name, "0 or one number of heads, the same for all layers that attend");
    }
    r.sizes.kv_heads = static_cast<uint32_t>(count);
  }
  if (counts.size() != r.sizes.layers) {
    r.keys.fail(name, "a list of " + std::to_string(r.sizes.layers) + " numbers");
  }
  if (r.sizes.kv_heads == 0) r.sizes.kv_heads = r.sizes.heads;
  const uint32_t head_width = r.read_decoder();
  r.require_whole_turns(head_width);
  r.config["layer_types"] = kinds;
  r.config["block_auto_adjust_ff_dim"] = false;
  r.config["conv_L_cache"] = r.size("shortconv.l_cache");
  r.config["norm_eps"] = r.keys.number("attention.layer_norm_rms_epsilon");
  r.config.update(rope_config(r.gguf, r.keys, head_width));
  return &kLfm2Names;
}

const GgufNames* read_rwkv7(Reader& r) {
  const uint32_t width = r.size("embedding_length"), head = r.size("wkv.head_size", width);
  r.sizes.heads = r.sizes.kv_heads = width / head;
  r.config["n_layer"] = r.sizes.layers;
  r.config["n_embd"] = width;
  r.config["head_size"] = head;
  r.config["dim_ffn"] = r.size("feed_forward_length");
  r.config["layer_norm_eps"] = r.keys.number("attention.layer_norm_epsilon");
  r.config["D_DECAY_LORA"] = r.size("attention.decay_lora_rank");
  r.config["D_AAA_LORA"] = r.size("attention.iclr_lora_rank");
  r.config["D_MV_LORA"] = r.size("attention.value_residual_mix_lora_rank");
  r.config["D_GATE_LORA"] = r.size("attention.gate_lora_rank");
  r.keys.ignore("context_length");
  return &kRwkv7Names;
}

/// BERT, RoBERTa without the rows before its first position, and DistilBERT: the one without kinds of tokens.
const GgufNames* read_bert(Reader& r) {
  r.read_equal_heads();
  const bool has_types = r.has_tensor("token_types.weight");
  const auto put = [&](const char* name, const char* distilled, uint32_t value) {
    r.config[has_types ? name : distilled] = value;
  };
  put("num_hidden_layers", "n_layers", r.sizes.layers);
  put("num_attention_heads", "n_heads", r.sizes.heads);
  put("hidden_size", "dim", r.size("embedding_length"));
  put("intermediate_size", "hidden_dim", r.size("feed_forward_length"));
  const StoredTensor& places = gguf_tensor(r.gguf, "position_embd.weight");
  r.config["max_position_embeddings"] = places.shape[0];
  // Of some files it counts the rows that were cut off.
  r.keys.ignore("context_length");
  const double epsilon = r.keys.number("attention.layer_norm_epsilon");
  if (r.keys.flag("attention.causal", false)) r.keys.fail("attention.causal", "false");
  // How rows become one is said elsewhere; see read_gguf_sentences().
  r.keys.ignore("pooling_type");
  r.keys.ignore("classifier.output_labels");
  if (!has_types) {
    r.config["model_type"] = "distilbert";
    return &kDistilBertNames;
  }
  r.config["type_vocab_size"] = gguf_tensor(r.gguf, "token_types.weight").shape[0];
  r.config["layer_norm_eps"] = epsilon;
  return &kBertNames;
}

struct Row {
  const char* architecture;
  const char* model_type;
  const GgufNames* (*read)(Reader& reader);
};
constexpr Row kRows[] = {
    {"bert", "bert", read_bert},
    {"bloom", "bloom", read_bloom},
    {"gemma3", "gemma3_text", read_gemma3},
    {"gpt2", "gpt2", read_gpt2},
    {"gptneox", "gpt_neox", read_gptneox},
    {"lfm2", "lfm2", read_lfm2},
    {"llama", "llama", read_llama},
    {"mamba", "mamba", read_mamba},
    {"mamba2", "mamba2", read_mamba2},
    {"mpt", "mpt", read_mpt},
    {"phi2", "phi", read_phi2},
    {"phi3", "phi3", read_phi3},
    {"qwen2", "qwen2", read_qwen2},
    {"qwen3", "qwen3", read_qwen3},
    {"rwkv7", "rwkv7", read_rwkv7},
};

std::string all_architectures() {
  std::string list;
  for (const Row& row : kRows) list += (list.empty() ? "" : ", ") + std::string(row.architecture);
  return list;
}

}  // namespace

const StoredTensor& gguf_tensor(const Gguf& gguf, const std::string& name) {
  const auto found = gguf.tensors().find(name);
  if (found == gguf.tensors().end()) {
    throw InputError(gguf.path() + ": tensor " + printable(name) + " is missing");
  }
  return found->second;
}

GgufConfig read_gguf_config(const Gguf& gguf) {
  const std::optional<std::string> architecture = gguf.text("general.architecture");
  if (!architecture) gguf.fail("general.architecture", "one of: " + all_architectures());
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return r.architecture == *architecture; });
  if (row == std::end(kRows)) {
    throw InputError(gguf.path() + ": general.architecture " + printable(*architecture, 80) +
                     " is not supported, supported: " + all_architectures());
  }
  Reader reader(gguf, *architecture, row->model_type);
  GgufConfig out;
  out.names = row->read(reader);
  reader.keys.finish();
  out.sizes = reader.sizes;
  out.json = std::move(reader.config);
  return out;
}

}  // namespace oxbow::convert
