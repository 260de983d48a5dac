#pragma once

// Compiled layers in one file, for the next conversion: compilers take seconds for each.
//
//   "OXNC0001" | record, record, ...
//   record: key | cycles | fast bytes | commands' bytes | weights' bytes, or 0 and ... | weights' hash | bytes
//
// Numbers are little-endian uint64. A record without weights has those of an earlier record with this hash.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "converter/offload/offload.h"

namespace oxbow::convert {

class LayerCache {
 public:
  /// Reads the file if it is there; an empty name caches nothing. Throws InputError when it is damaged.
  explicit LayerCache(std::string path);

  /// Of what a compiler is given: the layer's codes and shape, rows, and its own name.
  static uint64_t key(const DenseCodes& layer, uint32_t rows, const std::string& compiler);
  static uint64_t key(const Chain& chain, uint32_t rows, const std::string& compiler);

  /// Null: it must be compiled.
  const CompiledLayer* find(uint64_t key) const;
  void add(uint64_t key, const CompiledLayer& layer);

 private:
  std::string path_;
  std::map<uint64_t, CompiledLayer> layers_;
};

}  // namespace oxbow::convert
