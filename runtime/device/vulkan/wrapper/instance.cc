#include "runtime/device/vulkan/wrapper/instance.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL count_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                             VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data,
                                             void*) {
  if ((severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0) {
    ++counters().errors;
    std::fprintf(stderr, "oxbow: Vulkan validation: %s\n", data->pMessage);
  }
  return VK_FALSE;
}

bool validation_wanted() {
  const char* wanted = std::getenv("OXBOW_VULKAN_VALIDATE");
  return hooks().validation || (wanted != nullptr && std::strcmp(wanted, "1") == 0);
}

bool has_validation_layer(const Api& api) {
  constexpr uint32_t kMost = 64;
  VkLayerProperties layers[kMost];
  uint32_t count = kMost;
  const VkResult result = api.EnumerateInstanceLayerProperties(&count, layers);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(layers[i].layerName, kValidationLayer) == 0) return true;
  }
  return false;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info() {
  VkDebugUtilsMessengerCreateInfoEXT info = {};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = count_message;
  return info;
}

}  // namespace

Status Instance::open(Error* error) {
  OXB_TRY(open_loader(&api, error));
  OXB_TRY(call("its version", error, [&] { return api.EnumerateInstanceVersion(&version); }));
  if (version < VK_API_VERSION_1_1) {
    return fail(error, Status::kNoDevice, "the Vulkan library is of version 1.0: 1.1 is needed");
  }

  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "oxbow";
  version = version < VK_API_VERSION_1_3 ? version : VK_API_VERSION_1_3;
  application.apiVersion = version;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;

  // The messenger is also chained to the instance, which it then watches while that is made and unmade.
  const char* const layers[] = {kValidationLayer};
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                    VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkValidationFeatureEnableEXT enabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messages = messenger_info();
  VkValidationFeaturesEXT validation = {};
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.pNext = &messages;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = enabled;
  const bool validate = validation_wanted();
  if (validate) {
    if (!has_validation_layer(api)) {
      return fail(error, Status::kNoDevice,
                  "validation is asked for and %s is not installed (Debian: "
                  "vulkan-validationlayers)",
                  kValidationLayer);
    }
    info.pNext = &validation;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = layers;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  OXB_TRY(
      create("an instance", error, [&] { return api.CreateInstance(&info, nullptr, &handle); }));
  OXB_TRY(find_instance_functions(handle, &api, error));
  if (!validate) return Status::kOk;
  if (api.CreateDebugUtilsMessengerEXT == nullptr) {
    return fail(error, Status::kNoDevice, "Vulkan's validation has no messenger");
  }
  messages.pNext = nullptr;
  return create("a messenger", error, [&] {
    return api.CreateDebugUtilsMessengerEXT(handle, &messages, nullptr, &messenger);
  });
}

void Instance::close() {
  destroy(&messenger, [&](VkDebugUtilsMessengerEXT object) {
    api.DestroyDebugUtilsMessengerEXT(handle, object, nullptr);
  });
  destroy(&handle, [&](VkInstance object) {
    // Without it the functions were not found, and there is no way to destroy an instance.
    if (api.DestroyInstance != nullptr) api.DestroyInstance(object, nullptr);
  });
  close_loader(&api);
}

}  // namespace oxbow::vulkan
