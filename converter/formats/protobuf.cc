#include "converter/formats/protobuf.h"

#include <cstring>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Seven bits of a number in each byte; the highest bit says that more follow. False: it does not end.
bool take_number(std::span<const std::byte>& rest, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<uint64_t>(rest.front());
    rest = rest.subspan(1);
    *value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

}  // namespace

void ProtoReader::fail(const std::string& what) const { throw InputError(where_ + ": " + what); }

uint64_t ProtoReader::number() {
  uint64_t value = 0;
  if (!take_number(rest_, &value)) fail("a number does not end; is the file cut off?");
  return value;
}

std::span<const std::byte> ProtoReader::take(uint64_t bytes) {
  if (bytes > rest_.size()) {
    fail("a field needs " + std::to_string(bytes) + " bytes where " + std::to_string(rest_.size()) +
         " are left; is the file cut off?");
  }
  const std::span<const std::byte> out = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return out;
}

bool ProtoReader::next(ProtoField* field) {
  if (rest_.empty()) return false;
  const uint64_t tag = number();
  if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX) fail("a field has no number; is this the format?");
  *field = {};
  field->number = static_cast<uint32_t>(tag >> 3);
  const auto fixed = [&](size_t bytes) {
    std::memcpy(&field->value, take(bytes).data(), bytes);
    field->kind = bytes == 4 ? ProtoField::Kind::kFixed32 : ProtoField::Kind::kFixed64;
  };
  switch (tag & 7) {
    case 0:
      field->value = number();
      return true;
    case 1:
      fixed(8);
      return true;
    case 2:
      field->kind = ProtoField::Kind::kBytes;
      field->bytes = take(number());
      return true;
    case 5:
      fixed(4);
      return true;
    default:
      fail("field " + std::to_string(field->number) + " has the unknown form " +
           std::to_string(tag & 7));
  }
}

void append_numbers(const std::string& where, const ProtoField& field, std::vector<int64_t>& out) {
  if (field.kind == ProtoField::Kind::kNumber) {
    out.push_back(static_cast<int64_t>(field.value));
    return;
  }
  if (field.kind != ProtoField::Kind::kBytes) {
    throw InputError(where + ": field " + std::to_string(field.number) + " is no list of numbers");
  }
  std::span<const std::byte> rest = field.bytes;
  while (!rest.empty()) {
    uint64_t value = 0;
    if (!take_number(rest, &value)) throw InputError(where + ": a number of a list does not end");
    out.push_back(static_cast<int64_t>(value));
  }
}

}  // namespace oxbow::convert
