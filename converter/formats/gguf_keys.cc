#include "converter/formats/gguf_keys.h"

#include <algorithm>
#include <cmath>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// False, zero and nothing: a feature that is not there.
bool says_nothing(const GgufValue& value) {
  return value.type != GgufType::kString &&
         std::all_of(value.bytes.begin(), value.bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

uint32_t GgufKeys::size(const std::string& key, uint32_t min, uint32_t max) const {
  const std::string name = prefix_ + key;
  used_.insert(name);
  const std::string expected =
      "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  const auto found = gguf_.values().find(name);
  if (found == gguf_.values().end()) gguf_.fail(name, expected);
  uint64_t value = 0;
  if (found->second.is_array) {
    const std::vector<int64_t> list = *gguf_.integers(name);
    const bool same =
        !list.empty() && list[0] >= 0 &&
        std::count(list.begin(), list.end(), list[0]) == static_cast<std::ptrdiff_t>(list.size());
    if (!same) gguf_.fail(name, expected + ", the same for all layers");
    value = static_cast<uint64_t>(list[0]);
  } else {
    value = *gguf_.integer(name);
  }
  if (value < min || value > max) gguf_.fail(name, expected);
  return static_cast<uint32_t>(value);
}

uint32_t GgufKeys::size(const std::string& key, uint32_t min, uint32_t max,
                        uint32_t fallback) const {
  return has(key) ? size(key, min, max) : fallback;
}

double GgufKeys::number(const std::string& key) const {
  used_.insert(prefix_ + key);
  const std::optional<double> value = gguf_.number(prefix_ + key);
  if (!value || !std::isfinite(*value)) fail(key, "a finite number");
  return *value;
}

double GgufKeys::number(const std::string& key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool GgufKeys::flag(const std::string& key, bool fallback) const {
  used_.insert(prefix_ + key);
  return gguf_.flag(prefix_ + key).value_or(fallback);
}

std::vector<int64_t> GgufKeys::list(const std::string& key) const {
  used_.insert(prefix_ + key);
  const std::optional<std::vector<int64_t>> values = gguf_.integers(prefix_ + key);
  if (!values) fail(key, "a list of integers, one for each layer");
  return *values;
}

std::string GgufKeys::text(const std::string& key, const std::string& fallback) const {
  used_.insert(prefix_ + key);
  return gguf_.text(prefix_ + key).value_or(fallback);
}

void GgufKeys::require_size(const std::string& key, uint32_t expected,
                            const std::string& why) const {
  if (size(key, 0, UINT32_MAX, expected) != expected) {
    fail(key, std::to_string(expected) + ", " + why);
  }
}

void GgufKeys::finish() const {
  std::string names;
  for (const auto& [key, value] : gguf_.values()) {
    if (!key.starts_with(prefix_) || used_.contains(key) || says_nothing(value)) continue;
    names += (names.empty() ? "" : ", ") + printable(key);
  }
  if (names.empty()) return;
  throw InputError(gguf_.path() + ": these keys may change the results and are not supported: " +
                   printable(names, 400));
}

}  // namespace oxbow::convert
