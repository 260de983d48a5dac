#include "ops/traits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace oxbow {

// One line for each ops/<op>/traits.cc, made by the build.
#define OXB_OP_TRAITS(op) extern const OpTraits op##_traits;
#include "op_traits.inc"
#undef OXB_OP_TRAITS

namespace {

constexpr size_t kCount = static_cast<size_t>(schema::OpCode::MAX) + 1;

std::array<const OpTraits*, kCount> make_table() {
  std::array<const OpTraits*, kCount> table = {};
#define OXB_OP_TRAITS(op) table.at(static_cast<size_t>(op##_traits.code)) = &op##_traits;
#include "op_traits.inc"
#undef OXB_OP_TRAITS
  return table;
}

}  // namespace

const OpTraits& op_traits(schema::OpCode code) {
  static const std::array<const OpTraits*, kCount> table = make_table();
  const auto index = static_cast<size_t>(code);
  if (index >= kCount || table[index] == nullptr) {
    throw std::logic_error("op " + std::to_string(index) + " has no traits");
  }
  return *table[index];
}

std::optional<WeightInput> weight_input(const OpTraits& traits) {
  for (size_t i = 0; i < traits.signature->inputs.size(); ++i) {
    const Place& place = traits.signature->input(i);
    // Where those behind an optional one are depends on the step.
    if (place.count != nullptr || place.varies()) break;
    if (place.role != Role::kWeight) continue;
    for (const Storage& storage : kStorages) {
      if ((place.types & storage.bit) != 0 && storage.type != DataType::kF32) {
        return WeightInput{i, place.types};
      }
    }
  }
  return std::nullopt;
}

bool may_write_i8(const OpTraits& traits) {
  const Place& output = traits.signature->output();
  constexpr TypeSet kBoth = kF32 | kI8;
  return output.role == Role::kRows && (output.types & kBoth) == kBoth && output.type_of < 0;
}

bool copies_as_i8(const OpTraits& traits) { return traits.signature->output().types == kI8; }

std::string in_words(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (!word.empty()) text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

std::string counted(uint64_t number, const char* word) {
  return std::to_string(number) + " " + word;
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace oxbow
