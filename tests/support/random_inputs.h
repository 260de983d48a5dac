#pragma once

// Random values for what a model takes, whatever that is.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace oxbow::testing {

union Value {
  int32_t number;
  float real;
};

/// Random values for the inputs that one run of an entry point needs.
struct RandomInputs {
  RandomInputs(const oxb::Model& model, size_t entry, size_t count, std::mt19937& random) {
    for (size_t i = 0; i < model.entry_info(entry)->input_count; ++i) {
      const oxb_input_info input = *model.input_info(entry, i);
      if (i > 0 && input.required == 0) continue;
      values.emplace_back(count * input.width);
      for (Value& value : values.back()) {
        if (input.type == OXB_TYPE_I32) {
          value.number = static_cast<int32_t>(random() % std::max(input.limit, 1u));
        } else {
          value.real = static_cast<float>(random() % 256) / 128.0f - 1.0f;
        }
      }
      list.push_back({sizeof(oxb_input), input.name, values.back().data(), count});
    }
  }
  std::vector<std::vector<Value>> values;
  std::vector<oxb_input> list;
};

}  // namespace oxbow::testing
