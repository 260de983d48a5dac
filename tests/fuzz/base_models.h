#pragma once

// Good model files to start from: every golden pack, with float and with int8 weights and with small segments, made by
// the converter the first time they are wanted.

#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/graph_mutation.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"

namespace oxbow::testing {

class BaseModels {
 public:
  BaseModels() : cases_(golden_cases()), loaded_(cases_.size() * 2) {}

  size_t size() const { return loaded_.size(); }
  BaseGraph& get(size_t index) {
    std::unique_ptr<BaseGraph>& base = loaded_[index];
    if (base == nullptr) base = load(cases_[index / 2], index % 2 == 0 ? "int8" : "f32");
    return *base;
  }

 private:
  static std::unique_ptr<BaseGraph> load(const std::string& name, const std::string& weights) {
    std::vector<std::string> options = {"--weights", weights, "--no-quality", "--tokenizer",
                                        "none"};
    std::string path;
    try {
      std::vector<std::string> small = options;
      small.insert(small.end(), {"--max-segment", "8"});
      path = golden_model(name, small);
    } catch (const std::exception&) {  // Not every model lets its segments be chosen.
      path = golden_model(name, options);
    }
    const std::vector<std::byte> bytes = read_bytes(path);
    FileBytes file(bytes.size());
    std::memcpy(file.data(), bytes.data(), bytes.size());
    return std::make_unique<BaseGraph>(name + " " + weights,
                                       std::span<const uint8_t>(file.data(), file.size()));
  }

  std::vector<std::string> cases_;
  std::vector<std::unique_ptr<BaseGraph>> loaded_;
};

}  // namespace oxbow::testing
