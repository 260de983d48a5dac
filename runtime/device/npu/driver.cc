// An NPU as runtime/device.h wants one, and the plug-ins that are built in.

#include <cstring>

#include "runtime/device/npu/device.h"
#include "runtime/device/npu/ethosu/plugin.h"
#include "runtime/device/npu/litert/plugin.h"

namespace oxbow {
namespace {

NpuDevice& of(void* device) { return *static_cast<NpuDevice*>(device); }
const NpuDevice& of(const void* device) { return *static_cast<const NpuDevice*>(device); }

Status open(const Model& model, const DeviceOptions& options, void** device, Error* error) {
  NpuDevice* made = nullptr;
  OXB_TRY(NpuDevice::open(model, options, &made, error));
  *device = made;
  return Status::kOk;
}
void close(void* device) { delete &of(device); }

Status bind(void* device, const DeviceStep& step, bool* claimed, Error*) {
  return of(device).bind(step, claimed);
}
Status count(void* device, const DeviceSizes&, size_t* bytes, Error* error) {
  return of(device).count(bytes, error);
}
Status place(void* device, const DeviceSizes&, DeviceAddresses*, Error* error) {
  return of(device).place(error);
}
Status record(void* device, Error* error) { return of(device).load(error); }
Status run(void* device, const DeviceRange& range, RunContext& context) {
  return of(device).run(range, context);
}
Status nothing_to_move(void*, Error*) { return Status::kOk; }
void lose(void* device) { of(device).lose(); }
bool is_lost(const void* device) { return of(device).is_lost(); }
size_t bytes(const void* device) { return of(device).taken_bytes(); }

}  // namespace

const DeviceDriver kNpuDevice = {
    "npu",           open, close,   bind,  count,   place,   record, run, nothing_to_move,
    nothing_to_move, lose, is_lost, bytes, nullptr, nullptr, true,
};

const oxb_npu_plugin* built_in_npu_plugin(const char* name) {
  for (const oxb_npu_plugin* plugin : {&kEthosuPlugin.table, &kLitertPlugin}) {
    if (std::strcmp(name, plugin->name) == 0) return plugin;
  }
  return nullptr;
}

}  // namespace oxbow
