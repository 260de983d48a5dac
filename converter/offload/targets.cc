// Which targets there are, and the two simplest, for examples/npu_plugin.c: int8 rows of weights as they are, and chains as
// the formula of docs/npu.md has them.

#include <cstring>
#include <span>

#include "converter/offload/ethosu.h"
#include "converter/offload/litert.h"
#include "converter/offload/offload.h"
#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

/// Commands: "OXN1", depth, channels and rows as little-endian uint32. Weights: [channels][depth].
class ExampleCompiler : public NpuCompiler {
 public:
  std::string plugin() const override { return "example"; }
  std::string name() const override { return "oxbow-convert, rows as they are"; }

  CompiledLayer compile(const DenseCodes& layer, uint32_t rows) override {
    CompiledLayer compiled;
    const uint32_t header[] = {0x314e584f, layer.depth, layer.channels, rows};
    compiled.commands.resize(sizeof(header));
    std::memcpy(compiled.commands.data(), header, sizeof(header));
    compiled.weights.resize(layer.codes.size());
    std::memcpy(compiled.weights.data(), layer.codes.data(), layer.codes.size());
    return compiled;
  }
  void check(const CompiledLayer&, bool) const override {}
};

/// Commands: "OXN2", rows, number of layers, and for each depth, channels, smallest code and whether it has a table. Weights, layer
/// after layer: factors as floats, biases, weights [channels][depth], the table; each padded to 4 bytes.
class ExampleChainCompiler : public NpuCompiler {
 public:
  std::string plugin() const override { return "example"; }
  std::string name() const override { return "oxbow-convert, chains as they are"; }
  OffloadPieces pieces() const override { return OffloadPieces::kChains; }

  CompiledLayer compile_chain(const Chain& chain, uint32_t rows) override {
    CompiledLayer compiled;
    const auto add = [](std::vector<std::byte>& to, const auto& values) {
      const auto bytes = std::as_bytes(std::span(values));
      to.insert(to.end(), bytes.begin(), bytes.end());
      to.resize(round_up(to.size(), 4));
    };
    add(compiled.commands,
        std::vector<uint32_t>{0x324e584f, rows, static_cast<uint32_t>(chain.size())});
    for (const ChainLayer& layer : chain) {
      add(compiled.commands,
          std::vector<uint32_t>{layer.weight.depth, layer.weight.channels,
                                static_cast<uint32_t>(layer.least), layer.table.empty() ? 0u : 1u});
      add(compiled.weights, layer.factors);
      add(compiled.weights, layer.biases);
      add(compiled.weights, layer.weight.codes);
      add(compiled.weights, layer.table);
    }
    return compiled;
  }
  void check(const CompiledLayer&, bool) const override {}
};

}  // namespace

std::unique_ptr<NpuCompiler> make_npu_compiler(const std::string& target,
                                               const OffloadOptions& options) {
  if (target == "example-i8") return std::make_unique<ExampleCompiler>();
  if (target == "example-i8-chain") return std::make_unique<ExampleChainCompiler>();
  if (target == "litert") return make_litert_compiler();
  if (target == "litert-compiled") return make_litert_chip_compiler(options.litert_tool);
  auto ethosu = make_ethosu_compiler(target, options);
  if (ethosu != nullptr) return ethosu;
  throw UsageError("--npu " + printable(target) + " does not exist; there are " + ethosu_targets() +
                   ", litert, litert-compiled, example-i8 and example-i8-chain");
}

}  // namespace oxbow::convert
