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

// Channels of a unit of work, in and out, of the chips with 256 multipliers; and of a block of int8 rows.
constexpr size_t kUnit = 8;
constexpr size_t kInputBlock = 32;
constexpr size_t kScaleBytes = 10;

using Regions = std::span<const std::span<std::byte>>;

const std::byte* at(Regions regions, uint64_t region, uint64_t offset, uint64_t bytes) {
  if (region >= regions.size() || offset > regions[region].size() ||
      bytes > regions[region].size() - offset) {
    return nullptr;
  }
  return regions[region].data() + offset;
}

/// Weights [channels][depth] from the order in which the chip eats them: blocks of channels, in them blocks of depth, in
/// them units of channels, in them units of depth, each channel by channel; what is not there is zero.
bool unpack(std::span<const int16_t> stream, size_t channels, size_t depth, size_t block,
            std::vector<int16_t>* weights) {
  weights->assign(channels * depth, 0);
  size_t next = 0;
  for (size_t n0 = 0; n0 < channels; n0 += block) {
    const size_t block_channels = std::min(block, channels - n0);
    for (size_t k0 = 0; k0 < depth; k0 += kInputBlock) {
      const size_t block_depth = std::min(kInputBlock, depth - k0);
      for (size_t n1 = 0; n1 < block_channels; n1 += kUnit) {
        for (size_t k1 = 0; k1 < kInputBlock; k1 += kUnit) {
          for (size_t i = 0; i < kUnit * kUnit; ++i) {
            if (next == stream.size()) return false;
            const int16_t value = stream[next++];
            const size_t n = n0 + n1 + i / kUnit, k = k0 + k1 + i % kUnit;
            if (n1 + i / kUnit < block_channels && k1 + i % kUnit < block_depth) {
              (*weights)[n * depth + k] = value;
            }
          }
        }
      }
    }
  }
  return true;
}

const char* run_convolution(const EthosuState& s, Regions regions, DecodedWeights& decoded) {
  const size_t depth = s.size(kIfmDepthM1), channels = s.size(kOfmDepthM1);
  const size_t height = s.size(kOfmHeightM1), width = s.size(kOfmWidthM1);
  const std::byte* encoded = at(regions, s[kWeightRegion], s[kWeightBase], s[kWeightLength]);
  const std::byte* scales = at(regions, s[kScaleRegion], s[kScaleBase], s[kScaleLength]);
  if (encoded == nullptr || scales == nullptr || s[kScaleLength] < kScaleBytes * channels) {
    return "weights outside of their region";
  }
  const uint64_t shape[] = {channels, depth, s.size(kOfmBlockDepthM1)};
  const auto encoded_bytes = static_cast<size_t>(s[kWeightLength]);
  const uint64_t key = hash_bytes(encoded, encoded_bytes, hash_bytes(shape, sizeof(shape)));
  std::vector<int16_t>& weights = decoded[key];
  if (weights.empty()) {
    std::vector<int16_t> order;
    const size_t most = round_up(channels, size_t{64}) * round_up(depth, size_t{32}) + 65536;
    if (!decode_ethosu_weights({encoded, encoded_bytes}, most, &order) ||
        !unpack(order, channels, depth, s.size(kOfmBlockDepthM1), &weights)) {
      weights.clear();
      return "the weights are broken";
    }
  }
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const std::byte* row =
          at(regions, s[kIfmRegion], s[kIfmBase0] + y * s[kIfmStrideY] + x * s[kIfmStrideX], depth);
      const std::byte* result =
          at(regions, s[kOfmRegion], s[kOfmBase0] + y * s[kOfmStrideY] + x * s[kOfmStrideX],
             channels * 4);
      if (row == nullptr || result == nullptr) return "a picture outside of its region";
      for (size_t n = 0; n < channels; ++n) {
        // A bias of 40 bits, a factor of 32 and a shift.
        const std::byte* scale = scales + n * kScaleBytes;
        static constexpr unsigned char kOne[kScaleBytes] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
        if (std::memcmp(scale, kOne, sizeof(kOne)) != 0) return "a scale that is not 1";
        int32_t sum = 0;
        for (size_t k = 0; k < depth; ++k) {
          sum += static_cast<int8_t>(row[k]) * weights[n * depth + k];
        }
        std::memcpy(const_cast<std::byte*>(result) + n * 4, &sum, 4);
      }
    }
  }
  return nullptr;
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

const char* run_ethosu_stream(std::span<const uint32_t> stream, Regions regions,
                              DecodedWeights& decoded) {
  EthosuReader reader(stream);
  uint32_t operation = 0;
  const char* why = nullptr;
  while (reader.next(&operation, &why)) {
    if (operation == kOpConv) why = run_convolution(reader.state(), regions, decoded);
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
      run_ethosu_stream({reinterpret_cast<const uint32_t*>(stream->second.bytes.data()),
                         stream_bytes_[job.stream] / 4},
                        regions, decoded_);
  if (why != nullptr) complaint_ = why;
  return why == nullptr ? 0 : -1;
}

}  // namespace oxbow::testing
