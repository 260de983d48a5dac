#pragma once

// Reads messages of Protocol Buffers without a schema: one field after another, none beyond the end.
// https://protobuf.dev/programming-guides/encoding

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::convert {

struct ProtoField {
  enum class Kind : uint8_t { kNumber, kBytes, kFixed32, kFixed64 };

  uint32_t number = 0;
  Kind kind = Kind::kNumber;
  /// Of a number or of fixed bits.
  uint64_t value = 0;
  /// A text, a message in it, or a list of numbers.
  std::span<const std::byte> bytes;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class ProtoReader {
 public:
  /// `where` begins messages and outlives this.
  ProtoReader(const std::string& where, std::span<const std::byte> message)
      : where_(where), rest_(message) {}

  /// False at the end. Throws InputError.
  bool next(ProtoField* field);

 private:
  uint64_t number();
  std::span<const std::byte> take(uint64_t bytes);
  [[noreturn]] void fail(const std::string& what) const;

  const std::string& where_;
  std::span<const std::byte> rest_;
};

/// Adds the numbers of a repeated field, which come one by one or many together. Throws InputError.
void append_numbers(const std::string& where, const ProtoField& field, std::vector<int64_t>& out);

}  // namespace oxbow::convert
