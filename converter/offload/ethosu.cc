// Layers for Ethos-U: a TOSA graph goes to Arm's compiler, Vela, which is run as a program, and its stream and encoded weights
// come back. Single layers give exact sums, chains int8 codes by the formula in integers.

#include "converter/offload/ethosu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "converter/formats/zip.h"
#include "converter/offload/program.h"
#include "converter/offload/tosa.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/device/npu/ethosu/stream.h"

namespace oxbow::convert {
namespace {

namespace fs = std::filesystem;

/// Chips, and the system configuration and memory mode that Vela chooses for them.
struct Family {
  const char* name;
  std::initializer_list<int> macs;
  const char* system;
  const char* memory;
};
const Family kFamilies[] = {
    {"ethos-u55-", {32, 64, 128, 256}, "Ethos_U55_High_End_Embedded", "Shared_Sram"},
    {"ethos-u65-", {256, 512}, "Ethos_U65_Client_Server", "Dedicated_Sram_384KB"},
    {"ethos-u85-", {128, 256, 512, 1024, 2048}, "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"}};

/// The numbers or bytes of an array that NumPy stored, behind its header.
std::span<const std::byte> array_of(const ZipMembers& members, const std::string& name) {
  const auto found = members.find(name + ".npy");
  if (found == members.end()) throw InputError("vela's result has no " + name);
  const std::span<const std::byte> file = found->second;
  const size_t header =
      file.size() < 10 ? 0 : 10 + static_cast<size_t>(file[8]) + 256 * static_cast<size_t>(file[9]);
  if (header == 0 || header > file.size() || std::memcmp(file.data(), "\x93NUMPY\x01", 7) != 0) {
    throw InputError("vela's result: " + name + " is no array");
  }
  return file.subspan(header);
}

uint32_t number_of(const ZipMembers& members, const std::string& name) {
  const std::span<const std::byte> bytes = array_of(members, name);
  uint64_t value = 0;
  if (bytes.size() != sizeof(value)) throw InputError("vela's result: " + name + " is no number");
  std::memcpy(&value, bytes.data(), sizeof(value));
  if (value > UINT32_MAX) throw InputError("vela's result: " + name + " is too large");
  return static_cast<uint32_t>(value);
}

/// A column of the table that vela writes beside its result, with lines that end as on Windows; 0 when there is none.
double column_of(const std::string& table, const std::string& name) {
  const size_t end = table.find_first_of("\r\n");
  if (end == std::string::npos) return 0.0;
  size_t head = 0, row = table.find('\n', end) + 1;
  while (head < end) {
    const size_t next_head = std::min(table.find(',', head), end);
    const size_t next_row = std::min(table.find(',', row), table.size());
    if (table.compare(head, next_head - head, name) == 0) {
      return std::strtod(table.substr(row, next_row - row).c_str(), nullptr);
    }
    head = next_head + 1;
    row = std::min(next_row + 1, table.size());
  }
  return 0.0;
}

CompiledLayer read_result(const fs::path& folder, uint64_t input_bytes, uint64_t output_bytes) {
  const std::string path = (folder / "layer_vela.npz").string();
  const MappedFile file(path);
  const ZipMembers members = read_zip(path, file.bytes());
  const auto expect = [&](const char* name, uint32_t value) {
    if (number_of(members, name) != value) {
      throw InputError(std::string("vela's result: ") + name + " is not as expected");
    }
  };
  expect("weight_region", kEthosuWeights);
  expect("scratch_region", kEthosuScratch);
  expect("input_region", kEthosuScratch);
  expect("output_region", kEthosuScratch);
  EthosuHeader header;
  header.magic = kEthosuMagic;
  header.version = kEthosuVersion;
  header.scratch_bytes = number_of(members, "scratch_size");
  header.fast_bytes = number_of(members, "scratch_fast_size");
  header.input_offset = number_of(members, "input_offset");
  header.input_bytes = static_cast<uint32_t>(input_bytes);
  header.output_offset = number_of(members, "output_offset");
  header.output_bytes = static_cast<uint32_t>(output_bytes);
  const std::span<const std::byte> stream = array_of(members, "cmd_data");
  const std::span<const std::byte> weights = array_of(members, "weight_data");
  CompiledLayer compiled;
  compiled.commands.resize(sizeof(header));
  std::memcpy(compiled.commands.data(), &header, sizeof(header));
  compiled.commands.insert(compiled.commands.end(), stream.begin(), stream.end());
  compiled.weights.assign(weights.begin(), weights.end());
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const std::string table = read_file(entry.path().string());
    compiled.cycles = static_cast<uint64_t>(column_of(table, "cycles_total"));
    compiled.fast_bytes = static_cast<uint64_t>(column_of(table, "sram_memory_used") * 1024.0);
  }
  return compiled;
}

class EthosuCompiler : public NpuCompiler {
 public:
  EthosuCompiler(std::string target, const Family& family, const OffloadOptions& options)
      : target_(std::move(target)),
        vela_(options.vela),
        system_(options.vela_system.empty() ? family.system : options.vela_system),
        memory_(options.vela_memory.empty() ? family.memory : options.vela_memory),
        chains_(options.chains) {}

  std::string plugin() const override { return "ethosu"; }
  std::string name() const override {
    return "vela for " + target_ + ", system " + system_ + ", memory " + memory_;
  }

  OffloadPieces pieces() const override {
    return chains_ ? OffloadPieces::kBoth : OffloadPieces::kLayers;
  }

  /// TOSA leaves open what becomes of a scaled sum that does not fit into 32 bits.
  bool takes(const Chain& chain) const override {
    return std::all_of(chain.begin(), chain.end(), [](const ChainLayer& layer) {
      for (size_t n = 0; n < layer.factors.size(); ++n) {
        const double sum =
            std::abs(static_cast<double>(layer.biases[n])) + 16384.0 * layer.weight.depth;
        if (!(sum * double{layer.factors[n]} < double{INT32_MAX})) return false;
      }
      return true;
    });
  }

  CompiledLayer compile(const DenseCodes& layer, uint32_t rows) override {
    return run(tosa_graph(layer, rows), uint64_t{rows} * layer.depth,
               uint64_t{rows} * layer.channels * 4);
  }

  CompiledLayer compile_chain(const Chain& chain, uint32_t rows) override {
    return run(tosa_graph(chain, rows), uint64_t{rows} * chain.front().weight.depth,
               uint64_t{rows} * chain.back().weight.channels);
  }

  void check(const CompiledLayer& layer, bool is_chain) const override {
    EthosuCommands commands;
    const char* wrong = read_ethosu_commands(layer.commands, &commands);
    char made_for[24] = {};
    if (wrong == nullptr) {
      wrong = check_ethosu_stream(commands, layer.weights.size(),
                                  is_chain ? EthosuResult::kCodes : EthosuResult::kSums);
    }
    if (wrong == nullptr && (!ethosu_target(commands.config, made_for) || target_ != made_for)) {
      wrong = "it is for another chip";
    }
    if (wrong != nullptr) {
      throw InputError("--npu " + target_ + ": the plug-in refuses what vela made: " + wrong);
    }
  }

 private:
  CompiledLayer run(const std::vector<std::byte>& bytes, uint64_t input_bytes,
                    uint64_t output_bytes) const {
    if (std::max(input_bytes, output_bytes) > INT32_MAX) {
      throw InputError("--npu: a layer is too large for " + target_);
    }
    const WorkFolder folder;
    const fs::path graph = folder.path() / "layer.tosa", result = folder.path() / "out";
    std::ofstream(graph, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    std::vector<std::string> words = {vela_,   "--accelerator-config", target_, "--system-config",
                                      system_, "--memory-mode",        memory_, "--output-format",
                                      "raw"};
    // Its second decoder of weights changes no estimate by more than 0.02 %, and needs another order of them.
    if (target_.starts_with("ethos-u85")) words.push_back("--disable-fwd");
    words.insert(words.end(), {"--output-dir", result.string(), graph.string()});
    run_program(words, folder.path() / "log",
                "--vela names Arm's compiler (pip install ethos-u-vela)");
    return read_result(result, input_bytes, output_bytes);
  }

  std::string target_, vela_, system_, memory_;
  bool chains_;
};

}  // namespace

std::unique_ptr<NpuCompiler> make_ethosu_compiler(const std::string& target,
                                                  const OffloadOptions& options) {
  for (const Family& family : kFamilies) {
    for (const int macs : family.macs) {
      if (target == family.name + std::to_string(macs)) {
        return std::make_unique<EthosuCompiler>(target, family, options);
      }
    }
  }
  return nullptr;
}

std::string ethosu_targets() {
  std::string text;
  for (const Family& family : kFamilies) {
    for (const int macs : family.macs) {
      text += (text.empty() ? "" : ", ") + (family.name + std::to_string(macs));
    }
  }
  return text;
}

}  // namespace oxbow::convert
