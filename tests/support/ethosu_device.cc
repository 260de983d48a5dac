#include "tests/support/ethosu_device.h"

#include <algorithm>
#include <array>
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
using Tables = std::array<std::byte, kEthosuTables * kEthosuTableBytes>;

int32_t sum_of(const std::vector<int8_t>& row, const int16_t* weights) {
  int32_t sum = 0;
  for (size_t k = 0; k < row.size(); ++k) sum += row[k] * weights[k];
  return sum;
}

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

/// Calls `work` with each part of a row of a picture that lies in one piece: the place, the first channel and how many; null
/// or why not. Bricks are 16 channels, and the last one is there as a whole.
template <typename Work>
const char* for_pieces(const EthosuState& s, const EthosuPicture& picture, Regions regions,
                       size_t y, size_t x, size_t element_bytes, const Work& work) {
  const size_t depth = s.size(picture.depth);
  const bool has_bricks = picture.has_bricks(s);
  const size_t piece = has_bricks ? kEthosuBrick : depth;
  for (size_t first = 0; first < depth; first += piece) {
    const uint64_t base = s[picture.base] + y * s[picture.stride_y] + x * s[picture.stride_x] +
                          (has_bricks ? first / kEthosuBrick * s[picture.stride_c] : 0);
    const std::byte* place = at(regions, s[picture.region], base, piece * element_bytes);
    if (place == nullptr) return "a picture outside of its region";
    work(const_cast<std::byte*>(place), first, std::min(piece, depth - first));
  }
  return nullptr;
}

/// Each row as codes goes to `work`, and what that makes of it is written.
template <typename T, typename Work>
const char* for_rows(const EthosuState& s, Regions regions, const Work& work) {
  std::vector<int8_t> row(s.size(kIfmDepthM1));
  std::vector<T> result(s.size(kOfmDepthM1));
  const char* wrong = nullptr;
  for (size_t y = 0; wrong == nullptr && y < s.size(kOfmHeightM1); ++y) {
    for (size_t x = 0; wrong == nullptr && x < s.size(kOfmWidthM1); ++x) {
      wrong = for_pieces(s, kEthosuRows, regions, y, x, 1,
                         [&](const std::byte* place, size_t first, size_t count) {
                           std::memcpy(row.data() + first, place, count);
                         });
      if (wrong != nullptr) break;
      work(row, result);
      wrong = for_pieces(s, kEthosuResults, regions, y, x, sizeof(T),
                         [&](std::byte* place, size_t first, size_t count) {
                           std::memcpy(place, result.data() + first, count * sizeof(T));
                         });
    }
  }
  return wrong;
}

/// Of one channel: what its sum begins with, and is multiplied with and divided by.
struct ChannelScale {
  int64_t bias = 0;
  uint32_t multiplier = 0;
  uint32_t shift = 0;
};

/// As the chips read them: 40 bits, or 32 on U85, then 32 and 6.
const char* read_scales(const EthosuState& s, const EthosuChip& chip, Regions regions,
                        std::vector<ChannelScale>* scales) {
  const bool is_u85 = chip.product == EthosuChip::kU85;
  const size_t turns = is_u85 ? 1 : chip.cores(), bias_bytes = is_u85 ? 4 : 5;
  scales->resize(s.size(kOfmDepthM1));
  for (size_t n = 0; n < scales->size(); ++n) {
    const std::byte* from =
        at(regions, s[kScaleRegion],
           s[n % turns == 0 ? kScaleBase : kScale1Base] + n / turns * kScaleBytes, kScaleBytes);
    if (from == nullptr) return "scales outside of their region";
    ChannelScale& to = (*scales)[n];
    uint64_t bias = 0;
    std::memcpy(&bias, from, bias_bytes);
    to.bias = static_cast<int64_t>(bias << (64 - 8 * bias_bytes)) >> (64 - 8 * bias_bytes);
    std::memcpy(&to.multiplier, from + bias_bytes, 4);
    to.shift = static_cast<uint32_t>(from[bias_bytes + 4]) & 63;
  }
  return nullptr;
}

/// The nearest code, halves upwards; a hostile scale's product may wrap around.
int32_t scaled(int64_t sum, const ChannelScale& scale) {
  const uint64_t product = static_cast<uint64_t>(sum + scale.bias) * scale.multiplier;
  const uint64_t half = scale.shift == 0 ? 0 : uint64_t{1} << (scale.shift - 1);
  const int64_t value = static_cast<int64_t>(product + half) >> scale.shift;
  return static_cast<int32_t>(std::clamp<int64_t>(value, -128, 127));
}

const char* run_sums(const EthosuState& s, const EthosuChip& chip, Regions regions,
                     const std::vector<int16_t>& weights) {
  const char* wrong = check_scales(s, chip, regions, s.size(kOfmDepthM1));
  if (wrong != nullptr) return wrong;
  return for_rows<int32_t>(s, regions,
                           [&](const std::vector<int8_t>& row, std::vector<int32_t>& sums) {
                             for (size_t n = 0; n < sums.size(); ++n)
                               sums[n] = sum_of(row, &weights[n * row.size()]);
                           });
}

/// Codes of sums, limited from below, and through a table.
const char* run_codes(const EthosuState& s, const EthosuChip& chip, Regions regions,
                      const std::vector<int16_t>& weights, const Tables& tables) {
  std::vector<ChannelScale> scales;
  const char* wrong = read_scales(s, chip, regions, &scales);
  if (wrong != nullptr) return wrong;
  const int32_t least = static_cast<int16_t>(s[kActivationMin]);
  const uint32_t number = s[kActivation] == 0 ? kEthosuNoTable : chip.table(s[kActivation]);
  const std::byte* table =
      number == kEthosuNoTable ? nullptr : tables.data() + number * kEthosuTableBytes;
  return for_rows<int8_t>(
      s, regions, [&](const std::vector<int8_t>& row, std::vector<int8_t>& codes) {
        for (size_t n = 0; n < codes.size(); ++n) {
          const int32_t code =
              std::max(scaled(sum_of(row, &weights[n * row.size()]), scales[n]), least);
          codes[n] =
              table == nullptr ? static_cast<int8_t>(code) : static_cast<int8_t>(table[code + 128]);
        }
      });
}

const char* run_convolution(const EthosuState& s, const EthosuChip& chip, Regions regions,
                            DecodedWeights& decoded, const Tables& tables) {
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
  constexpr uint64_t kInt32 = 5;
  return s[kOfmPrecision] == kInt32 ? run_sums(s, chip, regions, weights)
                                    : run_codes(s, chip, regions, weights, tables);
}

/// The validator sees to it that all else of a pool is as a copy needs it.
const char* run_copy(const EthosuState& s, Regions regions) {
  return for_rows<int8_t>(s, regions, [&](const std::vector<int8_t>& row, std::vector<int8_t>& to) {
    std::copy_n(row.begin(), to.size(), to.begin());
  });
}

const char* run_dma(const EthosuState& s, const EthosuChip& chip, Regions regions, Tables& tables) {
  const std::byte* from = at(regions, s[kDmaSourceRegion], s[kDmaSource], s[kDmaLength]);
  if (s[kDmaTargetRegion] == kEthosuInside) {
    const uint64_t place = s[kDmaTarget] - chip.tables();
    if (from == nullptr || place > tables.size() || s[kDmaLength] > tables.size() - place) {
      return "a table outside of the chip";
    }
    std::memcpy(tables.data() + place, from, static_cast<size_t>(s[kDmaLength]));
    return nullptr;
  }
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
  // What streams before left there is not theirs to use.
  Tables tables;
  tables.fill(std::byte{0x5a});
  EthosuReader reader(stream);
  uint32_t operation = 0;
  const char* why = nullptr;
  while (reader.next(&operation, &why)) {
    if (operation == kOpConv) why = run_convolution(reader.state(), chip, regions, decoded, tables);
    if (operation == kOpPool) why = run_copy(reader.state(), regions);
    if (operation == kOpDmaStart) why = run_dma(reader.state(), chip, regions, tables);
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
