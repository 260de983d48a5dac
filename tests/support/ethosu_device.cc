#include "tests/support/ethosu_device.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/device/npu/ethosu/accel.h"
#include "runtime/device/npu/ethosu/stream.h"
#include "tests/support/ethosu_weights.h"

namespace oxbow::testing {
namespace {

namespace accel = ethosu_accel;

constexpr size_t kScaleBytes = 10;

using Regions = std::span<const std::span<std::byte>>;

const std::byte* at(Regions regions, uint64_t region, uint64_t offset, uint64_t bytes) {
  if (region >= regions.size() || offset > regions[region].size() ||
      bytes > regions[region].size() - offset) {
    return nullptr;
  }
  return regions[region].data() + offset;
}

/// The order in which a chip eats its weights.
struct Order {
  /// Channels of a block of results, and of a unit of work.
  size_t block = 0, unit = 0;
  /// Depth of a block of rows, of what a unit stays with before the next unit comes, and of what it takes at once.
  size_t input_block = 0, stay = 0, take = 0;
  /// Cores that take turns with every four channels of a unit, and which one this is.
  size_t cores = 1, core = 0;
  /// Behind each stay there are zeros, so many times what is there.
  size_t padding = 0;
  /// Every other block of results goes through the blocks of rows backwards.
  bool turns = false;
};

Order order_of(const EthosuState& s, const EthosuChip& chip, size_t core) {
  Order order;
  order.block = s.size(kOfmBlockDepthM1);
  order.take = 8;
  const bool is_part = (s[kKernelStride] & 4) != 0;
  if (chip.product != EthosuChip::kU85) {
    order.block /= chip.cores();
    order.unit = chip.macs == 32 ? 4 : 8;
    order.input_block = is_part ? 16 : 32;
    order.stay = is_part ? 8 : 32;
    order.padding = is_part ? 3 : 0;
    return order;
  }
  // Rows of a unit, by the number of its shape: 1, 1x2, 1x4, 2x2, 2x4, 4x4.
  static constexpr size_t kRows[] = {1, 2, 4, 4, 8, 16};
  const size_t shape = s[kAccFormat] >> 8;
  if (shape >= std::size(kRows)) return order;
  const bool is_sparse = s[kWeightFormat] != 0;
  order.unit = chip.macs / 8 / kRows[shape];
  order.take = is_sparse ? 16 : 8;
  order.input_block = is_part                                ? 16
                      : is_sparse                            ? 128
                      : chip.macs <= 256 && order.unit == 16 ? 32
                                                             : 64;
  order.stay = order.input_block;
  order.padding = !is_part ? 0 : is_sparse ? 9 : 4;
  order.cores = chip.cores();
  order.core = core;
  order.turns = true;
  return order;
}

/// Weights [channels][depth] from a core's; what is not there is zero. `channel` gives the place of a channel.
template <typename Channel>
bool unpack(std::span<const int16_t> stream, size_t channels, size_t depth, const Order& order,
            const Channel& channel, std::vector<int16_t>* weights) {
  if (order.unit == 0 || order.block == 0) return false;
  size_t next = 0;
  const auto take_unit = [&](size_t first, size_t behind, size_t k0) {
    for (size_t k1 = 0; k1 < order.stay; k1 += order.take) {
      for (size_t z = order.core * 4; z < order.unit; z += order.cores * 4) {
        for (size_t i = 0; i < 4 * order.take; ++i) {
          if (next == stream.size()) return false;
          const int16_t value = stream[next++];
          const size_t n = first + z + i / order.take, k = k0 + k1 + i % order.take;
          if (n < behind && k < depth) (*weights)[channel(n) * depth + k] = value;
        }
      }
    }
    next += order.padding * order.stay * order.unit / order.cores;
    return next <= stream.size();
  };
  const size_t blocks = (depth + order.input_block - 1) / order.input_block;
  bool is_back = false;
  for (size_t n0 = 0; n0 < channels; n0 += order.block) {
    const size_t behind = std::min(n0 + order.block, channels);
    for (size_t b = 0; b < blocks; ++b) {
      const size_t k0 = (is_back ? blocks - 1 - b : b) * order.input_block;
      for (size_t k1 = 0; k1 < std::min(order.input_block, depth - k0); k1 += order.stay) {
        for (size_t n1 = n0; n1 < behind; n1 += order.unit) {
          if (!take_unit(n1, behind, k0 + k1)) return false;
        }
      }
    }
    is_back = order.turns && !is_back;
  }
  return true;
}

/// Of all cores; null, or why not.
const char* decode(const EthosuState& s, const EthosuChip& chip, Regions regions, size_t channels,
                   size_t depth, std::vector<int16_t>* weights) {
  weights->assign(channels * depth, 0);
  for (size_t core = 0; core < chip.cores(); ++core) {
    const EthosuWeightRegisters& place = kEthosuWeightRegisters[core];
    const std::byte* encoded = at(regions, s[kWeightRegion], s[place.base], s[place.length]);
    if (encoded == nullptr) return "weights outside of their region";
    std::vector<int16_t> stream;
    const size_t most = round_up(channels, size_t{128}) * round_up(depth, size_t{128}) * 10 + 65536;
    // The cores of a U65 take turns with the channels themselves.
    const size_t turns = chip.product == EthosuChip::kU85 ? 1 : chip.cores();
    const size_t own = (channels + turns - 1 - (turns == 1 ? 0 : core)) / turns;
    if (!decode_ethosu_weights({encoded, static_cast<size_t>(s[place.length])}, most, &stream) ||
        !unpack(
            stream, own, depth, order_of(s, chip, core),
            [&](size_t n) { return turns == 1 ? n : n * turns + core; }, weights)) {
      return "the weights are broken";
    }
  }
  return nullptr;
}

/// A bias of 0, a factor of 1 and a shift of 0, for each channel: 40, 32 and 6 bits, and on U85 32, 32 and 6.
const char* check_scales(const EthosuState& s, const EthosuChip& chip, Regions regions,
                         size_t channels) {
  static constexpr unsigned char kOne[kScaleBytes] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
                                 kOneU85[kScaleBytes] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
  const bool is_u85 = chip.product == EthosuChip::kU85;
  const size_t turns = is_u85 ? 1 : chip.cores();
  for (size_t core = 0; core < turns; ++core) {
    const size_t own = (channels + turns - 1 - core) / turns;
    const std::byte* scales =
        at(regions, s[kScaleRegion], s[core == 0 ? kScaleBase : kScale1Base], own * kScaleBytes);
    if (scales == nullptr) return "scales outside of their region";
    for (size_t n = 0; n < own; ++n) {
      if (std::memcmp(scales + n * kScaleBytes, is_u85 ? kOneU85 : kOne, kScaleBytes) != 0) {
        return "a scale that is not 1";
      }
    }
  }
  return nullptr;
}

/// Calls `work` with each row and its result's place.
template <typename Work>
const char* for_rows(const EthosuState& s, Regions regions, size_t result_bytes, const Work& work) {
  for (size_t y = 0; y < s.size(kOfmHeightM1); ++y) {
    for (size_t x = 0; x < s.size(kOfmWidthM1); ++x) {
      const std::byte* row =
          at(regions, s[kIfmRegion], s[kIfmBase0] + y * s[kIfmStrideY] + x * s[kIfmStrideX],
             s.size(kIfmDepthM1));
      const std::byte* result =
          at(regions, s[kOfmRegion], s[kOfmBase0] + y * s[kOfmStrideY] + x * s[kOfmStrideX],
             s.size(kOfmDepthM1) * result_bytes);
      if (row == nullptr || result == nullptr) return "a picture outside of its region";
      work(row, const_cast<std::byte*>(result));
    }
  }
  return nullptr;
}

const char* run_convolution(const EthosuState& s, const EthosuChip& chip, Regions regions,
                            DecodedWeights& decoded) {
  const size_t depth = s.size(kIfmDepthM1), channels = s.size(kOfmDepthM1);
  const uint64_t settings[] = {channels,         depth,         s.size(kOfmBlockDepthM1),
                               s[kKernelStride], s[kAccFormat], s[kWeightFormat],
                               chip.product,     chip.macs};
  uint64_t key = hash_bytes(settings, sizeof(settings));
  for (uint32_t core = 0; core < chip.cores(); ++core) {
    const EthosuWeightRegisters& place = kEthosuWeightRegisters[core];
    const std::byte* encoded = at(regions, s[kWeightRegion], s[place.base], s[place.length]);
    if (encoded == nullptr) return "weights outside of their region";
    key = hash_bytes(encoded, static_cast<size_t>(s[place.length]), key);
  }
  std::vector<int16_t>& weights = decoded[key];
  const char* wrong = nullptr;
  if (weights.empty()) wrong = decode(s, chip, regions, channels, depth, &weights);
  if (wrong != nullptr) {
    weights.clear();
    return wrong;
  }
  wrong = check_scales(s, chip, regions, channels);
  if (wrong != nullptr) return wrong;
  return for_rows(s, regions, 4, [&](const std::byte* row, std::byte* result) {
    for (size_t n = 0; n < channels; ++n) {
      int32_t sum = 0;
      for (size_t k = 0; k < depth; ++k) {
        sum += static_cast<int8_t>(row[k]) * weights[n * depth + k];
      }
      std::memcpy(result + n * 4, &sum, 4);
    }
  });
}

/// The validator sees to it that all else of a pool is as a copy needs it.
const char* run_copy(const EthosuState& s, Regions regions) {
  return for_rows(s, regions, 1, [&](const std::byte* row, std::byte* result) {
    std::memmove(result, row, s.size(kOfmDepthM1));
  });
}

const char* run_dma(const EthosuState& s, Regions regions) {
  const std::byte* from = at(regions, s[kDmaSourceRegion], s[kDmaSource], s[kDmaLength]);
  const std::byte* to = at(regions, s[kDmaTargetRegion], s[kDmaTarget], s[kDmaLength]);
  if (from == nullptr || to == nullptr) return "a copy outside of its region";
  std::memmove(const_cast<std::byte*>(to), from, static_cast<size_t>(s[kDmaLength]));
  return nullptr;
}

template <typename T>
T read(const void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof(value));
  return value;
}

}  // namespace

const char* run_ethosu_stream(uint32_t config, std::span<const uint32_t> stream, Regions regions,
                              DecodedWeights& decoded) {
  EthosuChip chip;
  if (!ethosu_chip(config, &chip)) return "a chip that is unknown";
  EthosuReader reader(stream);
  uint32_t operation = 0;
  const char* why = nullptr;
  while (reader.next(&operation, &why)) {
    if (operation == kOpConv) why = run_convolution(reader.state(), chip, regions, decoded);
    if (operation == kOpPool) why = run_copy(reader.state(), regions);
    if (operation == kOpDmaStart) why = run_dma(reader.state(), regions);
    if (why != nullptr) return why;
  }
  return why;
}

FakeEthosu::FakeEthosu(uint32_t config) : config_(config) {
  system_.context = this;
  system_.open = [](void*, const char*) { return 7; };
  system_.close = [](void*, int) { return 0; };
  system_.call = call;
  // Offsets are handles.
  system_.map = [](void* self, int, uint64_t offset, size_t bytes) -> void* {
    auto& buffers = static_cast<FakeEthosu*>(self)->buffers_;
    const auto found = buffers.find(static_cast<uint32_t>(offset));
    if (found == buffers.end() || found->second.bytes.size() != bytes) return nullptr;
    return found->second.bytes.data();
  };
  system_.unmap = [](void*, void*, size_t) {};
  plugin_ = make_ethosu_plugin(&system_);
}

size_t FakeEthosu::bytes() const {
  size_t all = 0;
  for (const auto& [handle, buffer] : buffers_) all += buffer.bytes.size();
  return all;
}

int FakeEthosu::call(void* context, int file, unsigned long request, void* argument) {
  auto& self = *static_cast<FakeEthosu*>(context);
  if (file != 7 || (self.fail_at != 0 && --self.fail_at == 0)) return -1;
  return self.answer(request, argument);
}

int FakeEthosu::answer(unsigned long request, void* argument) {
  switch (request) {
    case accel::kDevQuery: {
      const auto query = read<accel::DevQuery>(argument);
      const accel::NpuInfo info = {0, config_, 512};
      if (query.type != 0 || query.size != sizeof(info)) return -1;
      std::memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(query.pointer)), &info,
                  sizeof(info));
      return 0;
    }
    case accel::kBoCreate: {
      auto create = read<accel::BoCreate>(argument);
      if (create.size == 0 || create.size % 4096 != 0 || create.flags != 0) return -1;
      create.handle = next_++;
      buffers_[create.handle].bytes.resize(create.size);
      std::memcpy(argument, &create, sizeof(create));
      return 0;
    }
    case accel::kBoMmapOffset: {
      auto offset = read<accel::BoMmapOffset>(argument);
      if (!buffers_.contains(offset.handle)) return -1;
      offset.offset = offset.handle;
      std::memcpy(argument, &offset, sizeof(offset));
      return 0;
    }
    case accel::kStreamCreate: {
      auto create = read<accel::StreamCreate>(argument);
      create.handle = next_++;
      Buffer& buffer = buffers_[create.handle];
      buffer.is_stream = true;
      buffer.bytes.resize(round_up(size_t{create.size}, size_t{4096}));
      std::memcpy(buffer.bytes.data(),
                  reinterpret_cast<const void*>(static_cast<uintptr_t>(create.data)), create.size);
      stream_bytes_[create.handle] = create.size;
      std::memcpy(argument, &create, sizeof(create));
      return 0;
    }
    case accel::kSubmit:
      return submit(argument);
    case accel::kBoWait:
      return buffers_.contains(read<accel::BoWait>(argument).handle) ? 0 : -1;
    case accel::kGemClose:
      return buffers_.erase(read<accel::GemClose>(argument).handle) == 1 ? 0 : -1;
    default:
      return -1;
  }
}

int FakeEthosu::submit(const void* argument) {
  const auto submit = read<accel::Submit>(argument);
  if (submit.job_count != 1 || submit.pad != 0) return -1;
  const auto job =
      read<accel::Job>(reinterpret_cast<const void*>(static_cast<uintptr_t>(submit.jobs)));
  const auto stream = buffers_.find(job.stream);
  if (stream == buffers_.end() || !stream->second.is_stream) return -1;
  fast_.assign(job.sram_size, std::byte{0x5a});
  std::span<std::byte> regions[kEthosuRegions];
  for (size_t i = 0; i < 2; ++i) {
    const auto buffer = buffers_.find(job.regions[i]);
    if (buffer == buffers_.end()) return -1;
    regions[i] = buffer->second.bytes;
  }
  regions[kEthosuFast] = fast_;
  ++jobs_;
  const char* why =
      run_ethosu_stream(config_,
                        {reinterpret_cast<const uint32_t*>(stream->second.bytes.data()),
                         stream_bytes_[job.stream] / 4},
                        regions, decoded_);
  if (why != nullptr) complaint_ = why;
  return why == nullptr ? 0 : -1;
}

EthosuByDriver::EthosuByDriver(const char* target, size_t fast_bytes)
    : fast_(fast_bytes), driver_{sizeof(driver_), target, fast_bytes == 0 ? nullptr : fast_.data(),
                                 fast_bytes,      this,   nullptr} {
  driver_.invoke = [](void* context, const void* actions, size_t action_bytes, void* const* regions,
                      const size_t* region_bytes, size_t region_count) -> int32_t {
    auto& self = *static_cast<EthosuByDriver*>(context);
    std::span<std::byte> memory[kEthosuRegions];
    if (region_count != kEthosuRegions || action_bytes % 4 != 0) return -1;
    for (size_t i = 0; i < kEthosuRegions; ++i) {
      memory[i] = {static_cast<std::byte*>(regions[i]), region_bytes[i]};
    }
    const char* why = self.run({static_cast<const uint32_t*>(actions), action_bytes / 4}, memory);
    if (why != nullptr) self.complaint_ = why;
    return why == nullptr ? 0 : -1;
  };
}

/// As Arm's driver goes through the actions: the chip's configuration, padding, and the stream, which lies on 16 bytes as all
/// regions do.
const char* EthosuByDriver::run(std::span<const uint32_t> actions, Regions regions) {
  if (fail_at != 0 && --fail_at == 0) return "the chip does not answer";
  const auto is_aligned = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  for (const std::span<std::byte> region : regions) {
    if (!is_aligned(region.data())) return "a region is not aligned";
  }
  if (regions[kEthosuFast].size() > fast_.size()) return "there is less fast memory";
  constexpr uint32_t kStream = 2, kNothing = 5;
  size_t at = 4;
  while (at < actions.size() && (actions[at] & 0xff) == kNothing) ++at;
  if (at >= actions.size() || (actions[at] & 0xff) != kStream) return "there is no stream";
  const std::span<const uint32_t> stream = actions.subspan(at + 1);
  if (!is_aligned(stream.data())) return "the stream is not aligned";
  ++jobs_;
  return run_ethosu_stream(actions[2], stream, regions, decoded_);
}

}  // namespace oxbow::testing
