#include "converter/offload/offload.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "converter/offload/cache.h"
#include "host/errors.h"
#include "runtime/base/hash.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

// Fewer rows only read weights, which no accelerator does faster.
constexpr uint32_t kLeastRows = 8;
// 16 rows cost hardly more than one; 64 fill the multipliers.
constexpr uint32_t kDefaultRows[] = {16, 64};

struct Layer {
  uint32_t entry = 0, step = 0;
  uint32_t weight = 0;
  uint32_t rows = 0;
};

/// Those with int8 rows and int8 weights.
std::vector<Layer> find_layers(const schema::ModelT& model, bool small_too) {
  std::vector<Layer> layers;
  for (uint32_t e = 0; e < model.entry_points.size(); ++e) {
    const auto& steps = model.entry_points[e]->steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (steps[s]->options.AsLinearOptions() == nullptr) continue;
      const schema::TensorT& x = *model.tensors[steps[s]->inputs[0]];
      const schema::TensorT& weight = *model.tensors[steps[s]->inputs[1]];
      if (x.type != schema::DataType::I8 || weight.type != schema::DataType::I8) continue;
      if (x.rows < kLeastRows && !small_too) continue;
      layers.push_back({e, s, steps[s]->inputs[1], x.rows});
    }
  }
  return layers;
}

/// Rows of the weight one after the other, from the blocks of the file.
DenseCodes read_codes(const schema::TensorT& weight, DataRegion& data) {
  const size_t columns = round_up(weight.width, kBlockColumns);
  std::vector<std::byte> blocks(round_up(weight.rows, kBlockRows) * columns);
  data.read(weight.offset, blocks);
  DenseCodes layer = {weight.width, weight.rows, {}};
  layer.codes.resize(size_t{weight.rows} * weight.width);
  for (size_t n = 0; n < weight.rows; ++n) {
    const std::byte* row = blocks.data() + n / kBlockRows * kBlockRows * columns;
    for (size_t k = 0; k < weight.width; ++k) {
      layer.codes[n * weight.width + k] =
          static_cast<int8_t>(row[k / kBlockColumns * kBlockRows * kBlockColumns +
                                  n % kBlockRows * kBlockColumns + k % kBlockColumns]);
    }
  }
  return layer;
}

/// Never more than a run can have.
std::vector<uint32_t> buckets_of(const OffloadOptions& options, uint32_t most) {
  std::vector<uint32_t> rows = options.rows;
  if (rows.empty()) rows.assign(std::begin(kDefaultRows), std::end(kDefaultRows));
  for (uint32_t& one : rows) one = std::min(one, most);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// Bytes that are there already are not stored again.
class Store {
 public:
  explicit Store(DataRegion& data) : data_(data) {}

  uint64_t add(const std::vector<std::byte>& bytes) {
    const auto [at, is_new] = places_.try_emplace(bytes, 0);
    if (is_new) at->second = data_.append(bytes);
    return at->second;
  }

 private:
  DataRegion& data_;
  std::map<std::vector<std::byte>, uint64_t> places_;
};

/// A layer that several steps use is compiled once for each number of rows.
class Compiled {
 public:
  Compiled(NpuCompiler& compiler, LayerCache& cache, Store& store)
      : compiler_(compiler), cache_(cache), store_(store) {}

  std::unique_ptr<schema::OffloadT> make(const DenseCodes& codes, uint32_t weight, uint32_t rows) {
    auto [at, is_new] = made_.try_emplace({weight, rows});
    if (is_new) {
      const uint64_t key = LayerCache::key(codes, rows, compiler_.name());
      const CompiledLayer* known = cache_.find(key);
      const CompiledLayer layer = known != nullptr ? *known : compiler_.compile(codes, rows);
      compiler_.check(layer);
      if (known == nullptr) cache_.add(key, layer);
      schema::OffloadT& offload = at->second;
      offload.rows = rows;
      offload.result = schema::OffloadResult::ExactSums;
      offload.commands = store_.add(layer.commands);
      offload.command_bytes = layer.commands.size();
      offload.weights = store_.add(layer.weights);
      offload.weight_bytes = layer.weights.size();
      offload.hash = hash_bytes(layer.weights.data(), layer.weights.size(),
                                hash_bytes(layer.commands.data(), layer.commands.size()));
      offload.cycles = layer.cycles;
      offload.fast_bytes = layer.fast_bytes;
    }
    return std::make_unique<schema::OffloadT>(at->second);
  }

 private:
  NpuCompiler& compiler_;
  LayerCache& cache_;
  Store& store_;
  std::map<std::pair<uint32_t, uint32_t>, schema::OffloadT> made_;
};

}  // namespace

std::string add_offloads(const OffloadOptions& options, schema::ModelT& model, DataRegion& data,
                         const std::function<void(uint64_t done, uint64_t all)>& progress) {
  if (options.targets.empty()) return {};
  const std::vector<Layer> layers = find_layers(model, !options.rows.empty());
  if (layers.empty()) {
    throw InputError("--npu: the model has no dense layers with int8 rows and int8 weights");
  }
  Store store(data);
  LayerCache cache(options.cache);
  const uint64_t before = data.bytes();
  uint64_t done = 0;
  for (const std::string& target : options.targets) {
    const std::unique_ptr<NpuCompiler> compiler = make_npu_compiler(target, options);
    Compiled compiled(*compiler, cache, store);
    for (const Layer& layer : layers) {
      const DenseCodes codes = read_codes(*model.tensors[layer.weight], data);
      for (const uint32_t rows : buckets_of(options, layer.rows)) {
        auto offload = compiled.make(codes, layer.weight, rows);
        offload->plugin = compiler->plugin();
        offload->target = target;
        offload->compiler = compiler->name();
        offload->entry = layer.entry;
        offload->step = layer.step;
        model.offloads.push_back(std::move(offload));
      }
      if (progress) progress(++done, layers.size() * options.targets.size());
    }
  }
  return std::to_string(layers.size()) + " dense layers are in the file for " +
         std::to_string(options.targets.size()) + " kind" +
         (options.targets.size() == 1 ? "" : "s") +
         " of NPU too: " + std::to_string(data.bytes() - before) + " bytes";
}

}  // namespace oxbow::convert
