#include "runtime/device/npu/ethosu/stream.h"

#include <cstdio>
#include <cstring>
#include <iterator>

#include "runtime/base/checked.h"

namespace oxbow {
namespace {

constexpr uint32_t kCop1 = 0x31504f43;  // "COP1"
constexpr uint32_t kActionConfig = 1;
constexpr uint32_t kActionStream = 2;
constexpr uint32_t kActionNop = 5;

// Registers that a stream of ours may set, and what their data must be; kAny: it is checked with the operation, or has no effect
// on addresses and results.
constexpr uint64_t kAny = UINT64_MAX;
struct Known {
  uint32_t command;
  uint64_t value;
};
constexpr Known kKnown[] = {
    {kIfmPadTop, 0},
    {kIfmPadLeft, 0},
    {kIfmPadRight, 0},
    {kIfmPadBottom, 0},
    {kIfmDepthM1, kAny},
    {kIfmPrecision, 1},
    {kIfmUpscale, 0},
    {kIfmZeroPoint, 0},
    {kIfmWidth0M1, kAny},
    {kIfmHeight0M1, kAny},
    {kIfmHeight1M1, kAny},
    {kIfmIbEnd, kAny},
    {kIfmRegion, kEthosuScratch},
    {kOfmWidthM1, kAny},
    {kOfmHeightM1, kAny},
    {kOfmDepthM1, kAny},
    {kOfmPrecision, 5},
    {kOfmBlockWidthM1, kAny},
    {kOfmBlockHeightM1, kAny},
    {kOfmBlockDepthM1, kAny},
    {kOfmZeroPoint, 0},
    {kOfmWidth0M1, kAny},
    {kOfmHeight0M1, kAny},
    {kOfmHeight1M1, kAny},
    {kOfmRegion, kEthosuScratch},
    {kKernelWidthM1, 0},
    {kKernelHeightM1, 0},
    {kKernelStride, 0},
    {kParallelMode, 0},
    {kAccFormat, 0},
    {kActivation, 0},
    {kActivationMin, 0x8000},
    {kActivationMax, 0x7fff},
    {kWeightRegion, kAny},
    {kScaleRegion, kAny},
    {kAbStart, kAny},
    {kBlockDep, kAny},
    {kDmaSourceRegion, kEthosuWeights},
    {kDmaTargetRegion, kAny},
    {kIfmBase0, kAny},
    {kIfmBase1, 0},
    {kIfmBase2, 0},
    {kIfmBase3, 0},
    {kIfmStrideX, kAny},
    {kIfmStrideY, kAny},
    {kIfmStrideC, 1},
    {kOfmBase0, kAny},
    {kOfmBase1, 0},
    {kOfmBase2, 0},
    {kOfmBase3, 0},
    {kOfmStrideX, kAny},
    {kOfmStrideY, kAny},
    {kOfmStrideC, 4},
    {kWeightBase, kAny},
    {kWeightLength, kAny},
    {kScaleBase, kAny},
    {kScaleLength, kAny},
    {kDmaSource, kAny},
    {kDmaTarget, kAny},
    {kDmaLength, kAny},
};

const Known* find_known(uint32_t command) {
  for (const Known& known : kKnown) {
    if (known.command == command) return &known;
  }
  return nullptr;
}

/// Where a convolution and its reader look: all of them must have been set.
constexpr uint32_t kNeeded[] = {
    kIfmDepthM1,   kIfmPrecision, kIfmWidth0M1,  kIfmHeight0M1,  kIfmRegion,    kOfmWidthM1,
    kOfmHeightM1,  kOfmDepthM1,   kOfmPrecision, kOfmWidth0M1,   kOfmHeight0M1, kOfmBlockDepthM1,
    kOfmRegion,    kWeightRegion, kScaleRegion,  kIfmBase0,      kIfmStrideX,   kIfmStrideY,
    kIfmStrideC,   kOfmBase0,     kOfmStrideX,   kOfmStrideY,    kOfmStrideC,   kWeightBase,
    kWeightLength, kScaleBase,    kScaleLength,  kActivationMin, kActivationMax};
constexpr uint32_t kNeededByDma[] = {kDmaSourceRegion, kDmaTargetRegion, kDmaSource, kDmaTarget,
                                     kDmaLength};

struct Regions {
  uint64_t bytes[kEthosuRegions];

  bool holds(uint64_t region, uint64_t offset, uint64_t length) const {
    return region < kEthosuRegions && offset <= bytes[region] && length <= bytes[region] - offset;
  }
};

/// All of a picture of rows by columns by channels; sizes are at most 2^16 and strides and bases 2^40, so nothing overflows.
bool picture_fits(const Regions& regions, uint64_t base, uint64_t stride_y, uint64_t stride_x,
                  uint64_t height, uint64_t width, uint64_t row_bytes) {
  const uint64_t last = (height - 1) * stride_y + (width - 1) * stride_x;
  return regions.holds(kEthosuScratch, base, last + row_bytes);
}

const char* check_convolution(const EthosuState& s, const Regions& regions) {
  const uint64_t height = s.size(kOfmHeightM1), width = s.size(kOfmWidthM1);
  // One tile holds all, so that the other bases are not used.
  if (s.size(kIfmHeight0M1) < height || s.size(kIfmWidth0M1) < width ||
      s.size(kOfmHeight0M1) < height || s.size(kOfmWidth0M1) < width) {
    return "a picture has several tiles";
  }
  if (!picture_fits(regions, s[kIfmBase0], s[kIfmStrideY], s[kIfmStrideX], height, width,
                    s.size(kIfmDepthM1))) {
    return "rows are read outside of their region";
  }
  if (!picture_fits(regions, s[kOfmBase0], s[kOfmStrideY], s[kOfmStrideX], height, width,
                    s.size(kOfmDepthM1) * 4)) {
    return "results are written outside of their region";
  }
  if (!regions.holds(s[kWeightRegion], s[kWeightBase], s[kWeightLength]) ||
      !regions.holds(s[kScaleRegion], s[kScaleBase], s[kScaleLength]) ||
      s[kScaleLength] < 10 * s.size(kOfmDepthM1)) {
    return "weights or scales are read outside of their region";
  }
  return nullptr;
}

const char* check_dma(const EthosuState& s, const Regions& regions) {
  const uint64_t target = s[kDmaTargetRegion];
  if (target != kEthosuScratch && target != kEthosuFast) return "weights would be written";
  if (!regions.holds(s[kDmaSourceRegion], s[kDmaSource], s[kDmaLength]) ||
      !regions.holds(target, s[kDmaTarget], s[kDmaLength])) {
    return "a copy leaves its region";
  }
  return nullptr;
}

}  // namespace

bool EthosuReader::next(uint32_t* operation, const char** why) {
  *why = nullptr;
  while (at_ < words_.size()) {
    const uint32_t word = words_[at_++];
    const uint32_t number = word & 0x3ff, parameter = word >> 16;
    if (stopped_) {
      *why = "there is something behind the end";
      return false;
    }
    if ((word & 0xc000) == 0x4000) {
      if (at_ == words_.size()) break;
      const uint64_t data = uint64_t{parameter & 0xff} << 32 | words_[at_++];
      if (0x400 + number >= kEthosuRegisters || (word & 0x3c00) != 0 || parameter > 0xff) {
        *why = "an unknown register is set";
        return false;
      }
      state_.values[0x400 + number] = data;
      *operation = 0x400 + number;
      return true;
    }
    if ((word & 0xfc00) != 0 || number >= 0x200) {
      *why = "a command is unknown";
      return false;
    }
    if (number == kOpStop) stopped_ = true;
    if (number >= 0x100) state_.values[number] = parameter;
    *operation = number;
    return true;
  }
  if (!stopped_) *why = "the stream has no end";
  return false;
}

const char* read_ethosu_commands(std::span<const std::byte> bytes, EthosuCommands* commands) {
  EthosuHeader& header = commands->header;
  if (bytes.size() < sizeof(header) + 32 || bytes.size() % 4 != 0) return "the commands are short";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kEthosuMagic) return "the commands are not of an Ethos-U";
  if (header.version != kEthosuVersion) return "the commands are of another version";
  const auto* words = reinterpret_cast<const uint32_t*>(bytes.data() + sizeof(header));
  commands->actions = {words, (bytes.size() - sizeof(header)) / 4};
  const std::span<const uint32_t> actions = commands->actions;
  // "COP1", the chip's configuration and version, padding, and the tag of the stream with its length.
  if (actions[0] != kCop1 || (actions[1] & 0xff) != kActionConfig) {
    return "the driver's actions are of another kind";
  }
  commands->config = actions[2];
  size_t at = 4;
  while (at < actions.size() && actions[at] == kActionNop) ++at;
  if (at >= actions.size() || (actions[at] & 0xff) != kActionStream) return "there is no stream";
  const size_t length = size_t{actions[at] >> 8 & 0xff} << 16 | actions[at] >> 16;
  if (length != actions.size() - at - 1) return "the stream has another length";
  commands->stream = actions.subspan(at + 1);
  return nullptr;
}

const char* check_ethosu_stream(const EthosuCommands& commands, size_t weight_bytes) {
  const EthosuHeader& header = commands.header;
  const Regions regions = {{weight_bytes, header.scratch_bytes, header.fast_bytes}};
  if (!regions.holds(kEthosuScratch, header.input_offset, header.input_bytes) ||
      !regions.holds(kEthosuScratch, header.output_offset, header.output_bytes)) {
    return "rows or results lie outside of the scratch memory";
  }
  bool is_set[kEthosuRegisters] = {};
  const auto all_set = [&](std::span<const uint32_t> needed) {
    for (const uint32_t command : needed) {
      if (!is_set[command]) return false;
    }
    return true;
  };
  EthosuReader reader(commands.stream);
  uint32_t operation = 0;
  const char* why = nullptr;
  while (reader.next(&operation, &why)) {
    switch (operation) {
      case kOpStop:
      case kOpDmaWait:
      case kOpKernelWait:
        break;
      case kOpConv:
        if (!all_set(kNeeded)) return "a register was not set";
        why = check_convolution(reader.state(), regions);
        break;
      case kOpDmaStart:
        if (!all_set(kNeededByDma)) return "a register was not set";
        why = check_dma(reader.state(), regions);
        break;
      default: {
        const Known* known = find_known(operation);
        if (known == nullptr) return "a command is unknown";
        if (known->value != kAny && known->value != reader.state()[operation]) {
          return "a register has a value that no sums need";
        }
        is_set[operation] = true;
      }
    }
    if (why != nullptr) return why;
  }
  return why;
}

bool ethosu_target(uint32_t config, char (&text)[24]) {
  const uint32_t product = config >> 28, macs = config & 15;
  if (product > 2) return false;
  std::snprintf(text, sizeof(text), "ethos-u%s-%u",
                product == 0   ? "55"
                : product == 1 ? "65"
                               : "85",
                1u << macs);
  return true;
}

}  // namespace oxbow
