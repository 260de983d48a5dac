#include "converter/offload/tosa.h"

#include <span>
#include <string>

#include "converter/offload/tables.h"

namespace oxbow::convert {
namespace {

using flatbuffers::Offset;
using Text = flatbuffers::String;
using Texts = flatbuffers::Offset<flatbuffers::Vector<Offset<Text>>>;

// Of TOSA 1.1.
constexpr int32_t kMajor = 1, kMinor = 1, kPatch = 0;
enum Type : uint32_t { kInt8 = 3, kInt32 = 5 };
// An operator and its attributes have the same number.
enum Operator : uint32_t { kConv2d = 3, kConst = 67 };

class Writer : private TableWriter {
 public:
  Offset<Table> tensor(const std::string& name, const std::vector<int32_t>& shape, Type type,
                       std::span<const int8_t> data = {}) {
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

  Offset<Table> step(Operator code, const std::vector<std::string>& inputs,
                     const std::string& output) {
    const Offset<Table> attribute = code == kConv2d ? convolution() : nothing();
    const Texts in = texts(inputs), out = texts({output});
    begin();
    add(0, static_cast<uint32_t>(code));
    add(1, static_cast<uint8_t>(code));
    add_offset(2, attribute);
    add_offset(3, in);
    add_offset(4, out);
    return end();
  }

  /// The whole file.
  std::vector<std::byte> graph(const Tables& steps, const Tables& tensors, const std::string& input,
                               const std::string& output) {
    const auto name = builder_.CreateString("main");
    const auto step_list = builder_.CreateVector(steps);
    const auto tensor_list = builder_.CreateVector(tensors);
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
  /// One pixel, steps of one, no border.
  Offset<Table> convolution() {
    const auto pad = builder_.CreateVector(std::vector<int32_t>{0, 0, 0, 0});
    const auto one = builder_.CreateVector(std::vector<int32_t>{1, 1});
    begin();
    add_offset(0, pad);
    add_offset(1, one);
    add_offset(2, one);
    add(4, static_cast<uint32_t>(kInt32));
    return end();
  }
};

}  // namespace

std::vector<std::byte> tosa_graph(const DenseCodes& layer, uint32_t rows) {
  const auto height = static_cast<int32_t>(rows), depth = static_cast<int32_t>(layer.depth),
             channels = static_cast<int32_t>(layer.channels);
  const int8_t zeros[4] = {};
  Writer writer;
  const Tables tensors = {
      writer.tensor("x", {1, height, 1, depth}, kInt8),
      writer.tensor("w", {channels, 1, 1, depth}, kInt8, layer.codes),
      writer.tensor("bias", {1}, kInt32, zeros),
      writer.tensor("x_zero", {1}, kInt8, std::span(zeros).first(1)),
      writer.tensor("w_zero", {1}, kInt8, std::span(zeros).first(1)),
      writer.tensor("y", {1, height, 1, channels}, kInt32),
  };
  Tables steps;
  for (const char* constant : {"w", "bias", "x_zero", "w_zero"}) {
    steps.push_back(writer.step(kConst, {}, constant));
  }
  steps.push_back(writer.step(kConv2d, {"x", "w", "bias", "x_zero", "w_zero"}, "y"));
  return writer.graph(steps, tensors, "x", "y");
}

}  // namespace oxbow::convert
