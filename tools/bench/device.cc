#include "tools/bench/device.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#if defined(__ANDROID__)
#include <sys/system_properties.h>
#endif

namespace oxbow::tools {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr size_t kMostCharacters = 128;
/// Of a folder: looked at, and kept.
constexpr size_t kMostEntries = 4096;
constexpr size_t kMostNames = 256;
constexpr uint32_t kMostCores = 256;

/// The first line of a content as every line of it is shown.
std::string clean_line(std::string_view content) {
  content = content.substr(0, content.find_first_of(std::string_view("\n\0", 2)));
  std::string out;
  for (const char c : content.substr(0, kMostCharacters)) out += c >= ' ' && c <= '~' ? c : '?';
  out.erase(out.find_last_not_of(' ') + 1);
  out.erase(0, std::min(out.find_first_not_of(' '), out.size()));
  return out;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The value of the first line "key : value"; empty when there is none.
std::string value_of(std::string_view content, std::string_view key) {
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    const std::string_view between = line.substr(key.size(), colon - key.size());
    if (colon == line.npos || between.find_first_not_of(" \t") != between.npos) continue;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    return clean_line(value);
  }
  return {};
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + " " + b;
}

#if defined(__ANDROID__)
std::string property(const char* name) {
  char value[PROP_VALUE_MAX] = {};
  const int length = __system_property_get(name, value);
  return clean_line(std::string_view(value, length > 0 ? static_cast<size_t>(length) : 0));
}

void read_properties(Device& device) {
  device.model = joined(property("ro.product.manufacturer"), property("ro.product.model"));
  device.soc = joined(property("ro.soc.manufacturer"), property("ro.soc.model"));
  device.android_version = property("ro.build.version.release");
  device.android_sdk = property("ro.build.version.sdk");
}
#else
void read_properties(Device&) {}
#endif

std::vector<Core> read_cores(const KernelFiles& files) {
  std::vector<Core> cores;
  for (uint32_t number = 0; number < kMostCores; ++number) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/cpufreq/";
    Core core;
    core.number = number;
    core.governor = files.line(folder + "scaling_governor").value_or("");
    core.khz = files.number(folder + "scaling_cur_freq");
    core.min_khz = files.number(folder + "cpuinfo_min_freq");
    core.max_khz = files.number(folder + "cpuinfo_max_freq");
    if (!core.governor.empty() || core.khz || core.min_khz || core.max_khz) cores.push_back(core);
  }
  return cores;
}

std::vector<Temperature> read_temperatures(const KernelFiles& files) {
  const std::string root = "/sys/class/thermal/";
  std::vector<Temperature> temperatures;
  for (const std::string& zone : files.list(root, "thermal_zone")) {
    const std::optional<int64_t> millidegrees = files.number(root + zone + "/temp");
    if (!millidegrees) continue;
    temperatures.push_back({zone, files.line(root + zone + "/type").value_or(""),
                            static_cast<double>(*millidegrees) * 1e-3});
  }
  return temperatures;
}

std::vector<Battery> read_batteries(const KernelFiles& files) {
  const std::string root = "/sys/class/power_supply/";
  std::vector<Battery> batteries;
  for (const std::string& name : files.list(root, "")) {
    const std::string folder = root + name + "/";
    if (files.line(folder + "type") != "Battery") continue;
    Battery battery;
    battery.name = name;
    battery.status = files.line(folder + "status").value_or("");
    battery.percent = files.number(folder + "capacity");
    battery.current = files.number(folder + "current_now");
    battery.voltage = files.number(folder + "voltage_now");
    if (const auto tenths = files.number(folder + "temp")) {
      battery.celsius = static_cast<double>(*tenths) * 0.1;
    }
    batteries.push_back(battery);
  }
  return batteries;
}

std::vector<EnergyCounter> read_energy(const KernelFiles& files) {
  const std::string root = "/sys/class/powercap/";
  std::vector<EnergyCounter> counters;
  for (const std::string& zone : files.list(root, "intel-rapl:")) {
    const std::optional<int64_t> energy = files.number(root + zone + "/energy_uj");
    if (!energy || *energy < 0) continue;
    const int64_t range = files.number(root + zone + "/max_energy_range_uj").value_or(0);
    counters.push_back({zone, files.line(root + zone + "/name").value_or(""),
                        static_cast<uint64_t>(*energy),
                        static_cast<uint64_t>(std::max<int64_t>(range, 0))});
  }
  return counters;
}

}  // namespace

KernelFiles KernelFiles::of_this_machine() {
  const char* root = std::getenv("OXB_DEVICE_ROOT");
  return KernelFiles(root == nullptr ? "" : root);
}

std::optional<std::string> KernelFiles::content(const std::string& name) const {
  // A pipe or a device must neither block nor be read.
  const int fd = ::open(path(name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  struct stat info = {};
  std::string out;
  bool good = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  char bytes[kMostBytes];
  while (good && out.size() < kMostBytes) {
    const ssize_t count = ::read(fd, bytes, kMostBytes - out.size());
    if (count == 0) break;
    good = count > 0;
    if (good) out.append(bytes, static_cast<size_t>(count));
  }
  ::close(fd);
  return good ? std::optional(out) : std::nullopt;
}

std::optional<std::string> KernelFiles::line(const std::string& name) const {
  const std::optional<std::string> text = content(name);
  if (!text) return std::nullopt;
  return clean_line(*text);
}

std::optional<int64_t> KernelFiles::number(const std::string& name) const {
  const std::optional<std::string> text = line(name);
  return text ? whole_number(*text) : std::nullopt;
}

std::vector<std::string> KernelFiles::list(const std::string& folder,
                                           std::string_view prefix) const {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path(folder).c_str());
  if (directory == nullptr) return names;
  for (size_t i = 0; i < kMostEntries && names.size() < kMostNames; ++i) {
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    // A name that is not shown as it is would not be found again by whoever reads the report.
    if (name.starts_with(prefix) && !name.starts_with('.') && clean_line(name) == name) {
      names.emplace_back(name);
    }
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

Device read_device(const KernelFiles& files) {
  Device device;
  utsname system = {};
  if (::uname(&system) == 0) {
    device.kernel = clean_line(joined(system.sysname, system.release));
    device.machine = clean_line(system.machine);
  }
  read_properties(device);
  // Boards tell in the device tree, PCs in what their firmware says.
  if (device.model.empty()) device.model = files.line("/proc/device-tree/model").value_or("");
  if (device.model.empty()) {
    device.model = joined(files.line("/sys/class/dmi/id/sys_vendor").value_or(""),
                          files.line("/sys/class/dmi/id/product_name").value_or(""));
  }
  if (const std::optional<std::string> text = files.content("/proc/cpuinfo")) {
    for (const char* key : {"model name", "Hardware", "Processor"}) {
      if (device.cpu.empty()) device.cpu = value_of(*text, key);
    }
  }
  return device;
}

DeviceState read_device_state(const KernelFiles& files) {
  return {read_cores(files), read_temperatures(files), read_batteries(files), read_energy(files)};
}

std::vector<Energy> energy_between(const DeviceState& before, const DeviceState& after) {
  std::vector<Energy> out;
  for (const EnergyCounter& end : after.energy) {
    for (const EnergyCounter& start : before.energy) {
      if (start.zone != end.zone) continue;
      uint64_t counted = end.microjoules - start.microjoules;
      if (end.microjoules < start.microjoules) {
        // It began anew; without its range nobody knows where.
        if (end.range < start.microjoules) continue;
        counted = end.range - start.microjoules + end.microjoules;
      }
      out.push_back({end.name.empty() ? end.zone : end.name, static_cast<double>(counted) * 1e-6});
    }
  }
  return out;
}

std::optional<double> busy_seconds(const KernelFiles& files) {
  const std::optional<std::string> text = files.content("/proc/stat");
  if (!text || !text->starts_with("cpu ")) return std::nullopt;
  // user, nice, system, idle, iowait, irq, softirq, steal, in units that the kernel promises to be these.
  unsigned long long part[8] = {};
  if (std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &part[0], &part[1],
                  &part[2], &part[3], &part[4], &part[5], &part[6], &part[7]) != 8) {
    return std::nullopt;
  }
  double ticks = 0.0;
  for (const size_t i : {0, 1, 2, 5, 6, 7}) ticks += static_cast<double>(part[i]);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<uint64_t> peak_memory(const KernelFiles& files) {
  const std::optional<std::string> text = files.content("/proc/self/status");
  if (!text) return std::nullopt;
  const std::string value = value_of(*text, "VmHWM");
  const size_t unit = value.find(" kB");
  if (unit == value.npos) return std::nullopt;
  const std::optional<int64_t> kilobytes = whole_number(std::string_view(value).substr(0, unit));
  if (!kilobytes || *kilobytes < 0 || *kilobytes > INT64_MAX / 1024) return std::nullopt;
  return static_cast<uint64_t>(*kilobytes) * 1024;
}

}  // namespace oxbow::tools
