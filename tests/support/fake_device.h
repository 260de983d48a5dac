#pragma once

// A device of the tests (runtime/device.h): it claims the steps it is told to and computes them with the ops' own CPU
// functions, in memory that the session never sees. What the host has is spoiled after every run, so that a value which
// was not fetched shows.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace oxbow::testing {

/// Of all fake devices; a test sets it anew.
struct FakeDevices {
  /// By the index of a step among those of all entry points.
  std::function<bool(uint32_t step)> claims = [](uint32_t) { return true; };
  /// The fail_at-th call from now on that can fail does so, undone. 0: none.
  uint32_t fail_at = 0;
  Status fail_with = Status::kOutOfMemory;
  /// What was asked, but for binds.
  std::vector<std::string> calls;
  uint32_t binds = 0;
  /// Devices open now.
  int open = 0;
};

FakeDevices& fake_devices();
extern const DeviceDriver kFakeDevice;

}  // namespace oxbow::testing
