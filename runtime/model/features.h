#pragma once

// The names of features.inc.

#include <algorithm>
#include <iterator>
#include <string_view>

namespace oxbow {

inline constexpr std::string_view kFeatures[] = {
#define OXB_FEATURE(name, ...) name,
#include "runtime/model/features.inc"
};

constexpr bool knows_feature(std::string_view name) {
  return std::find(std::begin(kFeatures), std::end(kFeatures), name) != std::end(kFeatures);
}

}  // namespace oxbow
