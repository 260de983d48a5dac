#pragma once

// An Ethos-U in software, behind the calls of Linux's accel/ethosu: what a test opens in place of /dev/accel/accel0. It runs the
// streams of Vela that compute sums of int8, on the chips with 256 multipliers.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/npu/ethosu/plugin.h"

namespace oxbow::testing {

/// Weights of earlier runs, by the hash of their bytes and shape: decoding is most of the work.
using DecodedWeights = std::map<uint64_t, std::vector<int16_t>>;

/// Null, or why the stream cannot be run. Regions are weights, scratch and fast memory.
const char* run_ethosu_stream(std::span<const uint32_t> stream,
                              std::span<const std::span<std::byte>> regions,
                              DecodedWeights& decoded);

/// One device, and what tests want to know of it.
class FakeEthosu {
 public:
  /// config: that of a chip, as its register has it.
  explicit FakeEthosu(uint32_t config);

  const EthosuSystem& system() const { return system_; }
  /// The plug-in on this device, for oxb_npu_options.linked.
  const oxb_npu_plugin* plugin() const { return &plugin_.table; }
  size_t buffers() const { return buffers_.size(); }
  size_t bytes() const;
  uint64_t jobs() const { return jobs_; }
  const std::string& complaint() const { return complaint_; }

  /// This many calls from now on the device does not answer; 0: it does.
  uint32_t fail_at = 0;

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    bool is_stream = false;
  };

  static int call(void* context, int file, unsigned long request, void* argument);
  int answer(unsigned long request, void* argument);
  int submit(const void* argument);

  uint32_t config_;
  std::map<uint32_t, Buffer> buffers_;
  std::map<uint32_t, size_t> stream_bytes_;
  std::vector<std::byte> fast_;
  uint32_t next_ = 1;
  uint64_t jobs_ = 0;
  DecodedWeights decoded_;
  std::string complaint_;
  EthosuSystem system_;
  EthosuPlugin plugin_;
};

inline constexpr uint32_t kConfigU55 = 0x00003008, kConfigU65 = 0x10003008;

}  // namespace oxbow::testing
