#include "runtime/device/vulkan/wrapper/context.h"

#include <new>

namespace oxbow::vulkan {
namespace {

struct Shared {
  std::mutex mutex;
  /// The one for new sessions; null: none is open.
  Context* context = nullptr;
};

Shared& shared() {
  static Shared the_shared;
  return the_shared;
}

void close(Context* context) {
  if (context->device.handle != VK_NULL_HANDLE && context->device.api().DestroyDevice != nullptr) {
    context->pipelines.close(context->device);
    context->cache.close(context->device);
  }
  context->device.close();
  delete context;
}

}  // namespace

Status acquire_context(Context** context, Error* error) {
  const std::lock_guard lock(shared().mutex);
  if (shared().context == nullptr || shared().context->lost) {
    auto* made = new (std::nothrow) Context();
    if (made == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a device");
    Status status = made->device.open(error);
    if (status == Status::kOk) status = made->cache.open(made->device, error);
    if (status != Status::kOk) {
      close(made);
      return status;
    }
    shared().context = made;
  }
  *context = shared().context;
  ++(*context)->users;
  return Status::kOk;
}

void release_context(Context* context) {
  const std::lock_guard lock(shared().mutex);
  if (--context->users > 0) return;
  if (shared().context == context) shared().context = nullptr;
  close(context);
}

}  // namespace oxbow::vulkan
