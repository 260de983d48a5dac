#include "converter/offload/cache.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/base/hash.h"

namespace oxbow::convert {
namespace {

constexpr char kMagic[8] = {'O', 'X', 'N', 'C', '0', '0', '0', '1'};

struct Record {
  uint64_t key, cycles, fast_bytes, command_bytes, weight_bytes, weight_hash;
};

uint64_t hash_of(const std::vector<std::byte>& bytes) {
  return hash_bytes(bytes.data(), bytes.size());
}

}  // namespace

LayerCache::LayerCache(std::string path) : path_(std::move(path)) {
  if (path_.empty() || !file_exists(path_)) return;
  const MappedFile file(path_);
  const auto damaged = [&] { return InputError(path_ + " is no cache of compiled layers"); };
  std::span<const std::byte> rest = file.bytes();
  if (rest.size() < sizeof(kMagic) || std::memcmp(rest.data(), kMagic, sizeof(kMagic)) != 0) {
    throw damaged();
  }
  rest = rest.subspan(sizeof(kMagic));
  const auto take = [&](uint64_t bytes) {
    if (bytes > rest.size()) throw damaged();
    const std::span<const std::byte> taken = rest.first(bytes);
    rest = rest.subspan(bytes);
    return std::vector<std::byte>(taken.begin(), taken.end());
  };
  std::map<uint64_t, std::vector<std::byte>> weights;
  while (!rest.empty()) {
    Record record;
    const std::vector<std::byte> head = take(sizeof(record));
    std::memcpy(&record, head.data(), sizeof(record));
    CompiledLayer layer;
    layer.cycles = record.cycles;
    layer.fast_bytes = record.fast_bytes;
    layer.commands = take(record.command_bytes);
    if (record.weight_bytes != 0) {
      weights[record.weight_hash] = take(record.weight_bytes);
    }
    if (!weights.contains(record.weight_hash)) throw damaged();
    layer.weights = weights[record.weight_hash];
    if (hash_of(layer.weights) != record.weight_hash) throw damaged();
    layers_[record.key] = std::move(layer);
  }
}

uint64_t LayerCache::key(const DenseCodes& layer, uint32_t rows, const std::string& compiler) {
  const uint32_t shape[] = {layer.depth, layer.channels, rows};
  uint64_t hash = hash_bytes(shape, sizeof(shape));
  hash = hash_bytes(compiler.data(), compiler.size(), hash);
  return hash_bytes(layer.codes.data(), layer.codes.size(), hash);
}

uint64_t LayerCache::key(const Chain& chain, uint32_t rows, const std::string& compiler) {
  uint64_t hash = hash_bytes(compiler.data(), compiler.size());
  const auto add = [&](const auto& values) {
    hash = hash_bytes(values.data(), values.size() * sizeof(values[0]), hash);
  };
  for (const ChainLayer& layer : chain) {
    const uint64_t weight = key(layer.weight, rows, {});
    const float scales[] = {layer.x_scale, layer.sum_scale, layer.y_scale};
    const int32_t codes[] = {layer.least, static_cast<int32_t>(layer.activation)};
    hash = hash_bytes(&weight, sizeof(weight), hash);
    hash = hash_bytes(scales, sizeof(scales), hash);
    hash = hash_bytes(codes, sizeof(codes), hash);
    add(layer.weight_scales);
    add(layer.biases);
    add(layer.factors);
    add(layer.table);
  }
  return hash;
}

const CompiledLayer* LayerCache::find(uint64_t key) const {
  const auto found = layers_.find(key);
  return found == layers_.end() ? nullptr : &found->second;
}

void LayerCache::add(uint64_t key, const CompiledLayer& layer) {
  if (path_.empty()) return;
  const uint64_t hash = hash_of(layer.weights);
  bool is_known = false;
  for (const auto& [other, known] : layers_) is_known |= hash_of(known.weights) == hash;
  const bool is_new = !file_exists(path_);
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  if (is_new) out.write(kMagic, sizeof(kMagic));
  const Record record = {key,
                         layer.cycles,
                         layer.fast_bytes,
                         layer.commands.size(),
                         is_known ? 0 : layer.weights.size(),
                         hash};
  const auto write = [&](const void* data, size_t bytes) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  };
  write(&record, sizeof(record));
  write(layer.commands.data(), layer.commands.size());
  if (!is_known) write(layer.weights.data(), layer.weights.size());
  if (!out.flush()) throw InputError(path_ + " cannot be written");
  layers_[key] = layer;
}

}  // namespace oxbow::convert
