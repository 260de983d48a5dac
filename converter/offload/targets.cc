// Which targets there are, and the simplest: int8 rows of weights as they are, for examples/npu_plugin.c.

#include <cstring>

#include "converter/offload/ethosu.h"
#include "converter/offload/offload.h"
#include "host/errors.h"

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
  void check(const CompiledLayer&) const override {}
};

}  // namespace

std::unique_ptr<NpuCompiler> make_npu_compiler(const std::string& target,
                                               const OffloadOptions& options) {
  if (target == "example-i8") return std::make_unique<ExampleCompiler>();
  auto ethosu = make_ethosu_compiler(target, options);
  if (ethosu != nullptr) return ethosu;
  throw UsageError("--npu " + printable(target) + " does not exist; there are " + ethosu_targets() +
                   " and example-i8");
}

}  // namespace oxbow::convert
