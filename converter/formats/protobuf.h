#pragma once

// The wire format of protocol buffers, as far as ONNX files and files of vocabularies need it: a message is read field
// by field, in place. Everything that does not add up is an InputError with the place in the file.
// https://protobuf.dev/programming-guides/encoding

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::convert {

class ProtobufReader {
 public:
  /// `name` is that of the file in messages. `file` must outlive the reader.
  ProtobufReader(std::string name, std::string_view file) : ProtobufReader(name, file, file) {}

  /// Goes on to the next field; false at the end of the message.
  bool next();
  /// The number of the field, and its value; throws when that is of another type.
  uint32_t field() const { return field_; }
  uint64_t integer() const;
  bool boolean() const { return integer() != 0; }
  /// Adds the numbers of a repeated field, which come one by one or many together. False: `out` would have more than so
  /// many.
  bool integers(std::vector<int64_t>& out, size_t most) const;
  float floating() const;
  std::string_view bytes() const;
  /// The field's bytes as a message.
  ProtobufReader message() const { return {name_, file_, bytes()}; }

  /// Throws an InputError about the field.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  enum class Type : uint8_t { kInteger = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

  ProtobufReader(std::string name, std::string_view file, std::string_view message)
      : name_(std::move(name)), file_(file), left_(message), place_(message) {}

  uint64_t take_integer();
  std::string_view take(uint64_t count);
  void expect(Type type, const char* what) const;

  std::string name_;
  std::string_view file_;
  std::string_view left_;
  /// Where the field began.
  std::string_view place_;
  uint32_t field_ = 0;
  Type type_ = Type::kInteger;
  uint64_t integer_ = 0;
  std::string_view bytes_;
};

}  // namespace oxbow::convert
