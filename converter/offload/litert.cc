#include "converter/offload/litert.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>

#include "converter/offload/program.h"
#include "converter/offload/tables.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/device/npu/litert/blob.h"

namespace oxbow::convert {
namespace {

// Numbers of the .tflite format, version 3.
enum Operator : int32_t { kFullyConnected = 9, kGelu = 150 };
enum OptionsOf : uint8_t { kFullyConnectedOptions = 8, kGeluOptions = 116 };
enum Type : int8_t { kInt32 = 2, kInt8 = 9 };
enum FusedActivation : int8_t { kNothing = 0, kRelu = 1 };
constexpr uint32_t kFormatVersion = 3;
// Data of a tensor begin on it.
constexpr size_t kDataAlignment = 16;

/// A chain as a graph of fully connected layers, with the only input "x" and the only output "y".
class Writer : private TableWriter {
 public:
  std::vector<std::byte> graph(const Chain& chain, int32_t rows) {
    buffers_.push_back(nothing());  // Of tensors without data.
    int32_t x =
        tensor("x", {rows, width(chain.front().weight.depth)}, kInt8, {{chain.front().x_scale}});
    const int32_t input = x;
    for (size_t i = 0; i < chain.size(); ++i) {
      const ChainLayer& layer = chain[i];
      const std::string number = std::to_string(i);
      const int32_t depth = width(layer.weight.depth), channels = width(layer.weight.channels);
      // A scale must not be 0: with zeros for weights any other will do.
      std::vector<float> scales = layer.weight_scales, bias_scales;
      for (float& scale : scales) {
        if (scale == 0.0f) scale = layer.sum_scale / layer.x_scale;
        bias_scales.push_back(layer.x_scale * scale);
      }
      const int32_t weight = tensor("w" + number, {channels, depth}, kInt8, scales,
                                    std::as_bytes(std::span(layer.weight.codes)));
      const int32_t bias = tensor("b" + number, {channels}, kInt32, bias_scales,
                                  std::as_bytes(std::span(layer.biases)));
      const bool is_last = i + 1 == chain.size();
      const bool has_table = !layer.table.empty();
      const int32_t sums = tensor(is_last && !has_table ? "y" : "s" + number, {rows, channels},
                                  kInt8, {{layer.sum_scale}});
      begin();
      add(0, static_cast<int8_t>(layer.least == 0 ? kRelu : kNothing));
      step(kFullyConnected, 4, {x, weight, bias}, sums, kFullyConnectedOptions, end());
      x = sums;
      if (!has_table) continue;
      const int32_t y =
          tensor(is_last ? "y" : "t" + number, {rows, channels}, kInt8, {{layer.y_scale}});
      begin();
      add(0, static_cast<uint8_t>(layer.activation == schema::Activation::GeluTanh));
      step(kGelu, 2, {x}, y, kGeluOptions, end());
      x = y;
    }
    return whole(input, x);
  }

 private:
  static int32_t width(uint32_t value) { return static_cast<int32_t>(value); }

  template <typename T>
  auto list(const std::vector<T>& values) {
    return builder_.CreateVector(values);
  }

  /// Codes around 0; with several scales, one for each of the first dimension.
  int32_t tensor(const std::string& name, const std::vector<int32_t>& shape, Type type,
                 const std::vector<float>& scales, std::span<const std::byte> data = {}) {
    uint32_t buffer = 0;
    if (!data.empty()) {
      builder_.ForceVectorAlignment(data.size(), 1, kDataAlignment);
      const auto bytes =
          builder_.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), data.size());
      begin();
      add_offset(0, bytes);
      buffer = static_cast<uint32_t>(buffers_.size());
      buffers_.push_back(end());
    }
    const auto scale_list = list(scales);
    const auto zeros = list(std::vector<int64_t>(scales.size()));
    begin();
    add_offset(2, scale_list);
    add_offset(3, zeros);
    const Offset<Table> quantization = end();
    const auto sizes = list(shape);
    const auto text = builder_.CreateString(name);
    begin();
    add_offset(0, sizes);
    add(1, static_cast<int8_t>(type));
    add(2, buffer);
    add_offset(3, text);
    add_offset(4, quantization);
    tensors_.push_back(end());
    return static_cast<int32_t>(tensors_.size()) - 1;
  }

  void step(Operator code, int32_t version, const std::vector<int32_t>& inputs, int32_t output,
            OptionsOf kind, Offset<Table> options) {
    auto [at, is_new] = operators_.try_emplace(code, static_cast<uint32_t>(codes_.size()));
    if (is_new) {
      begin();
      // Readers of old files look here; 127 says that the number is in the new field.
      add(0, static_cast<int8_t>(std::min<int32_t>(code, 127)));
      add(2, version);
      add(3, static_cast<int32_t>(code));
      codes_.push_back(end());
    }
    const auto in = list(inputs);
    const auto out = list(std::vector<int32_t>{output});
    begin();
    add(0, at->second);
    add_offset(1, in);
    add_offset(2, out);
    add(3, static_cast<uint8_t>(kind));
    add_offset(4, options);
    steps_.push_back(end());
  }

  /// The name of an input or output, and its tensor.
  auto named(const char* name, int32_t index) {
    const auto text = builder_.CreateString(name);
    begin();
    add_offset(0, text);
    add(1, static_cast<uint32_t>(index));
    return list(Tables{end()});
  }

  std::vector<std::byte> whole(int32_t input, int32_t output) {
    const auto name = builder_.CreateString("main");
    const auto tensors = list(tensors_), steps = list(steps_);
    const auto in = list(std::vector<int32_t>{input}), out = list(std::vector<int32_t>{output});
    begin();
    add_offset(0, tensors);
    add_offset(1, in);
    add_offset(2, out);
    add_offset(3, steps);
    add_offset(4, name);
    const auto graphs = list(Tables{end()});
    const auto inputs = named("x", input), outputs = named("y", output);
    begin();
    add_offset(0, inputs);
    add_offset(1, outputs);
    add_offset(2, name);
    const auto signatures = list(Tables{end()});
    const auto codes = list(codes_), buffers = list(buffers_);
    const auto maker = builder_.CreateString("oxbow-convert");
    begin();
    add(0, kFormatVersion);
    add_offset(1, codes);
    add_offset(2, graphs);
    add_offset(3, maker);
    add_offset(4, buffers);
    add_offset(7, signatures);
    return finish(end(), "TFL3");
  }

  Tables tensors_, buffers_, steps_, codes_;
  std::map<Operator, uint32_t> operators_;
};

/// Commands: LitertHeader. Weights: a .tflite file.
class LitertCompiler : public NpuCompiler {
 public:
  std::string plugin() const override { return "litert"; }
  std::string name() const override { return "oxbow-convert, a .tflite graph for each chain"; }
  OffloadPieces pieces() const override { return OffloadPieces::kChains; }

  CompiledLayer compile_chain(const Chain& chain, uint32_t rows) override {
    CompiledLayer compiled;
    const LitertHeader header = {kLitertMagic, chain.front().weight.depth,
                                 chain.back().weight.channels, rows};
    compiled.commands.resize(sizeof(header));
    std::memcpy(compiled.commands.data(), &header, sizeof(header));
    compiled.weights = Writer().graph(chain, static_cast<int32_t>(rows));
    return compiled;
  }

  void check(const CompiledLayer& layer, bool) const override {
    if (layer.weights.size() > kMostLitertBytes) {
      throw InputError("--npu litert: a chain is too large for a .tflite file");
    }
  }
};

/// The same, for which a vendor's compiler has then made what its chip executes.
class ChipCompiler : public LitertCompiler {
 public:
  explicit ChipCompiler(const std::string& tool) {
    std::istringstream words(tool);
    for (std::string word; words >> word;) tool_.push_back(word);
    if (tool_.empty()) throw UsageError("--npu litert-compiled needs --litert-tool");
  }

  std::string name() const override {
    std::string text = "LiteRT's tool:";
    for (const std::string& word : tool_) text += " " + word;
    return text;
  }
  schema::OffloadResult chain_result() const override { return schema::OffloadResult::Tolerance; }

  CompiledLayer compile_chain(const Chain& chain, uint32_t rows) override {
    CompiledLayer compiled = LitertCompiler::compile_chain(chain, rows);
    const WorkFolder folder;
    const std::string from = (folder.path() / "chain.tflite").string(),
                      to = (folder.path() / "compiled.tflite").string();
    std::ofstream(from, std::ios::binary)
        .write(reinterpret_cast<const char*>(compiled.weights.data()),
               static_cast<std::streamsize>(compiled.weights.size()));
    std::vector<std::string> words = tool_;
    words.insert(words.end(), {"--model=" + from, "--o=" + to});
    run_program(words, folder.path() / "log", "--litert-tool names LiteRT's apply_plugin_main");
    const MappedFile file(to);
    compiled.weights.assign(file.bytes().begin(), file.bytes().end());
    return compiled;
  }

 private:
  std::vector<std::string> tool_;
};

}  // namespace

std::unique_ptr<NpuCompiler> make_litert_compiler() { return std::make_unique<LitertCompiler>(); }
std::unique_ptr<NpuCompiler> make_litert_chip_compiler(const std::string& tool) {
  return std::make_unique<ChipCompiler>(tool);
}

}  // namespace oxbow::convert
