#include "converter/offload/tosa.h"

#include <span>
#include <string>

#include "converter/offload/tables.h"
#include "ops/linear/formula.h"

namespace oxbow::convert {
namespace {

using flatbuffers::Offset;
using Text = flatbuffers::String;
using Texts = flatbuffers::Offset<flatbuffers::Vector<Offset<Text>>>;

// Of TOSA 1.1.
constexpr int32_t kMajor = 1, kMinor = 1, kPatch = 0;
enum Type : uint32_t { kInt8 = 3, kInt32 = 5 };
// An operator and its attributes have the same number.
enum Operator : uint32_t { kConv2d = 3, kClamp = 11, kTable = 31, kRescale = 66, kConst = 67 };
constexpr uint32_t kSingleRound = 1, kPropagateNan = 1;
constexpr int8_t kZeros[4] = {};

class Writer : private TableWriter {
 public:
  /// A tensor of rows, one pixel each; its name again.
  std::string rows(const std::string& name, uint32_t count, uint32_t width, Type type) {
    tensors_.push_back(
        tensor(name, {1, static_cast<int32_t>(count), 1, static_cast<int32_t>(width)}, type, {}));
    return name;
  }
  std::string constant(const std::string& name, const std::vector<int32_t>& shape, Type type,
                       std::span<const std::byte> data) {
    tensors_.push_back(tensor(name, shape, type, data));
    constants_.push_back(step(kConst, nothing(), {}, name));
    return name;
  }

  void convolve(const std::string& x, const std::string& weight, const std::string& bias,
                const std::string& zero, const std::string& y) {
    const auto pad = builder_.CreateVector(std::vector<int32_t>{0, 0, 0, 0});
    const auto one = builder_.CreateVector(std::vector<int32_t>{1, 1});
    begin();
    // No border, steps of one.
    add_offset(0, pad);
    add_offset(1, one);
    add_offset(2, one);
    add(4, static_cast<uint32_t>(kInt32));
    steps_.push_back(step(kConv2d, end(), {x, weight, bias, zero, zero}, y));
  }
  void rescale(const std::string& x, const std::string& multiplier, const std::string& shift,
               const std::string& x_zero, const std::string& y_zero, const std::string& y) {
    begin();
    add(0, true);  // The multiplier has 32 bits.
    add(1, kSingleRound);
    add(2, true);  // One for each channel.
    steps_.push_back(step(kRescale, end(), {x, multiplier, shift, x_zero, y_zero}, y));
  }
  void clamp(const std::string& x, int8_t least, int8_t most, const std::string& y) {
    const auto from = builder_.CreateVector(std::vector<int8_t>{least}),
               to = builder_.CreateVector(std::vector<int8_t>{most});
    begin();
    add_offset(0, from);
    add_offset(1, to);
    add(2, kPropagateNan);
    steps_.push_back(step(kClamp, end(), {x}, y));
  }
  void look_up(const std::string& x, const std::string& table, const std::string& y) {
    steps_.push_back(step(kTable, nothing(), {x, table}, y));
  }

  /// The whole file.
  std::vector<std::byte> graph(const std::string& input, const std::string& output) {
    Tables steps = constants_;
    steps.insert(steps.end(), steps_.begin(), steps_.end());
    const auto name = builder_.CreateString("main");
    const auto step_list = builder_.CreateVector(steps);
    const auto tensor_list = builder_.CreateVector(tensors_);
    const Texts in = texts({input}), out = texts({output});
    begin();
    add_offset(0, name);
    add_offset(1, step_list);
    add_offset(2, tensor_list);
    add_offset(3, in);
    add_offset(4, out);
    const auto blocks = builder_.CreateVector(Tables{end()});
    begin();
    add_offset(0, name);
    add_offset(1, blocks);
    const auto regions = builder_.CreateVector(Tables{end()});
    begin();
    add(0, kMajor);
    add(1, kMinor);
    add(2, kPatch);
    const Offset<Table> version = end();
    begin();
    add_offset(0, version);
    add_offset(1, regions);
    return finish(end(), "TOSA");
  }

 private:
  Texts texts(const std::vector<std::string>& list) { return builder_.CreateVectorOfStrings(list); }

  Offset<Table> tensor(const std::string& name, const std::vector<int32_t>& shape, Type type,
                       std::span<const std::byte> data) {
    const auto text = builder_.CreateString(name);
    const auto sizes = builder_.CreateVector(shape);
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes = 0;
    if (!data.empty()) {
      builder_.ForceVectorAlignment(data.size(), 1, 8);
      bytes = builder_.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), data.size());
    }
    begin();
    add_offset(0, text);
    add_offset(1, sizes);
    add(2, static_cast<uint32_t>(type));
    if (!data.empty()) add_offset(3, bytes);
    return end();
  }

  Offset<Table> step(Operator code, Offset<Table> attribute, const std::vector<std::string>& inputs,
                     const std::string& output) {
    const Texts in = texts(inputs), out = texts({output});
    begin();
    add(0, static_cast<uint32_t>(code));
    add(1, static_cast<uint8_t>(code));
    add_offset(2, attribute);
    add_offset(3, in);
    add_offset(4, out);
    return end();
  }

  /// Constants come first.
  Tables tensors_, constants_, steps_;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

std::string add_weight(Writer& writer, const std::string& name, const DenseCodes& layer) {
  return writer.constant(
      name, {static_cast<int32_t>(layer.channels), 1, 1, static_cast<int32_t>(layer.depth)}, kInt8,
      bytes_of(layer.codes));
}

}  // namespace

std::vector<std::byte> tosa_graph(const DenseCodes& layer, uint32_t rows) {
  Writer writer;
  const std::string x = writer.rows("x", rows, layer.depth, kInt8);
  const std::string weight = add_weight(writer, "w", layer);
  const std::string bias = writer.constant("bias", {1}, kInt32, bytes_of(kZeros));
  const std::string zero = writer.constant("zero", {1}, kInt8, bytes_of(kZeros).first(1));
  const std::string y = writer.rows("y", rows, layer.channels, kInt32);
  writer.convolve(x, weight, bias, zero, y);
  return writer.graph(x, y);
}

std::vector<std::byte> tosa_graph(const Chain& chain, uint32_t rows) {
  Writer writer;
  const std::string input = writer.rows("x", rows, chain.front().weight.depth, kInt8);
  const std::string zero = writer.constant("zero", {1}, kInt8, bytes_of(kZeros).first(1));
  const std::string sum_zero = writer.constant("sum_zero", {1}, kInt32, bytes_of(kZeros));
  std::string x = input;
  for (size_t i = 0; i < chain.size(); ++i) {
    const ChainLayer& layer = chain[i];
    const std::string number = std::to_string(i);
    const uint32_t channels = layer.weight.channels;
    const auto count = static_cast<int32_t>(channels);
    std::vector<int32_t> multipliers;
    std::vector<int8_t> shifts;
    for (const float factor : layer.factors) {
      const FormulaScale scale = formula_scale(factor);
      multipliers.push_back(scale.multiplier);
      shifts.push_back(static_cast<int8_t>(scale.shift));
    }
    const std::string sums = writer.rows("sums" + number, rows, channels, kInt32);
    writer.convolve(x, add_weight(writer, "w" + number, layer.weight),
                    writer.constant("bias" + number, {count}, kInt32, bytes_of(layer.biases)), zero,
                    sums);
    x = writer.rows("codes" + number, rows, channels, kInt8);
    writer.rescale(
        sums, writer.constant("multiplier" + number, {count}, kInt32, bytes_of(multipliers)),
        writer.constant("shift" + number, {count}, kInt8, bytes_of(shifts)), sum_zero, zero, x);
    if (layer.least > kFormulaMin) {
      const std::string above = writer.rows("above" + number, rows, channels, kInt8);
      writer.clamp(x, static_cast<int8_t>(layer.least), int8_t{kFormulaMax}, above);
      x = above;
    }
    if (!layer.table.empty()) {
      const std::string looked_up = writer.rows("activated" + number, rows, channels, kInt8);
      writer.look_up(x,
                     writer.constant("table" + number, {static_cast<int32_t>(layer.table.size())},
                                     kInt8, bytes_of(layer.table)),
                     looked_up);
      x = looked_up;
    }
  }
  return writer.graph(input, x);
}

}  // namespace oxbow::convert
