#pragma once

// Dense layers of a finished file are compiled for an accelerator as well: their commands and encoded weights go behind the
// weights, and Model.offloads says whose they are. The steps stay.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// x W^T for so many rows of int8.
struct DenseCodes {
  uint32_t depth = 0;
  uint32_t channels = 0;
  /// [channels][depth].
  std::vector<int8_t> codes;
};

/// Dense layers with static rows of int8, one after the other; each gives int8 codes by the formula of docs/npu.md.
struct ChainLayer {
  DenseCodes weight;
  /// Of the rows, the weight's channels, and the codes that sums are rounded to.
  float x_scale = 0;
  std::vector<float> weight_scales;
  float sum_scale = 0;
  /// What sums begin with, and are multiplied with. One for each channel.
  std::vector<int32_t> biases;
  std::vector<float> factors;
  /// Smaller codes become this one: 0 is relu.
  int32_t least = 0;
  /// What follows in a table, with the scale of its codes and those for -128 to 127; none: no table, and the scale that
  /// the sums have.
  schema::Activation activation = schema::Activation::None;
  float y_scale = 0;
  std::vector<int8_t> table;
};
using Chain = std::vector<ChainLayer>;

struct CompiledLayer {
  std::vector<std::byte> commands, weights;
  /// 0: the compiler does not say.
  uint64_t cycles = 0;
  uint64_t fast_bytes = 0;
};

/// What a target has: exact sums of single layers, int8 results of chains, which may be of one layer, or both: chains where
/// several layers follow one another, and the others alone.
enum class OffloadPieces { kLayers, kChains, kBoth };

/// Makes layers for one target. Throws InputError when it cannot.
class NpuCompiler {
 public:
  virtual ~NpuCompiler() = default;
  virtual std::string plugin() const = 0;
  /// With version and settings.
  virtual std::string name() const = 0;
  virtual OffloadPieces pieces() const { return OffloadPieces::kLayers; }
  /// Of chains.
  virtual schema::OffloadResult chain_result() const { return schema::OffloadResult::Formula; }
  /// False: its layers go alone. Asked where there are both.
  virtual bool takes(const Chain&) const { return true; }
  virtual CompiledLayer compile(const DenseCodes& layer, uint32_t rows);
  virtual CompiledLayer compile_chain(const Chain& chain, uint32_t rows);
  /// Throws InputError when the plug-in would not run the piece.
  virtual void check(const CompiledLayer& layer, bool is_chain) const = 0;
};

struct OffloadOptions {
  /// "ethos-u65-256"; none: nothing is compiled.
  std::vector<std::string> targets;
  /// Numbers of rows to compile layers for; empty: 16 and 64.
  std::vector<uint32_t> rows;
  /// The program `vela`, for Ethos-U, and the names of its system configuration and memory mode; empty: its own choice for
  /// the chip.
  std::string vela = "vela";
  std::string vela_system, vela_memory;
  /// Static layers that follow one another go to Ethos-U as one, with int8 results.
  bool chains = false;
  /// A program and its arguments, for "litert-compiled": with --model=FILE and --o=FILE behind them it compiles a .tflite file.
  std::string litert_tool;
  /// A file of layers that were compiled before; empty: none.
  std::string cache;
};

/// The data region of a file whose weights are packed.
class DataRegion {
 public:
  virtual uint64_t bytes() const = 0;
  virtual void read(uint64_t offset, std::span<std::byte> bytes) const = 0;
  /// Behind all that is there, on a 64-byte boundary; where that is.
  virtual uint64_t append(std::span<const std::byte> bytes) = 0;

 protected:
  ~DataRegion() = default;
};

/// Rows of the weight one after the other, from the blocks of the file.
DenseCodes read_codes(const schema::TensorT& weight, const DataRegion& data);

/// Throws UsageError when there is no such target.
std::unique_ptr<NpuCompiler> make_npu_compiler(const std::string& target,
                                               const OffloadOptions& options);

/// One of the targets takes chains.
bool makes_chains(const OffloadOptions& options);

/// Adds offloads to the model and their bytes to its data. Returns what the user should know.
/// `progress` is told how many layers of all are done.
std::string add_offloads(const OffloadOptions& options, schema::ModelT& model, DataRegion& data,
                         const std::function<void(uint64_t done, uint64_t all)>& progress);

}  // namespace oxbow::convert
