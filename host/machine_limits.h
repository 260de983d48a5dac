#pragma once

// What this machine can multiply and read at most, found by trying.

#include <cstdint>
#include <optional>

namespace oxbow {

struct MachineLimits {
  /// The widest instructions for products that this machine and our kernels both have; "none": the numbers of products
  /// are not known.
  const char* instructions = "none";
  /// Multiply-accumulates in a second with all numbers in registers and nothing else to do: exact products of int8 that are
  /// summed in 32 bits; products of floats that are rounded before they are added, as our kernels do.
  std::optional<double> int8_macs, float_macs;
  /// Bytes in a second, read again and again from a block of so many: from a cache when it fits into one.
  double read_bytes = 0.0;
  uint64_t block_bytes = 0;
  /// All of these threads work at once, on the cores that the calling thread may use.
  uint32_t threads = 1;
  double seconds = 0.0;
};

/// Takes about `seconds`. Of many slices of some milliseconds the best counts, so that other programs disturb less. The
/// block is of at least 64 KiB and at most 128 MiB.
MachineLimits machine_limits(uint32_t threads, uint64_t block_bytes, double seconds);

}  // namespace oxbow
