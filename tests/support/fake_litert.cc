// What the plug-in for LiteRT opens in place of libLiteRt.so: its calls, and the few operators that our graphs have, computed from
// what the .tflite file says. The rounding is that which LiteRT's own kernels were measured to have.

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/device/npu/litert/litert.h"

#define OXB_EXPORT extern "C" __attribute__((visibility("default")))

namespace oxbow::litert {

struct Environment {
  bool dispatches = false;
};
struct Options {
  int accelerators = 0;
};
struct OpaqueOptions {
  void* data;
  Deallocator free;
};
struct Model {
  const uint8_t* data;
  size_t bytes;
};
struct CompiledModel {
  const uint8_t* data;
};
struct TensorBuffer {
  TensorType type;
  void* memory;
  size_t bytes;
};

}  // namespace oxbow::litert

namespace {

using namespace oxbow::litert;
using Fields = flatbuffers::Table;
template <typename T>
using List = flatbuffers::Vector<T>;
using Tables = List<flatbuffers::Offset<Fields>>;

constexpr int kWrong = 3;

flatbuffers::voffset_t field(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}
const Tables* tables(const Fields* of, int number) {
  return of->GetPointer<const Tables*>(field(number));
}
template <typename T>
const List<T>* list(const Fields* of, int number) {
  return of->GetPointer<const List<T>*>(field(number));
}

/// A tensor of the file, and its codes while a graph runs.
struct Value {
  const Fields* tensor = nullptr;
  std::vector<int8_t> codes;

  float scale(uint32_t channel = 0) const {
    const auto* all = list<float>(quantization(), 2);
    return all->Get(all->size() == 1 ? 0 : channel);
  }
  int32_t size(uint32_t dimension) const { return list<int32_t>(tensor, 0)->Get(dimension); }
  const Fields* quantization() const { return tensor->GetPointer<const Fields*>(field(4)); }
};

int8_t nearest(float value) {
  return static_cast<int8_t>(std::nearbyint(std::clamp(value, -128.0f, 127.0f)));
}

class Graph {
 public:
  explicit Graph(const uint8_t* data) : root_(flatbuffers::GetRoot<Fields>(data)) {}

  int run(const TensorBuffer& input, const TensorBuffer& output) {
    const Fields* graph = tables(root_, 2)->Get(0);
    values_.resize(tables(graph, 0)->size());
    for (uint32_t i = 0; i < values_.size(); ++i) values_[i].tensor = tables(graph, 0)->Get(i);
    Value& x = values_.at(static_cast<size_t>(list<int32_t>(graph, 1)->Get(0)));
    if (!is_like(x, input)) return kWrong;
    const auto* codes = static_cast<const int8_t*>(input.memory);
    x.codes.assign(codes, codes + input.bytes);
    for (const Fields* step : *tables(graph, 3)) {
      if (!run_step(step)) return kWrong;
    }
    const Value& y = values_.at(static_cast<size_t>(list<int32_t>(graph, 2)->Get(0)));
    if (!is_like(y, output)) return kWrong;
    std::memcpy(output.memory, y.codes.data(), output.bytes);
    return 0;
  }

 private:
  static bool is_like(const Value& value, const TensorBuffer& buffer) {
    return buffer.type.element == kInt8 && buffer.type.rank == 2 &&
           value.size(0) == buffer.type.dimensions[0] &&
           value.size(1) == buffer.type.dimensions[1] &&
           buffer.bytes == static_cast<size_t>(value.size(0)) * static_cast<size_t>(value.size(1));
  }

  Value& argument(const Fields* step, int field_number, uint32_t index) {
    const auto* all = list<int32_t>(step, field_number);
    return values_.at(static_cast<size_t>(all->Get(index)));
  }
  const uint8_t* data(const Value& value) const {
    const auto number = value.tensor->GetField<uint32_t>(field(2), 0);
    return list<uint8_t>(tables(root_, 4)->Get(number), 0)->data();
  }

  bool run_step(const Fields* step) {
    const Fields* code = tables(root_, 1)->Get(step->GetField<uint32_t>(field(0), 0));
    const Fields* options = step->GetPointer<const Fields*>(field(4));
    Value &x = argument(step, 1, 0), &y = argument(step, 2, 0);
    switch (code->GetField<int32_t>(field(3), 0)) {
      case 9:
        fully_connected(x, argument(step, 1, 1), argument(step, 1, 2),
                        options->GetField<int8_t>(field(0), 0) == 1, y);
        return true;
      case 150:
        gelu(x, options->GetField<uint8_t>(field(0), 0) != 0, y);
        return true;
      default:
        return false;
    }
  }

  void fully_connected(const Value& x, const Value& weight, const Value& bias, bool relu,
                       Value& y) const {
    const int32_t rows = x.size(0), depth = weight.size(1), channels = weight.size(0);
    const auto* codes = reinterpret_cast<const int8_t*>(data(weight));
    const auto* biases = reinterpret_cast<const int32_t*>(data(bias));
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t n = 0; n < channels; ++n) {
        int32_t sum = biases[n];
        for (int32_t k = 0; k < depth; ++k) {
          sum += x.codes[static_cast<size_t>(r * depth + k)] * codes[n * depth + k];
        }
        const float factor = x.scale() * weight.scale(static_cast<uint32_t>(n)) / y.scale();
        const int8_t code = nearest(static_cast<float>(sum) * factor);
        y.codes.push_back(relu ? std::max(code, int8_t{0}) : code);
      }
    }
  }

  static void gelu(const Value& x, bool by_tanh, Value& y) {
    for (const int8_t code : x.codes) {
      const double v = static_cast<double>(code) * double{x.scale()};
      const double u = std::sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v);
      const double wanted =
          by_tanh ? 0.5 * v * (1 + std::tanh(u)) : 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
      y.codes.push_back(nearest(static_cast<float>(wanted) * (1.0f / y.scale())));
    }
  }

  const Fields* root_;
  std::vector<Value> values_;
};

}  // namespace

OXB_EXPORT int LiteRtCreateEnvironment(int count, const EnvironmentOption* options,
                                       Environment** made) {
  *made = new Environment();
  for (int i = 0; i < count; ++i) (*made)->dispatches |= options[i].tag == kDispatchFolder;
  return 0;
}
OXB_EXPORT void LiteRtDestroyEnvironment(Environment* environment) { delete environment; }
OXB_EXPORT int LiteRtCreateModelFromBuffer(Environment*, const void* data, size_t bytes,
                                           Model** made) {
  const auto* start = static_cast<const uint8_t*>(data);
  if (reinterpret_cast<uintptr_t>(start) % 16 != 0) return kWrong;
  *made = new Model{start, bytes};
  return 0;
}
OXB_EXPORT void LiteRtDestroyModel(Model* model) { delete model; }
OXB_EXPORT int LiteRtCreateOptions(Options** made) {
  *made = new Options();
  return 0;
}
OXB_EXPORT void LiteRtDestroyOptions(Options* options) { delete options; }
OXB_EXPORT int LiteRtSetOptionsHardwareAccelerators(Options* options, int accelerators) {
  options->accelerators = accelerators;
  return 0;
}
OXB_EXPORT int LiteRtCreateOpaqueOptions(const char*, void* data, Deallocator free,
                                         OpaqueOptions** made) {
  *made = new OpaqueOptions{data, free};
  return 0;
}
OXB_EXPORT int LiteRtAddOpaqueOptions(Options*, OpaqueOptions* opaque) {
  opaque->free(opaque->data);
  delete opaque;
  return 0;
}
/// Any folder will do for a vendor's libraries.
OXB_EXPORT int LiteRtCreateCompiledModel(Environment* environment, Model* model, Options* options,
                                         CompiledModel** made) {
  if (options->accelerators != kCpu && !environment->dispatches) return 504;
  *made = new CompiledModel{model->data};
  return 0;
}
OXB_EXPORT void LiteRtDestroyCompiledModel(CompiledModel* model) { delete model; }
OXB_EXPORT int LiteRtCreateTensorBufferFromHostMemory(const TensorType* type, void* memory,
                                                      size_t bytes, Deallocator,
                                                      TensorBuffer** made) {
  if (reinterpret_cast<uintptr_t>(memory) % 64 != 0) return kWrong;
  *made = new TensorBuffer{*type, memory, bytes};
  return 0;
}
OXB_EXPORT void LiteRtDestroyTensorBuffer(TensorBuffer* buffer) { delete buffer; }
OXB_EXPORT int LiteRtRunCompiledModel(CompiledModel* model, size_t, size_t input_count,
                                      TensorBuffer** inputs, size_t output_count,
                                      TensorBuffer** outputs) {
  if (input_count != 1 || output_count != 1) return kWrong;
  return Graph(model->data).run(*inputs[0], *outputs[0]);
}
