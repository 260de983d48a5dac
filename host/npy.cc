#include "host/npy.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "host/args.h"
#include "host/errors.h"

namespace oxbow {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 16;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What follows 'key': in the dictionary, without spaces in front.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "':";
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) {
    throw InputError(path + ": the header has no " + std::string(key));
  }
  std::string_view value = header.substr(at + quoted.size());
  const size_t begin = value.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : value.substr(begin);
}

Dtype read_type(const std::string& path, std::string_view value) {
  static const std::map<std::string, Dtype, std::less<>> types = {
      {"<f8", Dtype::kF64}, {"<f4", Dtype::kF32}, {"<f2", Dtype::kF16},
      {"<i8", Dtype::kI64}, {"<i4", Dtype::kI32}, {"<i2", Dtype::kI16},
      {"|i1", Dtype::kI8},  {"|u1", Dtype::kU8},  {"|b1", Dtype::kBool}};
  const size_t end = value.empty() ? std::string_view::npos : value.find('\'', 1);
  const std::string_view name =
      end == std::string_view::npos || value[0] != '\'' ? "" : value.substr(1, end - 1);
  const auto found = types.find(name);
  if (found == types.end()) {
    throw InputError(path + ": the numbers are '" + printable(std::string(name)) +
                     "', expected little-endian floats or integers, such as '<f4'");
  }
  return found->second;
}

std::vector<uint64_t> read_shape(const std::string& path, std::string_view value) {
  const size_t end = value.find(')');
  if (value.empty() || value[0] != '(' || end == std::string_view::npos) {
    throw InputError(path + ": the header's shape is no tuple");
  }
  std::vector<uint64_t> shape;
  std::string number;
  for (const char c : std::string(value.substr(1, end - 1)) + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      number += c;
      continue;
    }
    if (number.empty()) continue;
    const std::optional<uint64_t> size = parse_integer(number);
    if (!size || shape.size() == kMaxDimensions) {
      throw InputError(path + ": the header's shape has '" + printable(number) +
                       "', expected up to 16 numbers");
    }
    shape.push_back(*size);
    number.clear();
  }
  return shape;
}

/// Elements from one index to the next when the first index moves fastest.
std::vector<uint64_t> column_strides(const std::string& path, const std::vector<uint64_t>& shape) {
  std::vector<uint64_t> strides;
  uint64_t stride = 1;
  for (const uint64_t size : shape) {
    strides.push_back(stride);
    if (__builtin_mul_overflow(stride, size, &stride)) {
      throw InputError(path + ": the header's shape is too large");
    }
  }
  return strides;
}

}  // namespace

bool looks_like_npy(std::span<const std::byte> file) { return text_of(file).starts_with(kMagic); }

StoredTensor read_npy(const std::string& path, std::span<const std::byte> file) {
  const std::string_view text = text_of(file);
  const auto byte = [&](size_t at) {
    return at < file.size() ? std::to_integer<size_t>(file[at]) : 0;
  };
  // Version 1 has two bytes for the header's length, later ones four.
  const size_t version = byte(kMagic.size());
  const size_t start = kMagic.size() + 2 + (version == 1 ? 2 : 4);
  if (!looks_like_npy(file) || version < 1 || version > 3 || file.size() < start) {
    throw InputError(path + ": no .npy file of version 1 to 3");
  }
  const size_t at = kMagic.size() + 2;
  size_t length = byte(at) | byte(at + 1) << 8;
  if (version > 1) length |= byte(at + 2) << 16 | byte(at + 3) << 24;
  if (length > kMaxHeader || length > file.size() - start) {
    throw InputError(path + ": the header says it has " + std::to_string(length) + " bytes");
  }
  const std::string_view header = text.substr(start, length);
  const Dtype type = read_type(path, value_of(path, header, "descr"));
  std::vector<uint64_t> shape = read_shape(path, value_of(path, header, "shape"));
  std::vector<uint64_t> strides;
  if (value_of(path, header, "fortran_order").starts_with("True")) {
    strides = column_strides(path, shape);
  }
  return view_of(path, type, std::move(shape), std::move(strides), 0, file.subspan(start + length));
}

std::string npy_bytes(const std::vector<std::vector<float>>& rows) {
  const size_t width = rows.empty() ? 0 : rows[0].size();
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows.size()) + ", " + std::to_string(width) + "), }";
  // The numbers begin at a multiple of 64 bytes: behind ten bytes, the header and the end of its line.
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string file(kMagic);
  file += std::string("\x01\x00", 2);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  for (const std::vector<float>& row : rows) {
    file.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  }
  return file;
}

}  // namespace oxbow
