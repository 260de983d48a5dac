#pragma once

// What a device is: something beside the CPU that runs ranges of a session's steps in memory of its own.
//
//   open | bind every step | count                           tells its bytes; nothing is taken yet
//        | place | bind every step again | record            takes them, prepares its commands
//        | to_device | run, range after range | to_host      as often as the session wants
//   close
//
// The session asks, in this order, and owns the one question that has two answers: whose copy of the states and
// activations is newer (runtime/session/host_view.h). A device is a table of functions and a context, so that one
// behind a C interface can be written down as well.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/op.h"

namespace oxbow {

struct Model;
class NpuHandle;

/// What a device is opened with besides the model.
struct DeviceOptions {
  /// NPUs only. The device keeps the handle alive.
  NpuHandle* npu = nullptr;
  uint32_t npu_least_rows = 0;
  bool npu_shadow = false;

  friend bool operator==(const DeviceOptions&, const DeviceOptions&) = default;
};

/// Where a step's tensor lies: a region of the session and the bytes there, scales included.
enum class TensorRegion : uint8_t { kWeights, kStates, kActivations, kOutput };

struct TensorPlace {
  TensorRegion region = TensorRegion::kActivations;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class StepPlaces {
 public:
  /// Of the index-th input or output of the step.
  virtual TensorPlace place(bool output, size_t index) const = 0;

 protected:
  ~StepPlaces() = default;
};

/// A step that the op's own bind accepted for the CPU. The references live as long as the call.
struct DeviceStep {
  const OpDef& op;
  BindContext& context;
  const StepPlaces& places;
  /// The CPU's way to run it; without params while bytes are counted.
  RunFunction run;
  const void* params;
};

/// Bytes of a session that move to the device's memory, alignment included.
struct DeviceSizes {
  size_t states = 0;
  /// At the start of the states, and the host's alone: never copied.
  size_t state_header = 0;
  size_t activations = 0;
};

/// Where the host finds what it would otherwise have in the arena; valid until close.
struct DeviceAddresses {
  std::byte* states = nullptr;
  std::byte* activations = nullptr;
};

/// Consecutive steps, all claimed by the device, of one entry point.
///
/// An entry point begins and ends with a range. When its first or last step is the CPU's, that range is empty: in the
/// first the device gets to know the inputs, which the host has placed; after the last the caller has the outputs.
/// After each, steps on the CPU that follow find what they read; before each, the device finds what they wrote.
struct DeviceRange {
  uint32_t entry = 0;
  uint32_t first_step = 0;
  uint32_t end_step = 0;
  /// Not null: told how long each step took.
  void (*timed)(void* timed_context, uint32_t step, uint64_t nanoseconds) = nullptr;
  void* timed_context = nullptr;
};

struct DeviceDriver {
  /// Who computes its steps, as oxb_session_step_provider gives it.
  const char* name;

  /// One for each session. kNoDevice with the reason when there is none. `model` outlives it.
  Status (*open)(const Model& model, const DeviceOptions& options, void** device, Error* error);
  void (*close)(void* device);

  /// Shows it the next step of the model, entry point after entry point; steps that it does not claim are the CPU's,
  /// and it must know what they touch. Twice, like the op's bind: before count and after place.
  Status (*bind)(void* device, const DeviceStep& step, bool* claimed, Error* error);
  Status (*count)(void* device, const DeviceSizes& sizes, size_t* bytes, Error* error);
  Status (*place)(void* device, const DeviceSizes& sizes, DeviceAddresses* addresses, Error* error);
  Status (*record)(void* device, Error* error);

  Status (*run)(void* device, const DeviceRange& range, RunContext& context);
  /// Whole states and activations to where the host sees them; whole states to the device. Nothing to do where
  /// both see the same memory.
  Status (*to_host)(void* device, Error* error);
  Status (*to_device)(void* device, Error* error);

  /// From now on everything that needs the device fails with kDeviceLost.
  void (*lose)(void* device);
  bool (*is_lost)(const void* device);
  /// Taken from the device now.
  size_t (*bytes)(const void* device);

  /// Code compiled for the device, for later processes; both null when there is none. What is not this device's is
  /// ignored when read. `*bytes` is how many there are; with a null buffer nothing is written.
  Status (*read_cache)(void* device, std::span<const std::byte> cache, Error* error);
  Status (*write_cache)(void* device, std::span<std::byte> buffer, size_t* bytes, Error* error);

  /// It works on the session's own memory: states and activations stay in the arena and place gives no addresses. Scratch
  /// for its steps is there too, since it may run them as the CPU does.
  bool in_arena = false;
};

/// An open device, or none.
struct Device {
  const DeviceDriver* driver = nullptr;
  void* self = nullptr;

  explicit operator bool() const { return driver != nullptr; }
  void close() {
    if (driver != nullptr) driver->close(self);
    *this = {};
  }
};

}  // namespace oxbow
