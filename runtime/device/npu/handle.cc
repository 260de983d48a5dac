#include "runtime/device/npu/handle.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace oxbow {
namespace {

constexpr uint32_t kDefaultAlignment = 64;
constexpr size_t kMaxAlignment = 4096;
constexpr size_t kMaxTargets = 64;

bool is_alignment(size_t value) {
  return value != 0 && value <= kMaxAlignment && (value & (value - 1)) == 0;
}

void no_log(void*, int32_t, const char*) {}

}  // namespace

const char* NpuWhy::read() {
  text[sizeof(text) - 1] = '\0';
  for (char* at = text; *at != '\0'; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < ' ' || byte == 0x7f) *at = ' ';
    if (byte >= 0x80) *at = '?';
  }
  if (text[0] == '\0') std::snprintf(text, sizeof(text), "it does not say why");
  return text;
}

class NpuHandle::Lock {
 public:
  explicit Lock(NpuHandle& handle) : mutex_(handle.mutex_) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

NpuHandle::~NpuHandle() {
  if (device_ != nullptr) plugin_.close(device_);
  if (library_ != nullptr) dlclose(library_);
  pthread_mutex_destroy(&mutex_);
}

void NpuHandle::release() {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Status NpuHandle::open(const NpuOpenOptions& options, NpuHandle** handle, Error* error) {
  auto* made = new (std::nothrow) NpuHandle();
  if (made == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a plug-in");
  Status status = made->find(options, error);
  if (status == Status::kOk) status = made->open_device(options, error);
  if (status == Status::kOk) status = made->describe(error);
  if (status != Status::kOk) {
    delete made;
    return status;
  }
  *handle = made;
  return Status::kOk;
}

/// Linked, built in, a path, or a name of a library.
Status NpuHandle::find(const NpuOpenOptions& options, Error* error) {
  if (options.linked != nullptr) return take(options.linked, "linked", error);
  const char* name = options.plugin;
  if (name == nullptr || name[0] == '\0') {
    return fail(error, Status::kInvalidArgument, "the NPU options name no plug-in");
  }
  if (const oxb_npu_plugin* found = built_in_npu_plugin(name); found != nullptr) {
    return take(found, name, error);
  }
  char file[256];
  const bool is_path = std::strchr(name, '/') != nullptr;
  const int length = is_path ? std::snprintf(file, sizeof(file), "%s", name)
                             : std::snprintf(file, sizeof(file), "liboxbow_npu_%s.so", name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(file)) {
    return fail(error, Status::kInvalidArgument, "the plug-in's name is too long");
  }
  library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* why = dlerror();
    return fail(error, Status::kNoDevice, "plug-in '%.60s': %.150s", name,
                why == nullptr ? "it cannot be opened" : why);
  }
  // An object's address becomes a function's, as POSIX has it.
  void* symbol = dlsym(library_, OXB_NPU_SYMBOL);
  oxb_npu_plugin_get_function get = nullptr;
  static_assert(sizeof(get) == sizeof(symbol));
  std::memcpy(&get, &symbol, sizeof(get));
  if (get == nullptr) {
    return fail(error, Status::kNoDevice, "plug-in '%.60s': the library has no " OXB_NPU_SYMBOL,
                name);
  }
  return take(get(OXB_NPU_MAJOR), name, error);
}

Status NpuHandle::take(const oxb_npu_plugin* plugin, const char* from, Error* error) {
  if (plugin == nullptr || plugin->size < offsetof(oxb_npu_plugin, submit) ||
      plugin->major != OXB_NPU_MAJOR) {
    return fail(error, Status::kNoDevice,
                "plug-in '%.60s': it does not have version %d of the interface", from,
                OXB_NPU_MAJOR);
  }
  std::memcpy(&plugin_, plugin, std::min(plugin->size, sizeof(plugin_)));
  host_.plugin = plugin;
  const bool runs =
      plugin_.run != nullptr || (plugin_.submit != nullptr && plugin_.wait != nullptr);
  std::snprintf(name_.text, sizeof(name_.text), "%s", plugin_.name == nullptr ? "" : plugin_.name);
  (void)name_.read();
  if (plugin_.name == nullptr || plugin_.open == nullptr || plugin_.close == nullptr ||
      plugin_.describe == nullptr || plugin_.check == nullptr || plugin_.load == nullptr ||
      plugin_.unload == nullptr || plugin_.taken_bytes == nullptr || !runs) {
    return fail(error, Status::kNoDevice, "plug-in '%.60s': a function of its table is missing",
                from);
  }
  return Status::kOk;
}

Status NpuHandle::open_device(const NpuOpenOptions& options, Error* error) {
  host_.size = sizeof(host_);
  host_.context = options.log_context;
  host_.log = options.log == nullptr ? no_log : options.log;
  host_.keys = options.keys;
  host_.values = options.values;
  host_.key_count = options.key_count;
  host_.driver = options.driver;
  NpuWhy why;
  const oxb_npu_status status = plugin_.open(&host_, &device_, why.text, sizeof(why.text));
  host_.keys = host_.values = nullptr;
  host_.key_count = 0;
  if (status == OXB_NPU_OK && device_ != nullptr) return Status::kOk;
  device_ = nullptr;
  return fail(error, Status::kNoDevice, "plug-in '%.60s': %s", name(), why.read());
}

Status NpuHandle::describe(Error* error) {
  NpuWhy why;
  caps_.size = sizeof(caps_);
  const oxb_npu_status status = plugin_.describe(device_, &caps_, why.text, sizeof(why.text));
  if (status != OXB_NPU_OK) {
    return fail(error, Status::kNoDevice, "plug-in '%.60s': %s", name(), why.read());
  }
  if (caps_.alignment == 0) caps_.alignment = kDefaultAlignment;
  if (!is_alignment(caps_.alignment)) {
    return fail(error, Status::kNoDevice,
                "plug-in '%.60s': alignment is %u, expected a power of two up to %zu", name(),
                caps_.alignment, kMaxAlignment);
  }
  if (caps_.result < OXB_NPU_EXACT_SUMS || caps_.result > OXB_NPU_TOLERANCE) {
    return fail(error, Status::kNoDevice, "plug-in '%.60s': result %d is unknown", name(),
                static_cast<int>(caps_.result));
  }
  if (caps_.target_count > kMaxTargets || (caps_.target_count != 0 && caps_.targets == nullptr) ||
      (caps_.memory & OXB_NPU_MEMORY_HOST) == 0) {
    return fail(error, Status::kNoDevice,
                "plug-in '%.60s': too many targets, or it cannot use the host's memory", name());
  }
  // Whoever names it should know which promises of sessions do not hold with it.
  const struct {
    uint32_t flag;
    const char* text;
  } broken[] = {{OXB_NPU_RUN_ALLOCATES, "runs take memory from the system"},
                {OXB_NPU_TRUSTS_COMMANDS, "what a file holds for it is not verified"},
                {OXB_NPU_HIDES_MEMORY, "it takes memory that no plan tells"}};
  for (const auto& one : broken) {
    if ((caps_.flags & one.flag) != 0) host_.log(host_.context, OXB_NPU_WARNING, one.text);
  }
  return Status::kOk;
}

bool NpuHandle::runs_target(const char* target) const {
  for (size_t i = 0; i < caps_.target_count; ++i) {
    if (caps_.targets[i] != nullptr && std::strcmp(caps_.targets[i], target) == 0) return true;
  }
  return false;
}

oxb_npu_status NpuHandle::check(const oxb_npu_layer& layer, oxb_npu_needs* needs, NpuWhy* why) {
  const Lock lock(*this);
  *needs = {};
  needs->size = sizeof(*needs);
  const oxb_npu_status status = plugin_.check(device_, &layer, needs, why->text, sizeof(why->text));
  if (status != OXB_NPU_OK) return status;
  if (needs->host_alignment == 0) needs->host_alignment = kDefaultAlignment;
  if (is_alignment(needs->host_alignment) && needs->host_bytes <= SIZE_MAX / 4 &&
      needs->device_bytes <= SIZE_MAX / 4 && needs->fast_bytes <= needs->device_bytes) {
    return OXB_NPU_OK;
  }
  std::snprintf(why->text, sizeof(why->text), "it asks for impossible sizes");
  return OXB_NPU_UNUSABLE;
}

oxb_npu_status NpuHandle::load(const oxb_npu_layer& layer, void* memory, oxb_npu_program** program,
                               NpuWhy* why) {
  const Lock lock(*this);
  const oxb_npu_status status =
      plugin_.load(device_, &layer, memory, program, why->text, sizeof(why->text));
  if (status != OXB_NPU_OK) *program = nullptr;
  return status == OXB_NPU_OK && *program == nullptr ? OXB_NPU_FAILED : status;
}

void NpuHandle::unload(oxb_npu_program* program) {
  const Lock lock(*this);
  plugin_.unload(program);
}

size_t NpuHandle::taken_bytes(const oxb_npu_program* program) {
  const Lock lock(*this);
  return plugin_.taken_bytes(program);
}

oxb_npu_status NpuHandle::run(oxb_npu_program* program, uint32_t bucket, const void* input,
                              void* output, NpuWhy* why) {
  const Lock lock(*this);
  if (plugin_.run != nullptr) {
    return plugin_.run(program, bucket, input, output, why->text, sizeof(why->text));
  }
  const oxb_npu_status status =
      plugin_.submit(program, bucket, input, output, why->text, sizeof(why->text));
  return status != OXB_NPU_OK ? status : plugin_.wait(program, why->text, sizeof(why->text));
}

}  // namespace oxbow
