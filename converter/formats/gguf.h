#pragma once

// Reads GGUF, the format of ggml and llama.cpp, versions 2 and 3, little endian:
//
//   "GGUF", version, count of tensors, count of keys
//   | key, type, value | ...                        any order, no alignment
//   | name, sizes, type, offset | ...               sizes from the innermost dimension outwards
//   | data of a tensor | gap up to the alignment | ...
//
// The file is mapped and nothing in it is believed: counts, lengths, types, sizes and offsets are
// checked when it is opened. Values stay where they are until somebody asks for them, so what a file
// takes in memory is bounded by its own size.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow::convert {

/// Types of values, with their numbers in the file.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// A value, or an array of them, in the mapped file.
struct GgufValue {
  /// Of the elements, when it is an array.
  GgufType type = GgufType::kU8;
  bool is_array = false;
  uint64_t count = 1;
  /// As the file has them, one after the other; strings with their lengths before them.
  std::span<const std::byte> bytes;
};

/// What a GGUF file says. Everything points into the bytes it was read from.
class Gguf {
 public:
  /// Reads `file`, all of it; `path` is for messages. Throws InputError.
  Gguf(const std::string& path, std::span<const std::byte> file);

  const std::string& path() const { return path_; }
  const std::map<std::string, GgufValue>& values() const { return values_; }
  /// By the names in the file, with the outermost dimension first.
  const TensorMap& tensors() const { return tensors_; }

  bool has(const std::string& key) const { return values_.contains(key); }

  // -- Values by key; nothing when the key is missing. Throws InputError when the value is of
  // another type. Numbers may have any width that holds them; texts are valid UTF-8.

  /// One that is not negative.
  std::optional<uint64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::vector<int64_t>> integers(const std::string& key) const;
  std::optional<std::vector<float>> numbers(const std::string& key) const;
  std::optional<std::vector<std::string>> texts(const std::string& key) const;

  /// Throws InputError: the value of `key` is not what is expected.
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

 private:
  const GgufValue* find(const std::string& key, bool is_array, const char* expected) const;

  std::string path_;
  std::map<std::string, GgufValue> values_;
  TensorMap tensors_;
};

}  // namespace oxbow::convert
