#pragma once

// The device and what all sessions of a process share with it: made by the first, unmade by the last.

#include <atomic>
#include <cstddef>
#include <mutex>

#include "runtime/device/vulkan/wrapper/device.h"
#include "runtime/device/vulkan/wrapper/pipeline.h"
#include "runtime/device/vulkan/wrapper/proof.h"

namespace oxbow::vulkan {

struct Context {
  Device device;
  /// Nothing can be submitted any more, and new sessions get another context.
  std::atomic<bool> lost = false;
  size_t users = 0;
  /// One thread at a time makes pipelines or reads and writes their cache.
  std::mutex pipelines_mutex;
  PipelineCache cache;
  Proofs proofs;
  Pipelines pipelines;
  /// One thread at a time may give the queue work.
  std::mutex queue_mutex;
};

Status acquire_context(Context** context, Error* error);
void release_context(Context* context);

}  // namespace oxbow::vulkan
