#include "tests/support/tiny_checkpoint.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

#include "tests/support/files.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

constexpr uint32_t kWidth = 8, kHeads = 2, kHeadWidth = 4, kHidden = 12, kTokens = 5, kRate = 2;
constexpr uint32_t kPositions = 32;

}  // namespace

TinyCheckpoint::TinyCheckpoint() {
  config = {{"model_type", "labml_compressive_transformer"},
            {"n_tokens", kTokens},
            {"d_model", kWidth},
            {"heads", kHeads},
            {"d_ff", kHidden},
            {"n_layers", 1},
            {"mem_len", 4},
            {"c_mem_len", 3},
            {"compression_rate", kRate},
            {"activation", "relu"},
            {"layer_norm_eps", 1e-5},
            {"is_gated", false},
            {"segment_lengths", {5}}};
  const std::string layer = "transformer.layers.0.";
  const std::map<std::string, std::vector<uint32_t>> shapes = {
      {"src_embed.weight", {kTokens, kWidth}},
      {layer + "compress.conv.weight", {kWidth, kWidth, kRate}},
      {layer + "compress.conv.bias", {kWidth}},
      {layer + "self_attn.key_pos_embeddings", {2 * kPositions, kHeads, kHeadWidth}},
      {layer + "self_attn.key_pos_bias", {2 * kPositions, kHeads}},
      {layer + "self_attn.query_pos_bias", {kHeads, kHeadWidth}},
      {layer + "self_attn.query.linear.weight", {kWidth, kWidth}},
      {layer + "self_attn.key.linear.weight", {kWidth, kWidth}},
      {layer + "self_attn.value.linear.weight", {kWidth, kWidth}},
      {layer + "self_attn.value.linear.bias", {kWidth}},
      {layer + "self_attn.output.weight", {kWidth, kWidth}},
      {layer + "self_attn.output.bias", {kWidth}},
      {layer + "feed_forward.layer1.weight", {kHidden, kWidth}},
      {layer + "feed_forward.layer1.bias", {kHidden}},
      {layer + "feed_forward.layer2.weight", {kWidth, kHidden}},
      {layer + "feed_forward.layer2.bias", {kWidth}},
      {layer + "norm_self_attn.weight", {kWidth}},
      {layer + "norm_self_attn.bias", {kWidth}},
      {layer + "norm_ff.weight", {kWidth}},
      {layer + "norm_ff.bias", {kWidth}},
      {"transformer.norm.weight", {kWidth}},
      {"transformer.norm.bias", {kWidth}},
      {"generator.weight", {kTokens, kWidth}},
      {"generator.bias", {kTokens}}};
  std::mt19937 random(7);
  for (const auto& [name, shape] : shapes) {
    size_t count = 1;
    for (const uint32_t n : shape) count *= n;
    TinyTensor tensor{shape, std::vector<float>(count)};
    // Not std::uniform_real_distribution: its values differ between standard libraries.
    for (float& value : tensor.values) {
      value = static_cast<float>(random() >> 8) / 8388608.0f - 1.0f;
    }
    tensors[name] = std::move(tensor);
  }
}

void TinyCheckpoint::write(const std::filesystem::path& directory) const {
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "config.json") << config;
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::ofstream file(directory / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << text << data;
}

TinyCheckpoint with_vocabulary(uint32_t tokens) {
  TinyCheckpoint checkpoint;
  for (const char* name : {"src_embed.weight", "generator.weight", "generator.bias"}) {
    TinyTensor& tensor = checkpoint.tensors.at(name);
    const std::vector<float> old = tensor.values;
    const size_t count = old.size() / tensor.shape[0] * tokens;
    tensor.shape[0] = tokens;
    tensor.values.resize(count);
    for (size_t i = 0; i < count; ++i) {
      tensor.values[i] = old[i % old.size()] + 0.01f * static_cast<float>(i % 97) - 0.5f;
    }
  }
  checkpoint.config["n_tokens"] = tokens;
  return checkpoint;
}

namespace {

/// Something to calibrate with: all five tokens, in an order that does not repeat soon.
void write_tokens(const std::filesystem::path& path) {
  std::vector<int64_t> ids(200);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i % 31 % 5);
  const nlohmann::json header = {
      {"input_ids", {{"dtype", "I64"}, {"shape", {1, 200}}, {"data_offsets", {0, 1600}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << text;
  file.write(reinterpret_cast<const char*>(ids.data()), 1600);
}

}  // namespace

TinyModel::TinyModel(const std::string& weights, const std::string& activations,
                     const TinyCheckpoint& checkpoint) {
  const TemporaryDirectory directory;
  checkpoint.write(directory / "checkpoint");
  const std::string file = (directory / "model.oxb").string();
  std::vector<std::string> words = {(directory / "checkpoint").string(),
                                    "-o",
                                    file,
                                    "--weights",
                                    weights,
                                    "--activations",
                                    activations};
  if (activations == "static") {
    write_tokens(directory / "tokens.safetensors");
    words.insert(words.end(), {"--calibrate", (directory / "tokens.safetensors").string()});
  }
  const CommandResult result = run_program("oxbow-convert", words);
  if (result.exit_code != 0) throw std::runtime_error("oxbow-convert: " + result.err);
  const std::vector<std::byte> read = read_bytes(file);
  size = read.size();
  data.reset(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64)));
  std::memcpy(data.get(), read.data(), size);
}

void TinyModel::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace oxbow::testing
