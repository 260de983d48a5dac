#pragma once

// What oxbow bench feeds to one entry point of a model, and room for what it gives.

#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tools/common.h"

namespace oxbow::tools {

class EntryFeed {
 public:
  /// Throws InputError with the model's path.
  EntryFeed(const oxb::Model& model, size_t entry, const std::string& path);

  const oxb_entry_info& info() const { return info_; }
  bool takes_tokens() const { return inputs_[0].type == OXB_TYPE_I32; }
  std::span<const float> output() const { return output_; }

  /// Random values for the first `rows` of all inputs.
  void fill(RandomTokens& random, size_t rows);
  void set_token(int32_t token) { values_[0][0].token = token; }

  /// Runs the first `rows` rows; `last`: the output is wanted, as it is at the end of a prompt.
  oxb::Status run(oxb::Session& session, size_t rows, bool last);

 private:
  union Value {
    int32_t token;
    float number;
  };
  size_t entry_;
  oxb_entry_info info_ = OXB_ENTRY_INFO_INIT;
  std::vector<oxb_input_info> inputs_;
  std::vector<std::vector<Value>> values_;
  std::vector<oxb_input> list_;
  size_t output_rows_ = 0;
  std::vector<float> output_;
};

}  // namespace oxbow::tools
