#pragma once

// The one place where a VkResult becomes a Status.

#include <utility>

#include "runtime/device/vulkan/wrapper/api.h"
#include "runtime/device/vulkan/wrapper/hooks.h"

namespace oxbow::vulkan {

/// `what` failed, in words.
Status failed(VkResult result, const char* what, Error* error);

/// What a hook wants of this call; VK_SUCCESS: to be made.
VkResult hooked_result();

/// Makes a call that can fail, unless a hook lets it fail.
template <typename Call>
Status call(const char* what, Error* error, Call&& make) {
  VkResult result = hooked_result();
  if (result == VK_SUCCESS) result = std::forward<Call>(make)();
  return result == VK_SUCCESS ? Status::kOk : failed(result, what, error);
}

/// The same for a call that makes an object, which is counted.
template <typename Call>
Status create(const char* what, Error* error, Call&& make) {
  OXB_TRY(call(what, error, std::forward<Call>(make)));
  ++counters().objects;
  return Status::kOk;
}

/// Destroys `object`, unless there is none, and forgets it.
template <typename Object, typename Destroy>
void destroy(Object* object, Destroy&& how) {
  if (*object == VK_NULL_HANDLE) return;
  how(*object);
  *object = VK_NULL_HANDLE;
  --counters().objects;
}

}  // namespace oxbow::vulkan
