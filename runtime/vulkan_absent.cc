// In the place of vulkan_backend.cc in a library built without Vulkan. No backend can be opened, so
// nothing else is ever called.

#include "runtime/vulkan_backend.h"

namespace oxbow {

namespace {

Status absent(Error* error) {
  return fail(error, Status::kNoDevice, "this library was built without Vulkan");
}

}  // namespace

Status open_vulkan(VulkanBackend**, Error* error) { return absent(error); }
void close_vulkan(VulkanBackend*) {}
Status bind_vulkan_step(VulkanBackend&, const OpDef&, BindContext&, const VulkanPlaces&, bool*,
                        Error* error) {
  return absent(error);
}
Status count_vulkan(VulkanBackend&, const Model&, const VulkanSizes&, size_t*, Error* error) {
  return absent(error);
}
Status place_vulkan(VulkanBackend&, const Model&, const VulkanSizes&, VulkanAddresses*,
                    Error* error) {
  return absent(error);
}
Status record_vulkan(VulkanBackend&, const Session&, Error* error) { return absent(error); }
Status run_vulkan(const Session&, uint32_t, RunContext& context) { return absent(context.error); }
void lose_vulkan(VulkanBackend&) {}
Status vulkan_to_host(VulkanBackend&, Error* error) { return absent(error); }
void vulkan_states_changed(VulkanBackend&) {}
size_t vulkan_bytes(const VulkanBackend&) { return 0; }
Status read_vulkan_cache(VulkanBackend&, std::span<const std::byte>, Error* error) {
  return absent(error);
}
Status vulkan_cache(VulkanBackend&, std::span<std::byte>, size_t*, Error* error) {
  return absent(error);
}

}  // namespace oxbow
