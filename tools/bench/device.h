#pragma once

// What the machine tells about itself while it is measured: who it is, how fast its cores may run,
// how hot it is and what it takes from its battery. All of it is read from files of the kernel,
// which a phone may hide: what is absent or makes no sense is left out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::tools {

/// Files of the kernel below a folder, which tests replace. Nothing is believed: at most 4 KiB of a
/// file are read, a folder's list is cut, and whatever is no plain file does not exist.
class KernelFiles {
 public:
  /// "" is the machine itself.
  explicit KernelFiles(std::string root) : root_(std::move(root)) {}
  /// The machine itself, or what the environment variable OXB_DEVICE_ROOT names: for tests.
  static KernelFiles of_this_machine();

  std::string path(const std::string& name) const { return root_ + name; }
  /// The whole content, cut after 4 KiB.
  std::optional<std::string> content(const std::string& name) const;
  /// The first line, of printable ASCII (anything else becomes '?'), at most 128 characters.
  std::optional<std::string> line(const std::string& name) const;
  /// A line that is one decimal integer.
  std::optional<int64_t> number(const std::string& name) const;
  /// Names in a folder that begin with `prefix`, sorted by length first, so that zone10 follows zone9.
  std::vector<std::string> list(const std::string& folder, std::string_view prefix) const;

 private:
  std::string root_;
};

/// One core, as it is configured.
struct Core {
  uint32_t number = 0;
  std::string governor;
  std::optional<int64_t> khz, min_khz, max_khz;
};

/// What does not change while measuring. Empty: unknown.
struct Device {
  std::string model, cpu, kernel, machine;
  /// Android only.
  std::string soc, android_version, android_sdk;
};
Device read_device(const KernelFiles& files);

struct Temperature {
  std::string zone, type;
  double celsius = 0.0;
};

struct Battery {
  std::string name, status;
  std::optional<int64_t> percent;
  /// Micro-amperes and micro-volts, with the sign the driver gives: most say negative for
  /// discharging, some the opposite.
  std::optional<int64_t> current, voltage;
  std::optional<double> celsius;
};

/// A counter of energy that begins anew at `range`, 0 when that is unknown.
struct EnergyCounter {
  std::string zone, name;
  uint64_t microjoules = 0;
  uint64_t range = 0;
};

/// What changes while measuring.
struct DeviceState {
  std::vector<Core> cores;
  std::vector<Temperature> temperatures;
  std::vector<Battery> batteries;
  std::vector<EnergyCounter> energy;
};
DeviceState read_device_state(const KernelFiles& files);

struct Energy {
  std::string name;
  double joules = 0.0;
};
/// What each counter that is in both states has counted in between.
std::vector<Energy> energy_between(const DeviceState& before, const DeviceState& after);

/// Seconds that all cores together have worked since the machine was started, for whomever.
std::optional<double> busy_seconds(const KernelFiles& files);

/// The most this process had in physical memory at a time.
std::optional<uint64_t> peak_memory(const KernelFiles& files);

}  // namespace oxbow::tools
