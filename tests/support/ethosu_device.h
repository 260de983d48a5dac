#pragma once

// An Ethos-U in software, behind the calls of Linux's accel/ethosu: what a test opens in place of /dev/accel/accel0. It runs the
// streams of Vela that compute sums of int8.

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
const char* run_ethosu_stream(uint32_t config, std::span<const uint32_t> stream,
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

/// A chip that a program reaches itself: what it gives the plug-in in place of Linux's calls.
class EthosuByDriver {
 public:
  /// fast_bytes: of its fast memory.
  EthosuByDriver(const char* target, size_t fast_bytes);
  EthosuByDriver(const EthosuByDriver&) = delete;
  EthosuByDriver& operator=(const EthosuByDriver&) = delete;

  const oxb_ethosu_driver& driver() const { return driver_; }
  uint64_t jobs() const { return jobs_; }
  const std::string& complaint() const { return complaint_; }

  /// This many jobs from now on one fails; 0: none does.
  uint32_t fail_at = 0;

 private:
  const char* run(std::span<const uint32_t> actions, std::span<const std::span<std::byte>> regions);

  std::vector<std::byte> fast_;
  uint64_t jobs_ = 0;
  DecodedWeights decoded_;
  std::string complaint_;
  oxb_ethosu_driver driver_;
};

/// A chip with its configuration register, as Vela writes it.
struct EthosuTestChip {
  const char* target;
  uint32_t config;
};
inline constexpr EthosuTestChip kEthosuChips[] = {
    {"ethos-u55-32", 0x00001005},   {"ethos-u55-64", 0x00001006},   {"ethos-u55-128", 0x00001807},
    {"ethos-u55-256", 0x00003008},  {"ethos-u65-256", 0x10003008},  {"ethos-u65-512", 0x10006009},
    {"ethos-u85-128", 0x20000117},  {"ethos-u85-256", 0x20000118},  {"ethos-u85-512", 0x20001119},
    {"ethos-u85-1024", 0x2000251a}, {"ethos-u85-2048", 0x2000261b},
};
inline constexpr uint32_t kConfigU55 = 0x00003008, kConfigU65 = 0x10003008;

}  // namespace oxbow::testing
