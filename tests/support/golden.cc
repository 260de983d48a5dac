#include "tests/support/golden.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "host/testing/paths.h"
#include "runtime/base/hash.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

struct NotProduced {
  /// How the name ends.
  const char* ending;
  const char* reason;
};

constexpr NotProduced kNotProduced[] = {
    {".ar_loss", "a loss of training, which needs the rows that were compressed"},
    {"cache_sizes", "how the original sized its caches; the converter does it by itself"},
    {"trim_lens", "how much of its caches the original skips; the result is the same"},
    {".rotations", "a weight, which the importer reads"},
    {".gate_proj.input", "inside of a matrix that quantises its rows"},
    {".gate_proj.input_q", "inside of a matrix that quantises its rows"},
    {".gate_proj.input_scale", "inside of a matrix that quantises its rows"},
    {".gate_proj.output", "inside of a layer"},
    {".gate_proj.weight_unpacked", "a weight, which the importer reads"},
    {".rand_attn", "the blocks the original drew; the checkpoint's configuration tells them"},
};

/// A file that one process at a time may hold. It tells what its holder left last.
class LockedNote {
 public:
  explicit LockedNote(const std::filesystem::path& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0) {
      throw std::runtime_error("cannot lock " + path.string());
    }
  }
  ~LockedNote() { close(file_); }
  LockedNote(const LockedNote&) = delete;
  LockedNote& operator=(const LockedNote&) = delete;

  uint64_t read() const {
    uint64_t value = 0;
    return pread(file_, &value, sizeof(value), 0) == sizeof(value) ? value : 0;
  }
  void write(uint64_t value) {
    if (pwrite(file_, &value, sizeof(value), 0) != sizeof(value)) {
      throw std::runtime_error("cannot write a note");
    }
  }

 private:
  int file_;
};

uint64_t hash_text(const std::string& text, uint64_t hash) {
  return hash_bytes(text.data(), text.size() + 1, hash);  // With its end.
}

/// Of what a converted file depends on besides its options: the converter and the pack.
uint64_t conversion_hash(const std::filesystem::path& pack) {
  static const uint64_t converter = [] {
    const std::string other = other_converter();
    const std::vector<std::byte> bytes =
        read_bytes(other.empty() ? testing::program_dir() + "/oxbow-convert" : other);
    return hash_bytes(bytes.data(), bytes.size());
  }();
  uint64_t hash = converter;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(pack)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const std::vector<std::byte> bytes = read_bytes(file);
    hash = hash_text(file.filename().string(), hash);
    hash = hash_bytes(bytes.data(), bytes.size(), hash);
  }
  return hash;
}

}  // namespace

std::filesystem::path golden() {
  return std::filesystem::path(testing::source_dir()) / "tests/golden";
}

std::vector<std::string> golden_cases() {
  std::vector<std::string> cases;
  for (const auto& system : std::filesystem::directory_iterator(golden())) {
    if (!system.is_directory()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(system.path())) {
      if (!std::filesystem::exists(entry.path() / "config.json")) continue;
      cases.push_back(system.path().filename().string() + "/" + entry.path().filename().string());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::string golden_model(const std::string& name, const std::vector<std::string>& options) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::program_dir()).parent_path() / "golden";
  std::filesystem::create_directories(folder);
  uint64_t option_hash = kHashSeed;
  for (const std::string& option : options) option_hash = hash_text(option, option_hash);
  const std::string stem = golden_test_name(name) + "-" + std::to_string(option_hash);
  const std::filesystem::path file = folder / (stem + ".oxb");
  const uint64_t hash = conversion_hash(golden() / name);
  LockedNote made_from(folder / (stem + ".hash"));
  if (made_from.read() == hash && std::filesystem::exists(file)) return file.string();
  // The converter gives a file its name when it is whole.
  std::vector<std::string> words = {(golden() / name).string(), "-o", file.string()};
  words.insert(words.end(), options.begin(), options.end());
  const CommandResult result = run_program("oxbow-convert", words);
  if (result.exit_code != 0) throw std::runtime_error(name + ": " + result.err);
  made_from.write(hash);
  return file.string();
}

std::string golden_test_name(const std::string& name) {
  std::string text = name;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return text;
}

const char* why_not_produced(const std::string& tensor) {
  for (const NotProduced& known : kNotProduced) {
    if (tensor.ends_with(known.ending)) return known.reason;
  }
  return nullptr;
}

}  // namespace oxbow::testing
