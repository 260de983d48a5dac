#include "runtime/device/npu/litert/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/device/npu/litert/blob.h"
#include "runtime/device/npu/litert/litert.h"

namespace oxbow {
namespace {

constexpr size_t kMaxBuckets = 8;
// Of memory that LiteRT is given.
constexpr size_t kAlignment = 64;
constexpr const char* kLibrary = "libLiteRt.so";

struct Device {
  void* library = nullptr;
  litert::Calls calls = {};
  litert::Environment* environment = nullptr;
  bool on_npu = false;
  /// For the vendor's libraries: whose text it is, and the text.
  char* vendor = nullptr;
  char* vendor_options = nullptr;

  ~Device() {
    if (environment != nullptr) calls.destroy_environment(environment);
    if (library != nullptr) dlclose(library);  // Which only counts.
    std::free(vendor);
    std::free(vendor_options);
  }
};

/// Lies in memory of the library's, as the rows do that follow it.
struct Program {
  Device* device = nullptr;
  struct Bucket {
    litert::Model* model = nullptr;
    litert::CompiledModel* compiled = nullptr;
    litert::TensorBuffer* input = nullptr;
    litert::TensorBuffer* output = nullptr;
    size_t input_bytes = 0, output_bytes = 0;
  } buckets[kMaxBuckets];
  uint32_t bucket_count = 0;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

Device& of(oxb_npu_device* device) { return *reinterpret_cast<Device*>(device); }
Program& of(oxb_npu_program* program) { return *reinterpret_cast<Program*>(program); }

oxb_npu_status refuse(oxb_npu_status status, const char* text, char* why, size_t why_bytes) {
  std::snprintf(why, why_bytes, "%s", text);
  return status;
}

/// LiteRtStatus has the numbers; the library gives no words.
oxb_npu_status refuse_status(oxb_npu_status status, const char* what, int number, char* why,
                             size_t why_bytes) {
  std::snprintf(why, why_bytes, "LiteRT cannot %s: its status is %d", what, number);
  return status;
}

bool read_calls(Device& device, char* why, size_t why_bytes) {
  const auto find = [&](const char* symbol, auto* call) {
    void* found = dlsym(device.library, symbol);
    static_assert(sizeof(*call) == sizeof(found));
    std::memcpy(call, &found, sizeof(found));
    if (found == nullptr) std::snprintf(why, why_bytes, "the library has no %s", symbol);
    return found != nullptr;
  };
#define OXB_CALL(name, symbol, result, arguments) \
  if (!find(#symbol, &device.calls.name)) return false;
  OXB_LITERT_CALLS(OXB_CALL)
#undef OXB_CALL
  return true;
}

struct Settings {
  const char* library = kLibrary;
  const char* accelerator = "cpu";
  const char* compiler = nullptr;
  const char* dispatch = nullptr;
  const char* vendor = nullptr;
  const char* vendor_options = nullptr;
};

bool read_settings(const oxb_npu_host& host, Settings& settings, char* why, size_t why_bytes) {
  const struct {
    const char* key;
    const char** value;
  } known[] = {{"library", &settings.library},   {"accelerator", &settings.accelerator},
               {"compiler", &settings.compiler}, {"dispatch", &settings.dispatch},
               {"vendor", &settings.vendor},     {"vendor_options", &settings.vendor_options}};
  for (size_t i = 0; i < host.key_count; ++i) {
    bool is_known = false;
    for (const auto& one : known) {
      if (std::strcmp(host.keys[i], one.key) != 0) continue;
      *one.value = host.values[i];
      is_known = true;
    }
    if (!is_known) {
      std::snprintf(why, why_bytes,
                    "there is no setting '%.20s'; there are library, accelerator, compiler, "
                    "dispatch, vendor and vendor_options",
                    host.keys[i]);
      return false;
    }
  }
  if (std::strcmp(settings.accelerator, "cpu") != 0 &&
      std::strcmp(settings.accelerator, "npu") != 0) {
    std::snprintf(why, why_bytes, "accelerator is '%.20s', expected cpu or npu",
                  settings.accelerator);
    return false;
  }
  if ((settings.vendor == nullptr) != (settings.vendor_options == nullptr)) {
    std::snprintf(why, why_bytes, "vendor and vendor_options belong together");
    return false;
  }
  return true;
}

/// A copy that lives as long as the device.
bool keep(const char* text, char** copy) {
  if (text == nullptr) return true;
  *copy = strdup(text);
  return *copy != nullptr;
}

oxb_npu_status fill(Device& device, const Settings& settings, char* why, size_t why_bytes) {
  device.on_npu = std::strcmp(settings.accelerator, "npu") == 0;
  if (!keep(settings.vendor, &device.vendor) ||
      !keep(settings.vendor_options, &device.vendor_options)) {
    return refuse(OXB_NPU_NO_MEMORY, "no memory", why, why_bytes);
  }
  // It leaves functions to be called at exit, so it must stay.
  device.library = dlopen(settings.library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (device.library == nullptr) {
    const char* text = dlerror();
    return refuse(OXB_NPU_NO_DEVICE, text == nullptr ? "no library" : text, why, why_bytes);
  }
  if (!read_calls(device, why, why_bytes)) return OXB_NPU_NO_DEVICE;
  litert::EnvironmentOption options[3] = {};
  int count = 0;
  options[count++] = {litert::kLeastSeverity, 0, litert::kInteger, {litert::kErrors}};
  const auto add_folder = [&](litert::OptionTag tag, const char* folder) {
    if (folder == nullptr) return;
    litert::EnvironmentOption& option = options[count++];
    option.tag = tag;
    option.type = litert::kText;
    option.text = folder;
  };
  add_folder(litert::kCompilerFolder, settings.compiler);
  add_folder(litert::kDispatchFolder, settings.dispatch);
  const int status = device.calls.create_environment(count, options, &device.environment);
  if (status == 0) return OXB_NPU_OK;
  return refuse_status(OXB_NPU_NO_DEVICE, "start", status, why, why_bytes);
}

oxb_npu_status open_device(const oxb_npu_host* host, oxb_npu_device** made, char* why,
                           size_t why_bytes) {
  Settings settings;
  if (!read_settings(*host, settings, why, why_bytes)) return OXB_NPU_FAILED;
  auto* device = new (std::nothrow) Device();
  if (device == nullptr) return refuse(OXB_NPU_NO_MEMORY, "no memory", why, why_bytes);
  const oxb_npu_status status = fill(*device, settings, why, why_bytes);
  if (status == OXB_NPU_OK) {
    *made = reinterpret_cast<oxb_npu_device*>(device);
  } else {
    delete device;
  }
  return status;
}

void close_device(oxb_npu_device* device) { delete &of(device); }

oxb_npu_status describe(oxb_npu_device* device, oxb_npu_caps* caps, char*, size_t) {
  // What was compiled beforehand runs on its chip alone, and is what to take there.
  static constexpr const char* kTargets[] = {"litert-compiled", "litert"};
  const bool on_npu = of(device).on_npu;
  caps->name = on_npu ? "LiteRT with a vendor's NPU" : "LiteRT on the CPU";
  caps->targets = on_npu ? kTargets : kTargets + 1;
  caps->target_count = on_npu ? 2 : 1;
  caps->memory = OXB_NPU_MEMORY_HOST;
  caps->flags = OXB_NPU_RUN_ALLOCATES | OXB_NPU_TRUSTS_COMMANDS | OXB_NPU_HIDES_MEMORY;
  caps->result = on_npu ? OXB_NPU_TOLERANCE : OXB_NPU_FORMULA;
  caps->alignment = kAlignment;
  return OXB_NPU_OK;
}

/// Null when the bucket may be given to LiteRT, which alone can tell whether its graph is right.
const char* check_bucket(const oxb_npu_layer& layer, const oxb_npu_bucket& bucket) {
  LitertHeader header;
  if (bucket.command_bytes != sizeof(header)) return "its header has another size";
  std::memcpy(&header, bucket.commands, sizeof(header));
  if (header.magic != kLitertMagic) return "its header is another version's";
  if (header.depth != layer.depth || header.channels != layer.channels ||
      header.rows != bucket.rows) {
    return "it is of another layer";
  }
  constexpr char kIdentifier[] = {'T', 'F', 'L', '3'};
  if (bucket.weight_bytes < 64 || bucket.weight_bytes > kMostLitertBytes ||
      std::memcmp(static_cast<const char*>(bucket.weights) + 4, kIdentifier, 4) != 0) {
    return "it is no .tflite file";
  }
  return nullptr;
}

/// Of rows and results of the largest bucket, each on kAlignment; false: too many.
bool row_bytes(const oxb_npu_layer& layer, uint64_t* input, uint64_t* output) {
  const uint64_t rows = layer.buckets[layer.bucket_count - 1].rows;
  return checked_mul(rows, layer.depth, input) && checked_align(*input, kAlignment, input) &&
         checked_mul(rows, layer.channels, output) && checked_align(*output, kAlignment, output) &&
         *input <= INT32_MAX && *output <= INT32_MAX;
}

oxb_npu_status check(oxb_npu_device*, const oxb_npu_layer* layer, oxb_npu_needs* needs, char* why,
                     size_t why_bytes) {
  if (layer->result == OXB_NPU_EXACT_SUMS || layer->bucket_count > kMaxBuckets) {
    return refuse(OXB_NPU_UNUSABLE, "not a layer of this kind", why, why_bytes);
  }
  for (uint32_t i = 0; i < layer->bucket_count; ++i) {
    if (const char* wrong = check_bucket(*layer, layer->buckets[i]); wrong != nullptr) {
      return refuse(OXB_NPU_UNUSABLE, wrong, why, why_bytes);
    }
  }
  uint64_t input = 0, output = 0;
  if (!row_bytes(*layer, &input, &output)) {
    return refuse(OXB_NPU_UNUSABLE, "it has too many rows", why, why_bytes);
  }
  needs->host_alignment = kAlignment;
  needs->host_bytes = round_up(sizeof(Program), kAlignment) + static_cast<size_t>(input + output);
  return OXB_NPU_OK;
}

void close_bucket(const Device& device, Program::Bucket& bucket) {
  if (bucket.output != nullptr) device.calls.destroy_buffer(bucket.output);
  if (bucket.input != nullptr) device.calls.destroy_buffer(bucket.input);
  if (bucket.compiled != nullptr) device.calls.destroy_compiled(bucket.compiled);
  if (bucket.model != nullptr) device.calls.destroy_model(bucket.model);
  bucket = {};
}

void unload(oxb_npu_program* program) {
  for (Program::Bucket& bucket : of(program).buckets) close_bucket(*of(program).device, bucket);
}

/// The vendor's text, which LiteRT frees.
int add_vendor_options(const Device& device, litert::Options* options) {
  if (device.vendor == nullptr) return 0;
  char* text = strdup(device.vendor_options);
  litert::OpaqueOptions* opaque = nullptr;
  const int status = device.calls.create_opaque(device.vendor, text, std::free, &opaque);
  if (status != 0) {
    std::free(text);
    return status;
  }
  return device.calls.add_opaque(options, opaque);
}

int compile(const Device& device, const oxb_npu_bucket& from, Program::Bucket& bucket) {
  const litert::Calls& calls = device.calls;
  int status =
      calls.create_model(device.environment, from.weights, from.weight_bytes, &bucket.model);
  if (status != 0) return status;
  litert::Options* options = nullptr;
  status = calls.create_options(&options);
  if (status != 0) return status;
  status = calls.set_accelerators(options, device.on_npu ? litert::kNpu : litert::kCpu);
  if (status == 0) status = add_vendor_options(device, options);
  if (status == 0) {
    status = calls.compile(device.environment, bucket.model, options, &bucket.compiled);
  }
  calls.destroy_options(options);
  return status;
}

int wrap(const Device& device, uint32_t rows, uint32_t width, std::byte* memory, size_t bytes,
         litert::TensorBuffer** made) {
  litert::TensorType type = {};
  type.element = litert::kInt8;
  type.rank = 2;
  type.dimensions[0] = static_cast<int32_t>(rows);
  type.dimensions[1] = static_cast<int32_t>(width);
  return device.calls.create_buffer(&type, memory, bytes, nullptr, made);
}

oxb_npu_status load(oxb_npu_device* opened, const oxb_npu_layer* layer, void* memory,
                    oxb_npu_program** made, char* why, size_t why_bytes) {
  Device& device = of(opened);
  uint64_t input = 0, output = 0;
  if (!row_bytes(*layer, &input, &output)) return OXB_NPU_UNUSABLE;
  auto* program = new (memory) Program();
  program->device = &device;
  program->bucket_count = layer->bucket_count;
  program->input = static_cast<std::byte*>(memory) + round_up(sizeof(Program), kAlignment);
  program->output = program->input + input;
  int status = 0;
  for (uint32_t i = 0; status == 0 && i < layer->bucket_count; ++i) {
    const oxb_npu_bucket& from = layer->buckets[i];
    Program::Bucket& bucket = program->buckets[i];
    bucket.input_bytes = size_t{from.rows} * layer->depth;
    bucket.output_bytes = size_t{from.rows} * layer->channels;
    status = compile(device, from, bucket);
    if (status == 0) {
      status =
          wrap(device, from.rows, layer->depth, program->input, bucket.input_bytes, &bucket.input);
    }
    if (status == 0) {
      status = wrap(device, from.rows, layer->channels, program->output, bucket.output_bytes,
                    &bucket.output);
    }
  }
  *made = reinterpret_cast<oxb_npu_program*>(program);
  if (status == 0) return OXB_NPU_OK;
  unload(*made);
  return refuse_status(OXB_NPU_FAILED, "compile the graph", status, why, why_bytes);
}

size_t taken_bytes(const oxb_npu_program*) { return 0; }

oxb_npu_status run(oxb_npu_program* loaded, uint32_t index, const void* input, void* output,
                   char* why, size_t why_bytes) {
  Program& program = of(loaded);
  if (index >= program.bucket_count) {
    return refuse(OXB_NPU_FAILED, "there is no such bucket", why, why_bytes);
  }
  Program::Bucket& bucket = program.buckets[index];
  std::memcpy(program.input, input, bucket.input_bytes);
  const int status =
      program.device->calls.run(bucket.compiled, 0, 1, &bucket.input, 1, &bucket.output);
  if (status != 0) return refuse_status(OXB_NPU_FAILED, "run", status, why, why_bytes);
  std::memcpy(output, program.output, bucket.output_bytes);
  return OXB_NPU_OK;
}

}  // namespace

constinit const oxb_npu_plugin kLitertPlugin = {sizeof(oxb_npu_plugin),
                                                OXB_NPU_MAJOR,
                                                OXB_NPU_MINOR,
                                                "litert",
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

}  // namespace oxbow
