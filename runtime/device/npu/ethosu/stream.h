#pragma once

// What the commands of a layer for an Ethos-U are: a header of ours and the command stream that Vela made. Nothing of a stream
// runs before every register in it is known and every address inside its region.

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

/// Regions of Vela's streams: encoded weights, scales and tables, rows and results, and fast memory.
enum EthosuRegion : uint32_t { kEthosuWeights = 0, kEthosuScratch = 1, kEthosuFast = 2 };
inline constexpr size_t kEthosuRegions = 3;
/// In place of a region: memory inside the chip, where tables of codes go.
inline constexpr uint32_t kEthosuInside = 0x103;

/// Tables of codes that a chip holds, each of one byte for every code from -128 on.
inline constexpr size_t kEthosuTables = 8, kEthosuTableBytes = 256;
inline constexpr uint32_t kEthosuNoTable = UINT32_MAX;

/// Values of kOfmPrecision and kIfmPrecision: int8 codes in bricks of 16 channels, and on chips before U85 that scaled codes
/// are rounded to the nearest, halves upwards.
inline constexpr uint64_t kEthosuBricks = 0x40, kEthosuNearest = 0x8000;
/// The same on U85, in the upper half of kOfmScale. The rest of it is not used where each channel has a scale of its own.
inline constexpr uint64_t kEthosuNearestU85 = uint64_t{0x2000} << 32;
inline constexpr uint64_t kEthosuOwnScales = uint64_t{0x3f} << 32 | UINT32_MAX;
inline constexpr uint64_t kEthosuBrick = 16;

/// Little endian, like all of it.
struct EthosuHeader {
  uint32_t magic = 0;
  uint32_t version = 0;
  uint32_t scratch_bytes = 0;
  uint32_t fast_bytes = 0;
  /// In the scratch region.
  uint32_t input_offset = 0;
  uint32_t input_bytes = 0;
  uint32_t output_offset = 0;
  uint32_t output_bytes = 0;
};
inline constexpr uint32_t kEthosuMagic = 0x5545584f;  // "OXEU"
inline constexpr uint32_t kEthosuVersion = 1;

/// A register's number in a stream; those with 32 bits of data are counted from 0x400 on.
enum EthosuCommand : uint32_t {
  kOpStop = 0x000,
  kOpConv = 0x002,
  kOpPool = 0x005,
  kOpDmaStart = 0x010,
  kOpDmaWait = 0x011,
  kOpKernelWait = 0x012,
  kIfmPadTop = 0x100,
  kIfmPadLeft = 0x101,
  kIfmPadRight = 0x102,
  kIfmPadBottom = 0x103,
  kIfmDepthM1 = 0x104,
  kIfmPrecision = 0x105,
  kIfmUpscale = 0x107,
  kIfmZeroPoint = 0x109,
  kIfmWidth0M1 = 0x10a,
  kIfmHeight0M1 = 0x10b,
  kIfmHeight1M1 = 0x10c,
  kIfmIbEnd = 0x10d,
  kIfmRegion = 0x10f,
  kOfmWidthM1 = 0x111,
  kOfmHeightM1 = 0x112,
  kOfmDepthM1 = 0x113,
  kOfmPrecision = 0x114,
  kOfmBlockWidthM1 = 0x115,
  kOfmBlockHeightM1 = 0x116,
  kOfmBlockDepthM1 = 0x117,
  kOfmZeroPoint = 0x118,
  kOfmWidth0M1 = 0x11a,
  kOfmHeight0M1 = 0x11b,
  kOfmHeight1M1 = 0x11c,
  kOfmRegion = 0x11f,
  kKernelWidthM1 = 0x120,
  kKernelHeightM1 = 0x121,
  kKernelStride = 0x122,
  kParallelMode = 0x123,
  kAccFormat = 0x124,
  kActivation = 0x125,
  kActivationMin = 0x126,
  kActivationMax = 0x127,
  kWeightRegion = 0x128,
  kScaleRegion = 0x129,
  kAbStart = 0x12d,
  kWeightFormat = 0x12e,
  kBlockDep = 0x12f,
  kDmaSourceRegion = 0x130,
  kDmaTargetRegion = 0x131,
  kDmaSize0 = 0x132,
  kIfmBase0 = 0x400,
  kIfmBase1 = 0x401,
  kIfmBase2 = 0x402,
  kIfmBase3 = 0x403,
  kIfmStrideX = 0x404,
  kIfmStrideY = 0x405,
  kIfmStrideC = 0x406,
  kOfmBase0 = 0x410,
  kOfmBase1 = 0x411,
  kOfmBase2 = 0x412,
  kOfmBase3 = 0x413,
  kOfmStrideX = 0x414,
  kOfmStrideY = 0x415,
  kOfmStrideC = 0x416,
  kWeightBase = 0x420,
  kWeightLength = 0x421,
  kScaleBase = 0x422,
  kScaleLength = 0x423,
  kOfmScale = 0x424,
  kDmaSource = 0x430,
  kDmaTarget = 0x431,
  kDmaLength = 0x432,
  // Of the other cores: weights and scales of U65's second, weights of U85's second to fourth.
  kWeight1Base = 0x490,
  kWeight1Length = 0x491,
  kScale1Base = 0x492,
  kScale1Length = 0x493,
  kWeight2Base = 0x492,
  kWeight2Length = 0x493,
  kWeight3Base = 0x494,
  kWeight3Length = 0x495,
};
inline constexpr size_t kEthosuRegisters = 0x4a0;

/// The mode of a pool that only adds up: with one pixel it is a copy.
inline constexpr uint32_t kPoolSum = 3;

/// What a configuration register says.
struct EthosuChip {
  enum Product : uint32_t { kU55 = 0, kU65 = 1, kU85 = 2 };
  Product product = kU55;
  uint32_t macs = 0;

  /// Units that have encoded weights of their own.
  uint32_t cores() const {
    if (product != kU85) return macs == 512 ? 2 : 1;
    return macs < 512 ? 1 : macs == 512 ? 2 : 4;
  }
  /// Where its tables begin inside: the end of what memory it has there.
  uint32_t tables() const {
    if (product == kU85) return 0;
    return macs < 128 ? 0x3800 : macs == 128 ? 0x5800 : 0xb800;
  }
  /// Which table kActivation names, or kEthosuNoTable.
  uint32_t table(uint64_t activation) const;
};

/// Where a core's encoded weights are, and their bytes.
struct EthosuWeightRegisters {
  uint32_t base, length;
};
inline constexpr EthosuWeightRegisters kEthosuWeightRegisters[] = {{kWeightBase, kWeightLength},
                                                                   {kWeight1Base, kWeight1Length},
                                                                   {kWeight2Base, kWeight2Length},
                                                                   {kWeight3Base, kWeight3Length}};

/// All registers, as a stream has set them so far, and what its operations were given.
struct EthosuState {
  /// Addresses have 40 bits, kOfmScale has 48.
  uint64_t values[kEthosuRegisters] = {};

  uint64_t operator[](uint32_t command) const { return values[command]; }
  uint64_t size(uint32_t command) const { return values[command] + 1; }
};

/// The registers that tell where rows are read, or results are written. Their height and width are the results'.
struct EthosuPicture {
  uint32_t region, base, stride_y, stride_x, stride_c, precision, depth;

  bool has_bricks(const EthosuState& s) const { return (s[precision] & kEthosuBricks) != 0; }
};
inline constexpr EthosuPicture kEthosuRows = {kIfmRegion,  kIfmBase0,     kIfmStrideY, kIfmStrideX,
                                              kIfmStrideC, kIfmPrecision, kIfmDepthM1};
inline constexpr EthosuPicture kEthosuResults = {
    kOfmRegion, kOfmBase0, kOfmStrideY, kOfmStrideX, kOfmStrideC, kOfmPrecision, kOfmDepthM1};

/// Reads a stream command by command. Registers are set as it goes.
class EthosuReader {
 public:
  explicit EthosuReader(std::span<const uint32_t> words) : words_(words) {}

  /// The next operation; false at the end, and with `why` where the stream is wrong.
  bool next(uint32_t* operation, const char** why);
  const EthosuState& state() const { return state_; }

 private:
  std::span<const uint32_t> words_;
  size_t at_ = 0;
  bool stopped_ = false;
  EthosuState state_;
};

struct EthosuCommands {
  EthosuHeader header;
  /// The driver's actions that Vela puts in front, and the stream behind them.
  std::span<const uint32_t> actions;
  std::span<const uint32_t> stream;
  /// The chip it was made for: its configuration register.
  uint32_t config = 0;
};

/// Null and the parts, or why not. `bytes` is aligned to 4. Of the stream nothing is looked at yet.
const char* read_ethosu_commands(std::span<const std::byte> bytes, EthosuCommands* commands);

/// What the convolutions of a stream give.
enum class EthosuResult { kSums, kCodes };

/// Null when the stream computes int32 sums of int8 rows and weights, or int8 codes from them with a scale for each channel,
/// with every address inside its region, and writes to nothing but scratch and fast memory and the chip's tables; otherwise
/// why not.
const char* check_ethosu_stream(const EthosuCommands& commands, size_t weight_bytes,
                                EthosuResult result);

/// False: no chip of which streams are known.
bool ethosu_chip(uint32_t config, EthosuChip* chip);

/// "ethos-u65-256" of a configuration register; false: no chip of which streams are known.
bool ethosu_target(uint32_t config, char (&text)[24]);

}  // namespace oxbow
