#pragma once

// A plug-in and the device it has opened: what oxb_npu is. Counted by those who use it: the application, and each session.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/api/oxbow_npu.h"
#include "runtime/base/status.h"

namespace oxbow {

struct NpuOpenOptions {
  /// A built-in name, a path, or NAME of liboxbow_npu_NAME.so.
  const char* plugin = nullptr;
  /// Not null: in place of the name.
  const oxb_npu_plugin* linked = nullptr;
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t key_count = 0;
  void (*log)(void* context, int32_t level, const char* text) = nullptr;
  void* log_context = nullptr;
  const void* driver = nullptr;
};

/// Of all texts that plug-ins write.
inline constexpr size_t kNpuWhyBytes = 128;

struct NpuWhy {
  char text[kNpuWhyBytes] = {};
  /// Ends it, whatever the plug-in wrote, keeps it on one line, and what is not ASCII out: it may be cut, or no text at all.
  const char* read();
};

class NpuHandle {
 public:
  static Status open(const NpuOpenOptions& options, NpuHandle** handle, Error* error);
  void keep() { users_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  const char* name() const { return name_.text; }
  const oxb_npu_caps& caps() const { return caps_; }
  /// Its int8 codes are those of the formula in integers.
  bool rounds_integers() const { return (caps_.flags & OXB_NPU_ROUNDS_INTEGERS) != 0; }
  bool runs_target(const char* target) const;

  // The plug-in's functions, one at a time.
  oxb_npu_status check(const oxb_npu_layer& layer, oxb_npu_needs* needs, NpuWhy* why);
  oxb_npu_status load(const oxb_npu_layer& layer, void* memory, oxb_npu_program** program,
                      NpuWhy* why);
  void unload(oxb_npu_program* program);
  size_t taken_bytes(const oxb_npu_program* program);
  oxb_npu_status run(oxb_npu_program* program, uint32_t bucket, const void* input, void* output,
                     NpuWhy* why);

  NpuHandle(const NpuHandle&) = delete;
  NpuHandle& operator=(const NpuHandle&) = delete;

 private:
  class Lock;

  NpuHandle() { pthread_mutex_init(&mutex_, nullptr); }
  ~NpuHandle();
  Status find(const NpuOpenOptions& options, Error* error);
  Status take(const oxb_npu_plugin* plugin, const char* from, Error* error);
  Status open_device(const NpuOpenOptions& options, Error* error);
  Status describe(Error* error);

  std::atomic<uint32_t> users_{1};
  pthread_mutex_t mutex_;
  void* library_ = nullptr;
  /// As far as both sides know it.
  oxb_npu_plugin plugin_ = {};
  NpuWhy name_;
  oxb_npu_host host_ = {};
  oxb_npu_device* device_ = nullptr;
  oxb_npu_caps caps_ = {};
};

/// Plug-ins of this library, by name; null: there is none.
const oxb_npu_plugin* built_in_npu_plugin(const char* name);

}  // namespace oxbow
