#pragma once

// The interface between the session, which knows no op, and the ops, which know no graph.
//
// bind  validates one step (types, shapes, options), picks kernels, fills a params struct and asks for
//       scratch. It runs once to count bytes, with null tensor pointers, and once to place: it must
//       decide from shapes and options alone and never touch tensor data.
// run   computes. It allocates nothing and checks nothing but what input data can break.

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/backends.h"

namespace oxbow::schema {
struct Step;
}

namespace oxbow {

/// Two for each entry point and one for each kind of rows that leave a memory: enough for a thousand layers that
/// each have their own, and far below what Tensor::rows_symbol can hold.
inline constexpr size_t kMaxSymbols = 1024;
/// Of one entry point; a run finds each by its name.
inline constexpr size_t kMaxInputs = 64;
inline constexpr size_t kMaxEntries = 8;
inline constexpr size_t kMaxParamsBytes = 2048;

/// An object that an op creates at bind, such as a layer of another library; destroyed with the session. Part of
/// the op's params.
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
  /// Whether a step of this run has set each symbol; null: nobody asks.
  bool* symbols_set = nullptr;

  uint32_t rows(const Tensor& tensor) const {
    return tensor.rows_symbol < 0 ? tensor.rows : symbols[tensor.rows_symbol];
  }
  /// For a step that counts the rows it gives. Several may count by one symbol, such as the memories of all
  /// layers, but if they disagreed there would be rows that nobody wrote in this run.
  Status set_rows(const Tensor& tensor, uint32_t rows) {
    uint32_t& symbol = symbols[tensor.rows_symbol];
    if (symbols_set != nullptr) {
      if (symbols_set[tensor.rows_symbol] && symbol != rows) {
        return fail(error, Status::kFileCorrupt, "tensor '%.80s': %u rows, an earlier step gave %u",
                    tensor.name, rows, symbol);
      }
      symbols_set[tensor.rows_symbol] = true;
    }
    symbol = rows;
    return Status::kOk;
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
  /// True when this step may set the symbol with RunContext::set_rows: it counts no rows of the caller's, and
  /// no earlier step that did not set it has used it.
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
  /// While counting: what a library will take from the system for this step, as far as it can be told.
  virtual void expect_library_bytes(size_t) {}
  /// When placing a session that uses the working memory of another: that one's params of this step,
  /// which outlive these. Otherwise null.
  virtual const void* lender_params() const = 0;
  /// Each row of the output comes from the same row of the inputs and from weights alone.
  virtual void set_by_row() {}
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

/// What a device shows an op's bind function for it; a device of each kind has a context of its own.
class DeviceBindContext {
 protected:
  ~DeviceBindContext() = default;
};
using DeviceBind = Status (*)(DeviceBindContext& context);

/// One op: its place in the registry is its opcode.
struct OpDef {
  const char* name;
  /// Sets `run` on success; the params are those last asked for with params().
  Status (*bind)(BindContext& context, RunFunction* run);
  /// By kind of device; null: the op is the CPU's there.
  std::array<DeviceBind, kDeviceKinds> bind_device = {};
};

/// All ops of this library, indexed by schema::OpCode. Defined in ops/registry.cc.
std::span<const OpDef> builtin_ops();

}  // namespace oxbow
