#include "runtime/device/npu/ethosu/plugin.h"

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "runtime/base/checked.h"
#include "runtime/device/npu/ethosu/accel.h"
#include "runtime/device/npu/ethosu/stream.h"

namespace accel = oxbow::ethosu_accel;

struct oxb_npu_device {
  /// Not null: the program's own, in place of the system.
  const oxb_ethosu_driver* driver = nullptr;
  const oxbow::EthosuSystem* system = nullptr;
  int file = -1;
  uint32_t config = 0;
  size_t sram_bytes = 0;
  int64_t timeout_ns = 0;
  char target[24] = {};
  const char* targets[1] = {};
};

namespace {

constexpr size_t kMaxBuckets = 8;
// Of a chip's regions and streams.
constexpr size_t kDriverAlignment = 16;
constexpr size_t kHostAlignment = 64;
// The kernel gives whole pages.
constexpr size_t kPage = 4096;
constexpr const char* kDefaultDevice = "/dev/accel/accel0";
constexpr long kDefaultTimeoutMs = 5000;

}  // namespace

/// Lies in memory of the library's.
struct oxb_npu_program {
  oxb_npu_device* device = nullptr;
  struct Bucket {
    uint32_t stream = 0;
    uint32_t weights = 0;
    oxbow::EthosuHeader header;
    /// In the model file, where a driver of the program's takes them.
    std::span<const uint32_t> actions;
    std::span<const std::byte> encoded;
  } buckets[kMaxBuckets];
  uint32_t bucket_count = 0;
  uint32_t scratch = 0;
  size_t scratch_bytes = 0;
  std::byte* rows = nullptr;
  size_t taken = 0;
};

namespace oxbow {
namespace {

using Device = oxb_npu_device;
using Program = oxb_npu_program;

oxb_npu_status refuse(oxb_npu_status status, const char* text, char* why, size_t why_bytes) {
  std::snprintf(why, why_bytes, "%s", text);
  return status;
}

bool call(const Device& device, unsigned long request, void* argument) {
  return device.system->call(device.system->context, device.file, request, argument) == 0;
}

std::span<const std::byte> bytes_of(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

bool read_settings(const oxb_npu_host& host, Device& device, const char** path, char* why,
                   size_t why_bytes) {
  long timeout_ms = kDefaultTimeoutMs;
  *path = kDefaultDevice;
  for (size_t i = 0; i < host.key_count; ++i) {
    if (std::strcmp(host.keys[i], "device") == 0) {
      *path = host.values[i];
    } else if (std::strcmp(host.keys[i], "timeout_ms") == 0) {
      char* end = nullptr;
      timeout_ms = std::strtol(host.values[i], &end, 10);
      if (*end != '\0' || timeout_ms <= 0 || timeout_ms > 3600000) {
        std::snprintf(why, why_bytes, "timeout_ms is '%.20s', expected 1 to 3600000",
                      host.values[i]);
        return false;
      }
    } else {
      std::snprintf(why, why_bytes, "there is no setting '%.40s'; there are device and timeout_ms",
                    host.keys[i]);
      return false;
    }
  }
  device.timeout_ns = int64_t{timeout_ms} * 1000000;
  return true;
}

/// On a chip that the program reaches itself.
oxb_npu_status open_driver(const oxb_npu_host& host, const oxb_ethosu_driver& driver,
                           Device& device, char* why, size_t why_bytes) {
  if (driver.size < sizeof(driver) || driver.target == nullptr || driver.invoke == nullptr) {
    return refuse(OXB_NPU_FAILED, "the driver has no target or no function", why, why_bytes);
  }
  if (host.key_count != 0) {
    return refuse(OXB_NPU_FAILED, "with a driver there are no settings", why, why_bytes);
  }
  if (reinterpret_cast<uintptr_t>(driver.fast) % kDriverAlignment != 0) {
    return refuse(OXB_NPU_FAILED, "the driver's fast memory is not aligned", why, why_bytes);
  }
  if (std::snprintf(device.target, sizeof(device.target), "%s", driver.target) >=
      static_cast<int>(sizeof(device.target))) {
    return refuse(OXB_NPU_NO_DEVICE, "the driver's target is unknown", why, why_bytes);
  }
  device.driver = &driver;
  device.sram_bytes = driver.fast == nullptr ? 0 : driver.fast_bytes;
  return OXB_NPU_OK;
}

oxb_npu_status open_device(const oxb_npu_host* host, Device** made, char* why, size_t why_bytes) {
  const auto& plugin = *reinterpret_cast<const EthosuPlugin*>(host->plugin);
  auto* device = new (std::nothrow) Device();
  if (device == nullptr) return refuse(OXB_NPU_NO_MEMORY, "no memory", why, why_bytes);
  device->targets[0] = device->target;
  if (host->driver != nullptr) {
    const oxb_npu_status status = open_driver(
        *host, *static_cast<const oxb_ethosu_driver*>(host->driver), *device, why, why_bytes);
    if (status == OXB_NPU_OK) {
      *made = device;
    } else {
      delete device;
    }
    return status;
  }
  device->system = plugin.system;
  const char* path = nullptr;
  if (!read_settings(*host, *device, &path, why, why_bytes)) {
    delete device;
    return OXB_NPU_FAILED;
  }
  device->file = device->system->open(device->system->context, path);
  if (device->file < 0) {
    std::snprintf(why, why_bytes, "%.80s cannot be opened", path);
    delete device;
    return OXB_NPU_NO_DEVICE;
  }
  accel::NpuInfo info = {};
  accel::DevQuery query = {0, sizeof(info), reinterpret_cast<uintptr_t>(&info)};
  if (!call(*device, accel::kDevQuery, &query) || !ethosu_target(info.config, device->target)) {
    device->system->close(device->system->context, device->file);
    delete device;
    return refuse(OXB_NPU_NO_DEVICE, "the device is no Ethos-U that is known", why, why_bytes);
  }
  device->config = info.config;
  device->sram_bytes = size_t{info.sram_size} * 1024;
  *made = device;
  return OXB_NPU_OK;
}

void close_device(Device* device) {
  if (device->system != nullptr) device->system->close(device->system->context, device->file);
  delete device;
}

oxb_npu_status describe(Device* device, oxb_npu_caps* caps, char*, size_t) {
  caps->name = device->target;
  caps->targets = device->targets;
  caps->target_count = 1;
  caps->memory = OXB_NPU_MEMORY_HOST;
  caps->flags = OXB_NPU_ROUNDS_INTEGERS;
  caps->result = OXB_NPU_FORMULA;
  return OXB_NPU_OK;
}

/// Null when the bucket is usable. `scratch` becomes at least what it needs.
const char* check_bucket(const Device& device, const oxb_npu_layer& layer,
                         const oxb_npu_bucket& bucket, size_t* scratch, bool* is_stale) {
  EthosuCommands commands;
  if (reinterpret_cast<uintptr_t>(bucket.commands) % 4 != 0) return "the commands are not aligned";
  const char* wrong =
      read_ethosu_commands(bytes_of(bucket.commands, bucket.command_bytes), &commands);
  if (wrong != nullptr) return wrong;
  char target[24];
  if (!ethosu_target(commands.config, target) || std::strcmp(target, layer.target) != 0 ||
      (device.driver == nullptr && commands.config != device.config)) {
    *is_stale = true;
    return "it was compiled for another chip";
  }
  const bool is_exact = layer.result == OXB_NPU_EXACT_SUMS;
  uint64_t input = 0, output = 0;
  if (!checked_mul(bucket.rows, layer.depth, &input) ||
      !checked_mul(uint64_t{bucket.rows} * (is_exact ? 4 : 1), layer.channels, &output) ||
      commands.header.input_bytes != input || commands.header.output_bytes != output) {
    return "it is a layer of another shape";
  }
  if (commands.header.fast_bytes > device.sram_bytes) return "the device has too little SRAM";
  if (bucket.weight_bytes > UINT32_MAX) return "the weights are too large";
  // Sums of it are made below.
  if (commands.header.scratch_bytes > SIZE_MAX / 4) return "it needs too much memory";
  if (device.driver != nullptr &&
      (reinterpret_cast<uintptr_t>(commands.actions.data()) % kDriverAlignment != 0 ||
       reinterpret_cast<uintptr_t>(bucket.weights) % kDriverAlignment != 0)) {
    return "commands or weights are not aligned";
  }
  wrong = check_ethosu_stream(commands, bucket.weight_bytes,
                              is_exact ? EthosuResult::kSums : EthosuResult::kCodes);
  if (wrong == nullptr && *scratch < commands.header.scratch_bytes) {
    *scratch = commands.header.scratch_bytes;
  }
  return wrong;
}

bool is_first_with_weights(const oxb_npu_layer& layer, uint32_t bucket) {
  for (uint32_t i = 0; i < bucket; ++i) {
    if (layer.buckets[i].weights == layer.buckets[bucket].weights) return false;
  }
  return true;
}

size_t stream_bytes(const oxb_npu_bucket& bucket) {
  EthosuCommands commands;
  (void)read_ethosu_commands(bytes_of(bucket.commands, bucket.command_bytes), &commands);
  return commands.stream.size_bytes();
}

oxb_npu_status check(Device* device, const oxb_npu_layer* layer, oxb_npu_needs* needs, char* why,
                     size_t why_bytes) {
  if (layer->result == OXB_NPU_TOLERANCE || layer->bucket_count > kMaxBuckets) {
    return refuse(OXB_NPU_UNUSABLE, "not a layer of this kind", why, why_bytes);
  }
  size_t scratch = 0;
  for (uint32_t i = 0; i < layer->bucket_count; ++i) {
    const oxb_npu_bucket& bucket = layer->buckets[i];
    bool is_stale = false;
    if (const char* wrong = check_bucket(*device, *layer, bucket, &scratch, &is_stale);
        wrong != nullptr) {
      return refuse(is_stale ? OXB_NPU_STALE : OXB_NPU_UNUSABLE, wrong, why, why_bytes);
    }
    if (device->driver != nullptr) continue;
    needs->device_bytes += round_up(stream_bytes(bucket), kPage);
    if (is_first_with_weights(*layer, i)) {
      needs->device_bytes += round_up(bucket.weight_bytes, kPage);
    }
  }
  static_assert(alignof(Program) <= kHostAlignment);
  needs->host_alignment = kHostAlignment;
  needs->host_bytes = sizeof(Program);
  if (device->driver != nullptr) {
    needs->host_bytes = round_up(sizeof(Program), kHostAlignment) + scratch;
  } else {
    needs->device_bytes += round_up(scratch, kPage);
  }
  return OXB_NPU_OK;
}

/// A buffer of the device's, and where the host sees it.
bool make_buffer(Program& program, size_t bytes, uint32_t* handle, std::byte** address) {
  const Device& device = *program.device;
  accel::BoCreate create = {round_up(bytes, kPage), 0, 0};
  if (!call(device, accel::kBoCreate, &create)) return false;
  *handle = create.handle;
  program.taken += round_up(bytes, kPage);
  accel::BoMmapOffset offset = {create.handle, 0, 0};
  if (!call(device, accel::kBoMmapOffset, &offset)) return false;
  *address = static_cast<std::byte*>(device.system->map(device.system->context, device.file,
                                                        offset.offset, round_up(bytes, kPage)));
  return *address != nullptr;
}

/// All is where it will be read, but for rows and results: those are behind the program.
bool load_for_driver(Program& program, const oxb_npu_layer& layer) {
  for (uint32_t i = 0; i < layer.bucket_count; ++i) {
    const oxb_npu_bucket& bucket = layer.buckets[i];
    EthosuCommands commands;
    if (read_ethosu_commands(bytes_of(bucket.commands, bucket.command_bytes), &commands) !=
        nullptr) {
      return false;
    }
    program.buckets[i].header = commands.header;
    program.buckets[i].actions = commands.actions;
    program.buckets[i].encoded = bytes_of(bucket.weights, bucket.weight_bytes);
  }
  program.rows = reinterpret_cast<std::byte*>(&program) + round_up(sizeof(Program), kHostAlignment);
  return true;
}

bool load_bucket(Program& program, const oxb_npu_layer& layer, uint32_t index) {
  const Device& device = *program.device;
  const oxb_npu_bucket& from = layer.buckets[index];
  Program::Bucket& to = program.buckets[index];
  EthosuCommands commands;
  if (read_ethosu_commands(bytes_of(from.commands, from.command_bytes), &commands) != nullptr) {
    return false;
  }
  to.header = commands.header;
  accel::StreamCreate create = {static_cast<uint32_t>(commands.stream.size_bytes()), 0,
                                reinterpret_cast<uintptr_t>(commands.stream.data()), 0, 0};
  if (!call(device, accel::kStreamCreate, &create)) return false;
  to.stream = create.handle;
  program.taken += round_up(commands.stream.size_bytes(), kPage);
  for (uint32_t i = 0; i < index; ++i) {
    if (layer.buckets[i].weights == from.weights) to.weights = program.buckets[i].weights;
  }
  if (to.weights != 0) return true;
  std::byte* address = nullptr;
  if (!make_buffer(program, from.weight_bytes, &to.weights, &address)) return false;
  std::memcpy(address, from.weights, from.weight_bytes);
  device.system->unmap(device.system->context, address, round_up(from.weight_bytes, kPage));
  return true;
}

void drop(const Device& device, uint32_t handle) {
  accel::GemClose close = {handle, 0};
  if (handle != 0) (void)call(device, accel::kGemClose, &close);
}

void unload(Program* program) {
  const Device& device = *program->device;
  if (device.driver != nullptr) return;
  if (program->rows != nullptr) {
    device.system->unmap(device.system->context, program->rows,
                         round_up(program->scratch_bytes, kPage));
  }
  drop(device, program->scratch);
  for (uint32_t i = 0; i < program->bucket_count; ++i) {
    drop(device, program->buckets[i].stream);
    bool is_first = true;
    for (uint32_t k = 0; k < i; ++k) {
      is_first &= program->buckets[k].weights != program->buckets[i].weights;
    }
    if (is_first) drop(device, program->buckets[i].weights);
  }
}

oxb_npu_status load(Device* device, const oxb_npu_layer* layer, void* memory, Program** made,
                    char* why, size_t why_bytes) {
  auto* program = new (memory) Program();
  program->device = device;
  program->bucket_count = layer->bucket_count;
  if (device->driver != nullptr) {
    if (!load_for_driver(*program, *layer)) {
      return refuse(OXB_NPU_FAILED, "the commands are broken", why, why_bytes);
    }
    *made = program;
    return OXB_NPU_OK;
  }
  bool good = true;
  for (uint32_t i = 0; good && i < layer->bucket_count; ++i) {
    good = load_bucket(*program, *layer, i);
    if (program->scratch_bytes < program->buckets[i].header.scratch_bytes) {
      program->scratch_bytes = program->buckets[i].header.scratch_bytes;
    }
  }
  good = good && make_buffer(*program, program->scratch_bytes, &program->scratch, &program->rows);
  if (!good) {
    unload(program);
    return refuse(OXB_NPU_NO_MEMORY, "the device gives no buffers", why, why_bytes);
  }
  *made = program;
  return OXB_NPU_OK;
}

size_t taken_bytes(const Program* program) { return program->taken; }

/// Null: it is done.
const char* invoke(const Program& program, const Program::Bucket& bucket) {
  const oxb_ethosu_driver& driver = *program.device->driver;
  // Weights are only read: the stream was checked for it.
  void* const regions[kEthosuRegions] = {const_cast<std::byte*>(bucket.encoded.data()),
                                         program.rows, driver.fast};
  const size_t bytes[kEthosuRegions] = {bucket.encoded.size(), bucket.header.scratch_bytes,
                                        bucket.header.fast_bytes};
  const int32_t result = driver.invoke(driver.context, bucket.actions.data(),
                                       bucket.actions.size_bytes(), regions, bytes, kEthosuRegions);
  return result == 0 ? nullptr : "the driver does not finish its job";
}

/// Null: it is done.
const char* submit_and_wait(const Program& program, const Program::Bucket& bucket) {
  const Device& device = *program.device;
  accel::Job job = {};
  job.stream = bucket.stream;
  job.sram_size = bucket.header.fast_bytes;
  job.regions[kEthosuWeights] = bucket.weights;
  job.regions[kEthosuScratch] = program.scratch;
  accel::Submit submit = {reinterpret_cast<uintptr_t>(&job), 1, 0};
  if (!call(device, accel::kSubmit, &submit)) return "the device takes no job";
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  accel::BoWait wait = {program.scratch, 0,
                        int64_t{now.tv_sec} * 1000000000 + now.tv_nsec + device.timeout_ns};
  if (!call(device, accel::kBoWait, &wait)) return "the device does not finish its job";
  return nullptr;
}

oxb_npu_status run(Program* program, uint32_t index, const void* input, void* output, char* why,
                   size_t why_bytes) {
  const Program::Bucket& bucket = program->buckets[index];
  std::memcpy(program->rows + bucket.header.input_offset, input, bucket.header.input_bytes);
  const char* wrong = program->device->driver != nullptr ? invoke(*program, bucket)
                                                         : submit_and_wait(*program, bucket);
  if (wrong != nullptr) return refuse(OXB_NPU_FAILED, wrong, why, why_bytes);
  std::memcpy(output, program->rows + bucket.header.output_offset, bucket.header.output_bytes);
  return OXB_NPU_OK;
}

constexpr oxb_npu_plugin kTable = {sizeof(oxb_npu_plugin),
                                   OXB_NPU_MAJOR,
                                   OXB_NPU_MINOR,
                                   "ethosu",
                                   open_device,
                                   close_device,
                                   describe,
                                   check,
                                   load,
                                   unload,
                                   taken_bytes,
                                   run,
                                   nullptr,
                                   nullptr};

}  // namespace

EthosuPlugin make_ethosu_plugin(const EthosuSystem* system) { return {kTable, system}; }

constinit const EthosuPlugin kEthosuPlugin = {kTable, &kLinuxEthosuSystem};

}  // namespace oxbow
