#pragma once

// The calls of LiteRT's C interface that the plug-in makes, as far as they are used, declared by us: libLiteRt.so is opened at
// run time and nothing of it is needed to build. All return 0 when they succeed but those that return nothing.

#include <cstddef>
#include <cstdint>

namespace oxbow::litert {

enum Accelerator : int { kCpu = 1, kNpu = 4 };
enum ElementType : int { kInt8 = 9 };
enum OptionTag : int { kCompilerFolder = 0, kDispatchFolder = 1, kLeastSeverity = 25 };
enum ValueType : int { kInteger = 2, kText = 8 };
enum Severity : int { kErrors = 3 };

struct Environment;
struct Model;
struct Options;
struct OpaqueOptions;
struct CompiledModel;
struct TensorBuffer;

struct EnvironmentOption {
  int tag;
  int padding;
  int type;
  union {
    int64_t integer;
    const char* text;
  };
};
static_assert(sizeof(void*) != 8 || sizeof(EnvironmentOption) == 24);

inline constexpr size_t kMaxRank = 8;

struct TensorType {
  int element;
  /// The lowest 7 bits; then one that says whether there are strides.
  uint32_t rank;
  int32_t dimensions[kMaxRank];
  uint32_t strides[kMaxRank];
};

using Deallocator = void (*)(void* memory);

/// name of the pointer, name of the symbol, result, arguments.
#define OXB_LITERT_CALLS(CALL)                                                                    \
  CALL(create_environment, LiteRtCreateEnvironment, int,                                          \
       (int count, const EnvironmentOption* options, Environment** made))                         \
  CALL(destroy_environment, LiteRtDestroyEnvironment, void, (Environment*))                       \
  CALL(create_model, LiteRtCreateModelFromBuffer, int,                                            \
       (Environment*, const void* data, size_t bytes, Model** made))                              \
  CALL(destroy_model, LiteRtDestroyModel, void, (Model*))                                         \
  CALL(create_options, LiteRtCreateOptions, int, (Options * *made))                               \
  CALL(destroy_options, LiteRtDestroyOptions, void, (Options*))                                   \
  CALL(set_accelerators, LiteRtSetOptionsHardwareAccelerators, int, (Options*, int accelerators)) \
  CALL(create_opaque, LiteRtCreateOpaqueOptions, int,                                             \
       (const char* name, void* data, Deallocator free, OpaqueOptions** made))                    \
  CALL(add_opaque, LiteRtAddOpaqueOptions, int, (Options*, OpaqueOptions*))                       \
  CALL(compile, LiteRtCreateCompiledModel, int,                                                   \
       (Environment*, Model*, Options*, CompiledModel * *made))                                   \
  CALL(destroy_compiled, LiteRtDestroyCompiledModel, void, (CompiledModel*))                      \
  CALL(create_buffer, LiteRtCreateTensorBufferFromHostMemory, int,                                \
       (const TensorType*, void* memory, size_t bytes, Deallocator free, TensorBuffer** made))    \
  CALL(destroy_buffer, LiteRtDestroyTensorBuffer, void, (TensorBuffer*))                          \
  CALL(run, LiteRtRunCompiledModel, int,                                                          \
       (CompiledModel*, size_t signature, size_t input_count, TensorBuffer * *inputs,             \
        size_t output_count, TensorBuffer * *outputs))

struct Calls {
#define OXB_CALL(name, symbol, result, arguments) result(*name) arguments;
  OXB_LITERT_CALLS(OXB_CALL)
#undef OXB_CALL
};

}  // namespace oxbow::litert
