#pragma once

// The interface between the session, which knows no op, and the ops, which know no graph.
//
// bind  validates one step (types, shapes, options), picks kernels, fills a params struct and asks for
//       scratch. It runs once to count bytes, with null tensor pointers, and once to place: it must
//       decide from shapes and options alone and never touch tensor data.
// run   computes. It allocates nothing and checks nothing but what input data can break.

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/base/thread_pool.h"

namespace oxbow::schema {
struct Step;
}

namespace oxbow {

inline constexpr size_t kMaxSymbols = 32;
inline constexpr size_t kMaxEntries = 8;
inline constexpr size_t kMaxParamsBytes = 2048;

/// Who computes. Steps that a library cannot serve run on the CPU kernels.
enum class Backend : uint8_t { kCpu, kReference, kXnnpack, kAcl, kVulkan };

/// Something an op made at the session's creation and that lives as long as it, such as a layer of
/// another library. Part of the op's params.
struct OwnedObject {
  void* object = nullptr;
  void (*destroy)(void* object) = nullptr;
  /// What it took from the system.
  size_t bytes = 0;
  /// Whose work it is: "xnnpack", ...
  const char* provider = nullptr;
  OwnedObject* next = nullptr;
};

/// What a run hands to each step.
struct RunContext {
  /// Actual row counts. Tokens and logits rows are set by the session, others by steps.
  uint32_t* symbols = nullptr;
  RingPosition* rings = nullptr;
  /// Shared by all steps, valid during one step; as large as the largest request.
  std::byte* scratch = nullptr;
  ThreadPool* pool = nullptr;
  Error* error = nullptr;
  /// Tokens of this stream before this run.
  uint64_t position = 0;
  /// Where the caller wants the logits: [rows(output tensor)][width].
  float* caller_output = nullptr;

  uint32_t rows(const Tensor& tensor) const {
    return tensor.rows_symbol < 0 ? tensor.rows : symbols[tensor.rows_symbol];
  }
};

using RunFunction = Status (*)(RunContext& context, const void* params);

/// What bind sees of one step and of the session around it.
class BindContext {
 public:
  virtual const schema::Step& step() const = 0;
  virtual size_t input_count() const = 0;
  virtual size_t output_count() const = 0;
  /// Views by position in the step's lists. The index must be below the count.
  virtual Tensor input(size_t index) const = 0;
  virtual Tensor output(size_t index) const = 0;
  /// Like output(), for an op that can also write straight to the caller's memory. When the returned
  /// `data` is null in run, the rows go to RunContext::caller_output. With plain output() such a step
  /// is refused.
  virtual Tensor output_or_caller(size_t index) const = 0;
  /// True when steps may set this symbol: it is neither the caller's token nor logits count.
  virtual bool may_set_symbol(int32_t symbol) const = 0;
  virtual uint32_t ring_capacity(int32_t ring) const = 0;
  virtual uint32_t symbol_max(int32_t symbol) const = 0;
  /// Threads that may run parts of this step at the same time, the caller's included; at least 1.
  virtual size_t threads() const = 0;
  /// True: always take the reference kernel.
  bool reference_only() const { return backend() == Backend::kReference; }
  virtual Backend backend() const = 0;
  /// False while bytes are counted, when nothing may be made that must be destroyed.
  virtual bool placing() const = 0;
  /// From now on the session destroys `owned.object`, whether or not its creation succeeds. When placing
  /// only.
  virtual void own(OwnedObject& owned) = 0;
  /// When placing a session that uses the working memory of another: that one's params of this step,
  /// which outlive these. Otherwise null.
  virtual const void* elder_params() const = 0;
  /// At least this many bytes of scratch, aligned to 64, during run.
  virtual void request_scratch(size_t bytes) = 0;
  /// Fails with a message that already names the step and its op.
  [[gnu::format(printf, 2, 3)]] virtual Status fail(const char* format, ...) = 0;

  /// Room for the op's parameters, living as long as the session.
  template <typename Params>
  Params& params() {
    static_assert(sizeof(Params) <= kMaxParamsBytes && alignof(Params) <= kTensorAlignment);
    static_assert(std::is_trivially_destructible_v<Params>);
    return *new (allocate_params(sizeof(Params))) Params();
  }

 protected:
  ~BindContext() = default;
  virtual void* allocate_params(size_t bytes) = 0;
};

class VulkanBindContext;

/// One op: its place in the registry is its opcode.
struct OpDef {
  const char* name;
  /// Sets `run` on success; the params are those last asked for with params().
  Status (*bind)(BindContext& context, RunFunction* run);
  /// Null: the op has no shader (runtime/vulkan_op.h).
  Status (*bind_vulkan)(VulkanBindContext& context) = nullptr;
};

/// Whether this library was built with it. Defined in ops/registry.cc.
bool is_built_in(Backend backend);

/// All ops of this library, indexed by schema::OpCode. Defined in ops/registry.cc.
std::span<const OpDef> builtin_ops();

}  // namespace oxbow
