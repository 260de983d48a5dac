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

struct CompiledLayer {
  std::vector<std::byte> commands, weights;
  /// 0: the compiler does not say.
  uint64_t cycles = 0;
  uint64_t fast_bytes = 0;
};

/// Makes layers for one target. Throws InputError when it cannot.
class NpuCompiler {
 public:
  virtual ~NpuCompiler() = default;
  virtual std::string plugin() const = 0;
  /// With version and settings.
  virtual std::string name() const = 0;
  virtual CompiledLayer compile(const DenseCodes& layer, uint32_t rows) = 0;
  /// Throws InputError when the plug-in would not run the layer.
  virtual void check(const CompiledLayer& layer) const = 0;
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

/// Throws UsageError when there is no such target.
std::unique_ptr<NpuCompiler> make_npu_compiler(const std::string& target,
                                               const OffloadOptions& options);

/// Adds offloads to the model and their bytes to its data. Returns what the user should know.
/// `progress` is told how many layers of all are done.
std::string add_offloads(const OffloadOptions& options, schema::ModelT& model, DataRegion& data,
                         const std::function<void(uint64_t done, uint64_t all)>& progress);

}  // namespace oxbow::convert
