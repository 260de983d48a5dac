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

// Registers that a stream of ours may set, on which chips, and what their data must be behind a mask; kAny: it is checked with
// the operation, or has no effect on addresses and results.
enum Chips : uint32_t { kU55 = 1, kU65 = 2, kU85 = 4, kOld = kU55 | kU65, kAll = kOld | kU85 };
constexpr uint64_t kAny = 0, kExactly = UINT64_MAX;
struct Known {
  uint32_t command;
  uint32_t chips;
  uint64_t mask;
  uint64_t value;
};
constexpr Known kKnown[] = {
    {kIfmPadTop, kAll, kExactly, 0},
    {kIfmPadLeft, kAll, kExactly, 0},
    {kIfmPadRight, kAll, kExactly, 0},
    {kIfmPadBottom, kAll, kExactly, 0},
    {kIfmDepthM1, kAll, kAny, 0},
    {kIfmPrecision, kAll, kAny, 0},
    {kIfmUpscale, kAll, kExactly, 0},
    {kIfmZeroPoint, kAll, kExactly, 0},
    {kIfmWidth0M1, kAll, kAny, 0},
    {kIfmHeight0M1, kAll, kAny, 0},
    {kIfmHeight1M1, kAll, kAny, 0},
    {kIfmIbEnd, kOld, kAny, 0},
    {kIfmRegion, kAll, kAny, 0},
    {kOfmWidthM1, kAll, kAny, 0},
    {kOfmHeightM1, kAll, kAny, 0},
    {kOfmDepthM1, kAll, kAny, 0},
    {kOfmPrecision, kAll, kAny, 0},
    {kOfmBlockWidthM1, kAll, kAny, 0},
    {kOfmBlockHeightM1, kAll, kAny, 0},
    {kOfmBlockDepthM1, kAll, kAny, 0},
    {kOfmZeroPoint, kAll, kExactly, 0},
    {kOfmWidth0M1, kAll, kAny, 0},
    {kOfmHeight0M1, kAll, kAny, 0},
    {kOfmHeight1M1, kAll, kAny, 0},
    {kOfmRegion, kAll, kAny, 0},
    {kKernelWidthM1, kAll, kExactly, 0},
    {kKernelHeightM1, kAll, kExactly, 0},
    // Its third bit is the order of the weights.
    {kKernelStride, kAll, ~uint64_t{4}, 0},
    {kParallelMode, kU65, kAny, 0},
    {kAccFormat, kOld, kExactly, 0},
    // The shape of a unit of work.
    {kAccFormat, kU85, ~uint64_t{0xf00}, 0},
    {kActivation, kAll, kAny, 0},
    {kActivationMin, kAll, kAny, 0},
    {kActivationMax, kAll, kAny, 0},
    {kWeightRegion, kAll, kAny, 0},
    {kScaleRegion, kAll, kAny, 0},
    {kAbStart, kOld, kAny, 0},
    // Two of four weights are zero, or any; never those of the second decoder, whose order is another.
    {kWeightFormat, kU85, ~uint64_t{0x10}, 0},
    {kBlockDep, kAll, kAny, 0},
    {kDmaSourceRegion, kAll, kExactly, kEthosuWeights},
    {kDmaTargetRegion, kAll, kAny, 0},
    {kDmaSize0, kU85, kExactly, 1},
    {kIfmBase0, kAll, kAny, 0},
    {kIfmBase1, kAll, kExactly, 0},
    {kIfmBase2, kAll, kExactly, 0},
    {kIfmBase3, kAll, kExactly, 0},
    {kIfmStrideX, kAll, kAny, 0},
    {kIfmStrideY, kAll, kAny, 0},
    {kIfmStrideC, kAll, kAny, 0},
    {kOfmBase0, kAll, kAny, 0},
    {kOfmBase1, kAll, kExactly, 0},
    {kOfmBase2, kAll, kExactly, 0},
    {kOfmBase3, kAll, kExactly, 0},
    {kOfmStrideX, kAll, kAny, 0},
    {kOfmStrideY, kAll, kAny, 0},
    {kOfmStrideC, kAll, kAny, 0},
    {kWeightBase, kAll, kAny, 0},
    {kWeightLength, kAll, kAny, 0},
    {kScaleBase, kAll, kAny, 0},
    {kScaleLength, kAll, kAny, 0},
    {kOfmScale, kU85, kAny, 0},
    {kDmaSource, kAll, kAny, 0},
    {kDmaTarget, kAll, kAny, 0},
    {kDmaLength, kAll, kAny, 0},
    {kWeight1Base, kU65 | kU85, kAny, 0},
    {kWeight1Length, kU65 | kU85, kAny, 0},
    {kWeight2Base, kU65 | kU85, kAny, 0},
    {kWeight2Length, kU65 | kU85, kAny, 0},
    {kWeight3Base, kU85, kAny, 0},
    {kWeight3Length, kU85, kAny, 0},
};

const Known* find_known(uint32_t command, EthosuChip::Product product) {
  for (const Known& known : kKnown) {
    if (known.command == command && (known.chips & 1u << product) != 0) return &known;
  }
  return nullptr;
}

/// What registers must be when an operation starts, behind a mask. Sums keep all 32 bits; a copy of rows keeps 8. Codes may
/// begin at 0, lie in bricks, and pass through a table, which is checked apart.
struct Setting {
  uint32_t command;
  uint64_t value;
  uint64_t mask = kExactly;
};
constexpr Setting kSumsOld[] = {{kIfmPrecision, 1},      {kIfmStrideC, 1}, {kOfmPrecision, 5},
                                {kOfmStrideC, 4},        {kActivation, 0}, {kActivationMin, 0x8000},
                                {kActivationMax, 0x7fff}};
constexpr Setting kSumsU85[] = {
    {kIfmPrecision, 1},    {kIfmStrideC, 1},         {kOfmPrecision, 5},       {kOfmStrideC, 4},
    {kActivation, 0x1000}, {kActivationMin, 0x8000}, {kActivationMax, 0xffff}, {kOfmScale, 1}};
constexpr Setting kCopyU85[] = {{kIfmPrecision, 1},     {kIfmStrideC, 1}, {kOfmPrecision, 0x101},
                                {kOfmStrideC, 1},       {kActivation, 0}, {kActivationMin, 0xff80},
                                {kActivationMax, 0x7f}, {kOfmScale, 1}};
constexpr Setting kCodesOld[] = {{kIfmPrecision, 1, ~kEthosuBricks},
                                 {kOfmPrecision, kEthosuNearest | 1, ~kEthosuBricks},
                                 {kActivationMax, 0x7f}};
constexpr Setting kCodesU85[] = {{kIfmPrecision, 1, ~kEthosuBricks},
                                 {kOfmPrecision, 1, ~kEthosuBricks},
                                 {kActivationMax, 0x7f},
                                 {kOfmScale, kEthosuNearestU85, ~kEthosuOwnScales}};

/// Where operations and their reader look: all of them must have been set, since a chip may keep those of the stream before.
constexpr uint32_t kNeeded[] = {
    kIfmDepthM1,     kIfmPrecision, kIfmWidth0M1,  kIfmHeight0M1,  kIfmRegion,     kOfmWidthM1,
    kOfmHeightM1,    kOfmDepthM1,   kOfmPrecision, kOfmWidth0M1,   kOfmRegion,     kOfmHeight0M1,
    kIfmBase0,       kIfmStrideX,   kIfmStrideY,   kIfmStrideC,    kOfmBase0,      kOfmStrideX,
    kOfmStrideY,     kOfmStrideC,   kActivation,   kActivationMin, kActivationMax, kKernelWidthM1,
    kKernelHeightM1, kKernelStride, kIfmPadTop,    kIfmPadLeft,    kIfmPadRight,   kIfmPadBottom,
    kIfmUpscale,     kIfmZeroPoint, kOfmZeroPoint};
constexpr uint32_t kNeededBySums[] = {kOfmBlockDepthM1, kWeightRegion, kScaleRegion, kScaleBase,
                                      kScaleLength};
constexpr uint32_t kNeededByTwoCores[] = {kParallelMode, kScale1Base, kScale1Length};
constexpr uint32_t kNeededByU85[] = {kOfmScale, kAccFormat, kWeightFormat};
constexpr uint32_t kNeededByDma[] = {kDmaSourceRegion, kDmaTargetRegion, kDmaSource, kDmaTarget,
                                     kDmaLength};

constexpr const char* kNoValue = "a register has a value that no sums need";

struct Regions {
  uint64_t bytes[kEthosuRegions];

  bool holds(uint64_t region, uint64_t offset, uint64_t length) const {
    return region < kEthosuRegions && offset <= bytes[region] && length <= bytes[region] - offset;
  }
};

bool is_memory_of_rows(uint64_t region) {
  return region == kEthosuScratch || region == kEthosuFast;
}

/// All of a picture of rows by columns by channels, of which the registers of one kind tell. Sizes are at most 2^16 and strides
/// and bases 2^40, so nothing overflows. A brick counts whole.
bool picture_fits(const EthosuState& s, const EthosuPicture& picture, const Regions& regions,
                  uint64_t element_bytes) {
  const uint64_t height = s.size(kOfmHeightM1), width = s.size(kOfmWidthM1);
  const uint64_t depth = s.size(picture.depth);
  const uint64_t last = (height - 1) * s[picture.stride_y] + (width - 1) * s[picture.stride_x];
  const uint64_t row = picture.has_bricks(s)
                           ? (depth - 1) / kEthosuBrick * s[picture.stride_c] + kEthosuBrick
                           : depth * element_bytes;
  return regions.holds(s[picture.region], s[picture.base], last + row);
}

/// Of sums and copies alike: settings, and that rows and results lie where they may.
const char* check_pictures(const EthosuState& s, const Regions& regions,
                           std::span<const Setting> settings, uint64_t result_bytes) {
  for (const Setting& setting : settings) {
    if ((s[setting.command] & setting.mask) != setting.value) return kNoValue;
  }
  if (!is_memory_of_rows(s[kIfmRegion]) || !is_memory_of_rows(s[kOfmRegion])) return kNoValue;
  const uint64_t height = s.size(kOfmHeightM1), width = s.size(kOfmWidthM1);
  // One tile holds all, so that the other bases are not used.
  if (s.size(kIfmHeight0M1) < height || s.size(kIfmWidth0M1) < width ||
      s.size(kOfmHeight0M1) < height || s.size(kOfmWidth0M1) < width) {
    return "a picture has several tiles";
  }
  if (!picture_fits(s, kEthosuRows, regions, 1)) return "rows are read outside of their region";
  if (!picture_fits(s, kEthosuResults, regions, result_bytes)) {
    return "results are written outside of their region";
  }
  return nullptr;
}

/// Beside the settings of codes: where they begin, how they lie, and a table that is there.
const char* check_codes(const EthosuState& s, const EthosuChip& chip, uint32_t tables) {
  if (s[kActivationMin] != 0 && s[kActivationMin] != 0xff80) return kNoValue;
  for (const EthosuPicture& picture : {kEthosuRows, kEthosuResults}) {
    if (picture.has_bricks(s) ? s[picture.stride_x] != kEthosuBrick : s[picture.stride_c] != 1) {
      return kNoValue;
    }
  }
  if (s[kActivation] == 0) return nullptr;
  const uint32_t table = chip.table(s[kActivation]);
  if (table == kEthosuNoTable) return kNoValue;
  return (tables >> table & 1) != 0 ? nullptr : "a table is not there";
}

const char* check_convolution(const EthosuState& s, const EthosuChip& chip, const Regions& regions,
                              EthosuResult result, uint32_t tables) {
  const bool is_u85 = chip.product == EthosuChip::kU85;
  if (s[kOpConv] != 0) return "a convolution is of another kind";
  if (s[kParallelMode] != (chip.product == EthosuChip::kU65 ? chip.cores() - 1 : 0)) {
    return kNoValue;
  }
  using Settings = std::span<const Setting>;
  const bool sums = result == EthosuResult::kSums;
  const Settings settings =
      sums ? (is_u85 ? Settings(kSumsU85) : kSumsOld) : (is_u85 ? Settings(kCodesU85) : kCodesOld);
  const char* wrong = check_pictures(s, regions, settings, sums ? 4 : 1);
  if (wrong == nullptr && !sums) wrong = check_codes(s, chip, tables);
  if (wrong != nullptr) return wrong;
  constexpr const char* kOutside = "weights or scales are read outside of their region";
  for (uint32_t core = 0; core < chip.cores(); ++core) {
    const EthosuWeightRegisters& at = kEthosuWeightRegisters[core];
    if (!regions.holds(s[kWeightRegion], s[at.base], s[at.length])) return kOutside;
  }
  // The two cores of a U65 take turns with the channels, and each has the scales of its own.
  const uint64_t turns = is_u85 ? 1 : chip.cores();
  const uint64_t channels = s.size(kOfmDepthM1);
  if (!regions.holds(s[kScaleRegion], s[kScaleBase], s[kScaleLength]) ||
      s[kScaleLength] < 10 * ((channels + turns - 1) / turns)) {
    return kOutside;
  }
  if (turns == 2 && (!regions.holds(s[kScaleRegion], s[kScale1Base], s[kScale1Length]) ||
                     s[kScale1Length] < 10 * (channels / 2))) {
    return kOutside;
  }
  return nullptr;
}

/// Of rows, byte by byte: a pool of one pixel.
const char* check_copy(const EthosuState& s, const Regions& regions) {
  if (s[kOpPool] != kPoolSum) return "a pool is of another kind";
  if (s[kIfmDepthM1] != s[kOfmDepthM1]) return "a copy has another depth";
  return check_pictures(s, regions, kCopyU85, 1);
}

/// A table that goes into the chip is added to `tables`.
const char* check_dma(const EthosuState& s, const EthosuChip& chip, const Regions& regions,
                      EthosuResult result, uint32_t* tables) {
  const uint64_t target = s[kDmaTargetRegion];
  if (s[kOpDmaStart] != 0) return "a copy is of another kind";
  if (target == kEthosuInside && result == EthosuResult::kCodes) {
    const uint64_t at = s[kDmaTarget] - chip.tables();
    if (s[kDmaTarget] < chip.tables() || at % kEthosuTableBytes != 0 ||
        at / kEthosuTableBytes >= kEthosuTables || s[kDmaLength] != kEthosuTableBytes ||
        !regions.holds(s[kDmaSourceRegion], s[kDmaSource], s[kDmaLength])) {
      return "a table leaves its place";
    }
    *tables |= 1u << at / kEthosuTableBytes;
    return nullptr;
  }
  if (!is_memory_of_rows(target)) return "weights would be written";
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
      const uint64_t data = uint64_t{parameter} << 32 | words_[at_++];
      const uint32_t most = 0x400 + number == kOfmScale ? 0xffff : 0xff;
      if (0x400 + number >= kEthosuRegisters || (word & 0x3c00) != 0 || parameter > most) {
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
    state_.values[number] = parameter;
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

const char* check_ethosu_stream(const EthosuCommands& commands, size_t weight_bytes,
                                EthosuResult result) {
  const EthosuHeader& header = commands.header;
  const Regions regions = {{weight_bytes, header.scratch_bytes, header.fast_bytes}};
  if (!regions.holds(kEthosuScratch, header.input_offset, header.input_bytes) ||
      !regions.holds(kEthosuScratch, header.output_offset, header.output_bytes)) {
    return "rows or results lie outside of the scratch memory";
  }
  EthosuChip chip;
  if (!ethosu_chip(commands.config, &chip)) return "the chip is unknown";
  bool is_set[kEthosuRegisters] = {};
  uint32_t tables = 0;
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
        if (!all_set(kNeeded) || !all_set(kNeededBySums) ||
            (chip.product == EthosuChip::kU85 && !all_set(kNeededByU85)) ||
            (chip.product == EthosuChip::kU65 && chip.cores() == 2 &&
             !all_set(kNeededByTwoCores))) {
          return "a register was not set";
        }
        for (uint32_t core = 0; core < chip.cores(); ++core) {
          const EthosuWeightRegisters& at = kEthosuWeightRegisters[core];
          if (!is_set[at.base] || !is_set[at.length]) return "a register was not set";
        }
        why = check_convolution(reader.state(), chip, regions, result, tables);
        break;
      case kOpPool:
        if (chip.product != EthosuChip::kU85) return "a command is unknown";
        if (!all_set(kNeeded) || !is_set[kOfmScale] || !is_set[kAccFormat]) {
          return "a register was not set";
        }
        why = check_copy(reader.state(), regions);
        break;
      case kOpDmaStart:
        if (!all_set(kNeededByDma) || (chip.product == EthosuChip::kU85 && !is_set[kDmaSize0])) {
          return "a register was not set";
        }
        why = check_dma(reader.state(), chip, regions, result, &tables);
        break;
      default: {
        const Known* known = find_known(operation, chip.product);
        if (known == nullptr) return "a command is unknown";
        if ((reader.state()[operation] & known->mask) != known->value) return kNoValue;
        is_set[operation] = true;
      }
    }
    if (why != nullptr) return why;
  }
  return why;
}

bool ethosu_chip(uint32_t config, EthosuChip* chip) {
  // Of each product, the smallest and largest number of multipliers as a power of two.
  static constexpr uint32_t kLeast[] = {5, 8, 7}, kMost[] = {8, 9, 11};
  const uint32_t product = config >> 28, macs = config & 15;
  if (product > EthosuChip::kU85 || macs < kLeast[product] || macs > kMost[product]) return false;
  *chip = {static_cast<EthosuChip::Product>(product), 1u << macs};
  return true;
}

uint32_t EthosuChip::table(uint64_t activation) const {
  const uint64_t number = product == kU85 ? activation >> 5 : activation - 0x10;
  const bool is_one = product != kU85 || (activation & 0x1f) == 4;
  return is_one && number < kEthosuTables ? static_cast<uint32_t>(number) : kEthosuNoTable;
}

bool ethosu_target(uint32_t config, char (&text)[24]) {
  static constexpr int kNames[] = {55, 65, 85};
  EthosuChip chip;
  if (!ethosu_chip(config, &chip)) return false;
  std::snprintf(text, sizeof(text), "ethos-u%d-%u", kNames[chip.product], chip.macs);
  return true;
}

}  // namespace oxbow
