#pragma once

// The keys of a GGUF file that describe its model: those that begin with its architecture's name.
// Every refusal names the key. As with config.json, what nobody asked for is refused in the end.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"

namespace oxbow::convert {

class GgufKeys {
 public:
  GgufKeys(const Gguf& gguf, const std::string& architecture)
      : gguf_(gguf), prefix_(architecture + ".") {}

  bool has(const std::string& key) const { return gguf_.has(prefix_ + key); }

  /// From `min` to `max`; a list with one for each layer must have the same everywhere.
  uint32_t size(const std::string& key, uint32_t min, uint32_t max) const;
  uint32_t size(const std::string& key, uint32_t min, uint32_t max, uint32_t fallback) const;
  /// Finite.
  double number(const std::string& key) const;
  double number(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  /// Integers, one for each layer.
  std::vector<int64_t> list(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  /// Throws unless the key is missing or `expected`.
  void require_size(const std::string& key, uint32_t expected, const std::string& why) const;
  /// Keys that change no result.
  void ignore(const std::string& key) const { used_.insert(prefix_ + key); }

  /// Throws InputError with what is expected of the key.
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    gguf_.fail(prefix_ + key, expected);
  }
  /// Throws for keys of the model that nobody asked for and that say something.
  void finish() const;

 private:
  const Gguf& gguf_;
  std::string prefix_;
  mutable std::set<std::string> used_;
};

}  // namespace oxbow::convert
