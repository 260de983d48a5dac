#include "converter/offload/offload.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "converter/offload/cache.h"
#include "converter/offload/chain.h"
#include "host/errors.h"
#include "runtime/base/hash.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

// Fewer rows only read weights, which no accelerator does faster.
constexpr uint32_t kLeastRows = 8;
// 16 rows cost hardly more than one; 64 fill the multipliers.
constexpr uint32_t kDefaultRows[] = {16, 64};

/// Those with int8 rows and int8 weights.
std::vector<StepRange> find_layers(const schema::ModelT& model) {
  std::vector<StepRange> layers;
  for (uint32_t e = 0; e < model.entry_points.size(); ++e) {
    const auto& steps = model.entry_points[e]->steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (steps[s]->options.AsLinearOptions() == nullptr) continue;
      const schema::TensorT& x = *model.tensors[steps[s]->inputs[0]];
      const schema::TensorT& weight = *model.tensors[steps[s]->inputs[1]];
      if (x.type != schema::DataType::I8 || weight.type != schema::DataType::I8) continue;
      layers.push_back({e, s, 1, x.rows, false});
    }
  }
  return layers;
}

/// Chains of two steps and more that the compiler takes, and all other layers alone.
std::vector<StepRange> find_both(const NpuCompiler& compiler, const schema::ModelT& model,
                                 const DataRegion& data) {
  std::vector<StepRange> ranges = find_chains(model);
  std::erase_if(ranges, [&](const StepRange& range) {
    return range.steps < 2 || !compiler.takes(read_chain(model, range, data));
  });
  // Without any the files would be those of another option.
  if (ranges.empty()) return {};
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (const StepRange& range : ranges) {
    for (uint32_t s = 0; s < range.steps; ++s) taken.insert({range.entry, range.step + s});
  }
  for (const StepRange& layer : find_layers(model)) {
    if (!taken.contains({layer.entry, layer.step})) ranges.push_back(layer);
  }
  std::sort(ranges.begin(), ranges.end(), [](const StepRange& a, const StepRange& b) {
    return std::pair(a.entry, a.step) < std::pair(b.entry, b.step);
  });
  return ranges;
}

std::vector<StepRange> find_ranges(const NpuCompiler& compiler, const schema::ModelT& model,
                                   const DataRegion& data) {
  switch (compiler.pieces()) {
    case OffloadPieces::kChains:
      return find_chains(model);
    case OffloadPieces::kBoth:
      return find_both(compiler, model, data);
    case OffloadPieces::kLayers:
      break;
  }
  return find_layers(model);
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

/// What several steps use is compiled once for each number of rows.
class Compiled {
 public:
  Compiled(NpuCompiler& compiler, LayerCache& cache, Store& store)
      : compiler_(compiler), cache_(cache), store_(store) {}

  std::unique_ptr<schema::OffloadT> make(const schema::ModelT& model, const DataRegion& data,
                                         const StepRange& range, uint32_t rows) {
    if (range.is_chain) {
      const Chain chain = read_chain(model, range, data);
      return make(LayerCache::key(chain, rows, compiler_.name()), range, rows,
                  [&] { return compiler_.compile_chain(chain, rows); });
    }
    const schema::StepT& step = *model.entry_points[range.entry]->steps[range.step];
    const DenseCodes codes = read_codes(*model.tensors[step.inputs[1]], data);
    return make(LayerCache::key(codes, rows, compiler_.name()), range, rows,
                [&] { return compiler_.compile(codes, rows); });
  }

 private:
  std::unique_ptr<schema::OffloadT> make(uint64_t key, const StepRange& range, uint32_t rows,
                                         const std::function<CompiledLayer()>& compile) {
    auto [at, is_new] = made_.try_emplace(key);
    if (is_new) {
      const CompiledLayer* known = cache_.find(key);
      const CompiledLayer layer = known != nullptr ? *known : compile();
      compiler_.check(layer, range.is_chain);
      if (known == nullptr) cache_.add(key, layer);
      schema::OffloadT& offload = at->second;
      offload.rows = rows;
      offload.result = range.is_chain ? compiler_.chain_result() : schema::OffloadResult::ExactSums;
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

  NpuCompiler& compiler_;
  LayerCache& cache_;
  Store& store_;
  std::map<uint64_t, schema::OffloadT> made_;
};

}  // namespace

DenseCodes read_codes(const schema::TensorT& weight, const DataRegion& data) {
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

CompiledLayer NpuCompiler::compile(const DenseCodes&, uint32_t) {
  throw InputError(name() + " makes no single layers");
}
CompiledLayer NpuCompiler::compile_chain(const Chain&, uint32_t) {
  throw InputError(name() + " makes no chains");
}

bool makes_chains(const OffloadOptions& options) {
  return std::any_of(options.targets.begin(), options.targets.end(), [&](const auto& target) {
    return make_npu_compiler(target, options)->pieces() != OffloadPieces::kLayers;
  });
}

std::string add_offloads(const OffloadOptions& options, schema::ModelT& model, DataRegion& data,
                         const std::function<void(uint64_t done, uint64_t all)>& progress) {
  if (options.targets.empty()) return {};
  Store store(data);
  LayerCache cache(options.cache);
  const uint64_t before = data.bytes();
  uint64_t count = 0, steps = 0;
  for (size_t t = 0; t < options.targets.size(); ++t) {
    const std::string& target = options.targets[t];
    const std::unique_ptr<NpuCompiler> compiler = make_npu_compiler(target, options);
    const bool chains = compiler->pieces() != OffloadPieces::kLayers;
    std::vector<StepRange> ranges = find_ranges(*compiler, model, data);
    if (options.rows.empty()) {
      std::erase_if(ranges, [](const StepRange& range) { return range.rows < kLeastRows; });
    }
    if (ranges.empty()) {
      throw InputError(
          !chains ? "--npu: the model has no dense layers with int8 rows and int8 weights"
          : compiler->pieces() == OffloadPieces::kBoth
              ? "--npu-chains: the model has no two dense layers with static int8 rows that "
                "follow one another, or --activations static is missing"
              : "--npu " + target +
                    ": the model has no dense layers with static int8 rows: use "
                    "--activations static");
    }
    Compiled compiled(*compiler, cache, store);
    for (size_t i = 0; i < ranges.size(); ++i) {
      for (const uint32_t rows : buckets_of(options, ranges[i].rows)) {
        auto offload = compiled.make(model, data, ranges[i], rows);
        offload->plugin = compiler->plugin();
        offload->target = target;
        offload->compiler = compiler->name();
        offload->entry = ranges[i].entry;
        offload->step = ranges[i].step;
        offload->steps = ranges[i].steps;
        model.offloads.push_back(std::move(offload));
      }
      steps += ranges[i].steps;
      if (progress) progress(t * ranges.size() + i + 1, ranges.size() * options.targets.size());
    }
    count += ranges.size();
  }
  return std::to_string(steps) + " dense layers are in the file for NPUs too" +
         (count == steps ? "" : ", as " + std::to_string(count) + " pieces") + ": " +
         std::to_string(data.bytes() - before) + " bytes";
}

}  // namespace oxbow::convert
