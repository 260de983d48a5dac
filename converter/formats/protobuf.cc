#include "converter/formats/protobuf.h"

#include <cstring>

#include "host/errors.h"

namespace oxbow::convert {

void ProtobufReader::refuse(const std::string& what) const {
  throw InputError(name_ + ", byte " + std::to_string(place_.data() - file_.data()) + ": " + what);
}

uint64_t ProtobufReader::take_integer() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    // The tenth byte has room for one more bit.
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  refuse("an integer of more than 64 bits");
}

std::string_view ProtobufReader::take(uint64_t count) {
  if (count > left_.size()) {
    refuse("the file ends, or the message does, " + std::to_string(count - left_.size()) +
           " bytes too early");
  }
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

bool ProtobufReader::next() {
  place_ = left_;
  if (left_.empty()) return false;
  const uint64_t key = take_integer();
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) {
    refuse("field " + std::to_string(key >> 3) + ", expected a number from 1 to 2^29 - 1");
  }
  field_ = static_cast<uint32_t>(key >> 3);
  type_ = static_cast<Type>(key & 7);
  switch (type_) {
    case Type::kInteger:
      integer_ = take_integer();
      return true;
    case Type::kEightBytes:
      bytes_ = take(8);
      return true;
    case Type::kBytes:
      bytes_ = take(take_integer());
      return true;
    case Type::kFourBytes:
      bytes_ = take(4);
      return true;
  }
  refuse("field " + std::to_string(field_) + " is of wire type " + std::to_string(key & 7) +
         ", expected 0, 1, 2 or 5");
}

void ProtobufReader::expect(Type type, const char* what) const {
  if (type_ != type) refuse("field " + std::to_string(field_) + " is not " + what);
}

uint64_t ProtobufReader::integer() const {
  expect(Type::kInteger, "an integer");
  return integer_;
}

bool ProtobufReader::integers(std::vector<int64_t>& out, size_t most) const {
  if (type_ == Type::kInteger) {
    out.push_back(static_cast<int64_t>(integer_));
    return out.size() <= most;
  }
  ProtobufReader list(name_, file_, bytes());
  while (!list.left_.empty()) {
    out.push_back(static_cast<int64_t>(list.take_integer()));
    if (out.size() > most) return false;
  }
  return out.size() <= most;
}

float ProtobufReader::floating() const {
  expect(Type::kFourBytes, "a number of four bytes");
  float value = 0;
  std::memcpy(&value, bytes_.data(), sizeof(value));
  return value;
}

std::string_view ProtobufReader::bytes() const {
  expect(Type::kBytes, "a string or a message");
  return bytes_;
}

}  // namespace oxbow::convert
