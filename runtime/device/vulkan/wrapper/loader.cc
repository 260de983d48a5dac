#include <dlfcn.h>

#include "runtime/device/vulkan/wrapper/api.h"
#include "runtime/device/vulkan/wrapper/hooks.h"

namespace oxbow::vulkan {
namespace {

Status missing_function(const char* name, Error* error) {
  return fail(error, Status::kNoDevice, "the Vulkan library has no vk%s: it is too old", name);
}

}  // namespace

Status open_loader(Api* api, Error* error) {
  // Debian has the first name, Android the second.
  const char* const names[] = {"libvulkan.so.1", "libvulkan.so"};
  if (hooks().library != nullptr) {
    api->library = dlopen(hooks().library, RTLD_NOW | RTLD_LOCAL);
  } else {
    for (const char* name : names) {
      if (api->library == nullptr) api->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (api->library == nullptr) {
    return fail(error, Status::kNoDevice,
                "this machine has no Vulkan library (libvulkan.so): use the backend cpu");
  }
  api->GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(api->library, "vkGetInstanceProcAddr"));
  if (api->GetInstanceProcAddr == nullptr) return missing_function("GetInstanceProcAddr", error);
#define X(name)                                                                             \
  api->name =                                                                               \
      reinterpret_cast<PFN_vk##name>(api->GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name)); \
  if (api->name == nullptr) return missing_function(#name, error);
  OXB_VULKAN_GLOBAL(X)
#undef X
  return Status::kOk;
}

void close_loader(Api* api) {
  if (api->library != nullptr) dlclose(api->library);
  *api = {};
}

Status find_instance_functions(VkInstance instance, Api* api, Error* error) {
#define X(name)                                                                               \
  api->name = reinterpret_cast<PFN_vk##name>(api->GetInstanceProcAddr(instance, "vk" #name)); \
  if (api->name == nullptr) return missing_function(#name, error);
  OXB_VULKAN_INSTANCE(X)
#undef X
  api->CreateDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      api->GetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  api->DestroyDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      api->GetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
  return Status::kOk;
}

Status find_device_functions(VkDevice device, Api* api, Error* error) {
#define X(name)                                                                           \
  api->name = reinterpret_cast<PFN_vk##name>(api->GetDeviceProcAddr(device, "vk" #name)); \
  if (api->name == nullptr) return missing_function(#name, error);
  OXB_VULKAN_DEVICE(X)
#undef X
  return Status::kOk;
}

}  // namespace oxbow::vulkan
