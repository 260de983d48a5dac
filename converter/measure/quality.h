#pragma once

// How much a converted model differs from its float version, measured by running both.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/measure/model_runner.h"
#include "converter/passes/weight_formats.h"
#include "converter/weight.h"
#include "host/divergence.h"

namespace oxbow::convert {

/// Of a text, that are compared.
inline constexpr size_t kMostJudgedTokens = 1024;
/// Random tokens tell little, and more of them not much more.
inline constexpr size_t kMostRandomTokens = 256;

/// A number as printf has it.
std::string formatted(double value, const char* format);

struct Quality {
  Divergence divergence;
  size_t tokens = 0;
  /// What the tokens are.
  std::string text;
  /// Rows are logits; otherwise hidden states, of which only cosine and difference mean anything.
  bool chooses = true;

  /// The less the better: the mean KL, or what the cosine lacks.
  double loss() const { return chooses ? divergence.kl().value : 1 - divergence.cosine(); }
  /// Names and printed numbers for the metadata.
  std::map<std::string, std::string> values() const;
  /// Empty when weights of this format lose no more than they should, else what is missed and what to try. Random tokens
  /// prove nothing.
  std::string complaint(const WeightFormat& format) const;
};

/// What the float file makes of some tokens.
class Judge {
 public:
  /// `store` is where the rows are put aside. Throws InputError when the text cannot be encoded.
  Judge(const std::string& float_file, const TokenSource& source,
        const std::shared_ptr<FloatFile>& store, size_t most_tokens = kMostJudgedTokens);

  /// Feeds another file the same tokens and compares all rows.
  Quality compare(const std::string& file) const;

 private:
  std::vector<int32_t> tokens_;
  std::string text_;
  bool random_;
  oxb_task task_;
  /// Of each run of the main entry point.
  std::vector<Weight> rows_;
};

}  // namespace oxbow::convert
