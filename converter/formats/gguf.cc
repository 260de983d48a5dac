#include "converter/formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "host/characters.h"
#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxGgufDimensions = 4;
// The fewest bytes that a key with its value, and a tensor's description, can take.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct TypeRow {
  GgufType type;
  size_t bytes;
  const char* name;
};
constexpr TypeRow kTypes[] = {
    {GgufType::kU8, 1, "uint8"},    {GgufType::kI8, 1, "int8"},    {GgufType::kU16, 2, "uint16"},
    {GgufType::kI16, 2, "int16"},   {GgufType::kU32, 4, "uint32"}, {GgufType::kI32, 4, "int32"},
    {GgufType::kF32, 4, "float32"}, {GgufType::kBool, 1, "bool"},  {GgufType::kString, 0, "string"},
    {GgufType::kU64, 8, "uint64"},  {GgufType::kI64, 8, "int64"},  {GgufType::kF64, 8, "float64"},
};

/// Null for what is no type of a single value.
const TypeRow* find_type(uint32_t number) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) {
    return static_cast<uint32_t>(r.type) == number;
  });
  return row == std::end(kTypes) ? nullptr : row;
}

struct TensorTypeRow {
  uint32_t number;
  Dtype dtype;
};
constexpr TensorTypeRow kTensorTypes[] = {
    {0, Dtype::kF32},      {1, Dtype::kF16},     {2, Dtype::kQ4_0},     {3, Dtype::kQ4_1},
    {6, Dtype::kQ5_0},     {7, Dtype::kQ5_1},    {8, Dtype::kQ8_0},     {10, Dtype::kQ2_K},
    {11, Dtype::kQ3_K},    {12, Dtype::kQ4_K},   {13, Dtype::kQ5_K},    {14, Dtype::kQ6_K},
    {20, Dtype::kIQ4_NL},  {23, Dtype::kIQ4_XS}, {30, Dtype::kBF16},    {34, Dtype::kTQ1_0},
    {35, Dtype::kTQ2_0},   {15, Dtype::kQ8_K},   {16, Dtype::kIQ2_XXS}, {17, Dtype::kIQ2_XS},
    {18, Dtype::kIQ3_XXS}, {19, Dtype::kIQ1_S},  {21, Dtype::kIQ3_S},   {22, Dtype::kIQ2_S},
    {28, Dtype::kF64},     {29, Dtype::kIQ1_M},  {39, Dtype::kMXFP4},   {40, Dtype::kNVFP4}};

/// Those of ggml that are not read, for the message.
struct OtherTypeRow {
  uint32_t number;
  const char* name;
};
constexpr OtherTypeRow kOtherTypes[] = {
    {9, "Q8_1"}, {24, "I8"}, {25, "I16"}, {26, "I32"}, {27, "I64"},
};

Dtype tensor_type(const std::string& where, uint32_t number) {
  for (const TensorTypeRow& row : kTensorTypes) {
    if (row.number == number) return row.dtype;
  }
  std::string name = "an unknown type, number " + std::to_string(number);
  for (const OtherTypeRow& row : kOtherTypes) {
    if (row.number == number) name = row.name;
  }
  throw InputError(
      where + " is " + name +
      ", expected floats or a type of blocks that weights have (Q4_0 to Q8_K, IQ1_S to IQ4_XS, "
      "TQ1_0, TQ2_0, MXFP4, NVFP4); make the file again as one of these, e.g. with llama-quantize "
      "and Q8_0");
}

/// Reads one thing after another, and none beyond the end.
class Cursor {
 public:
  Cursor(const std::string& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  uint64_t place() const { return place_; }
  uint64_t left() const { return file_.size() - place_; }

  std::span<const std::byte> take(uint64_t bytes, const std::string& what) {
    if (bytes > left()) {
      throw InputError(path_ + ": " + what + " at byte " + std::to_string(place_) + " needs " +
                       std::to_string(bytes) + " bytes, the file has " + std::to_string(left()) +
                       " more; is it cut off?");
    }
    const std::span<const std::byte> out = file_.subspan(place_, bytes);
    place_ += bytes;
    return out;
  }

  template <typename T>
  T read(const std::string& what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view string(const std::string& what) {
    const auto size = read<uint64_t>("the length of " + what);
    const std::span<const std::byte> bytes = take(size, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// The name of a key or a tensor.
  std::string name(const std::string& what) {
    std::string text(string(what));
    if (text.empty()) {
      throw InputError(path_ + ": " + what + " before byte " + std::to_string(place_) +
                       " is empty");
    }
    return text;
  }

  /// A number of things of at least `min_bytes` each.
  uint64_t count(uint64_t min_bytes, const std::string& what) {
    const auto value = read<uint64_t>("the number of " + what);
    if (value > left() / min_bytes) {
      throw InputError(path_ + ": claims " + std::to_string(value) + " " + what +
                       ", more than its " + std::to_string(file_.size()) +
                       " bytes can hold; is it cut off?");
    }
    return value;
  }

  GgufValue value(const std::string& what) {
    GgufValue out;
    auto number = read<uint32_t>(what);
    out.is_array = number == static_cast<uint32_t>(GgufType::kArray);
    if (out.is_array) number = read<uint32_t>(what);
    const TypeRow* row = find_type(number);
    if (row == nullptr) {
      throw InputError(path_ + ": " + what +
                       (number == static_cast<uint32_t>(GgufType::kArray)
                            ? std::string(" is an array of arrays, which is not supported")
                            : " has the unknown type " + std::to_string(number)));
    }
    out.type = row->type;
    const bool is_string = row->type == GgufType::kString;
    // A string has a length at least.
    const size_t min_bytes = is_string ? sizeof(uint64_t) : row->bytes;
    if (out.is_array) out.count = count(min_bytes, "elements of " + what);
    const uint64_t begin = place_;
    if (is_string) {
      for (uint64_t i = 0; i < out.count; ++i) string(what);
    } else {
      take(out.count * row->bytes, what);
    }
    out.bytes = file_.subspan(begin, place_ - begin);
    return out;
  }

 private:
  const std::string& path_;
  std::span<const std::byte> file_;
  uint64_t place_ = 0;
};

/// Calls `visit` with each number of `value` in its own type.
template <typename Visit>
void for_each_number(const GgufValue& value, Visit visit) {
  const auto all = [&]<typename T>(T) {
    for (uint64_t i = 0; i < value.count; ++i) {
      T element;
      std::memcpy(&element, value.bytes.data() + i * sizeof(T), sizeof(T));
      visit(element);
    }
  };
  switch (value.type) {
    case GgufType::kU8:
      return all(uint8_t{});
    case GgufType::kI8:
      return all(int8_t{});
    case GgufType::kU16:
      return all(uint16_t{});
    case GgufType::kI16:
      return all(int16_t{});
    case GgufType::kU32:
      return all(uint32_t{});
    case GgufType::kI32:
      return all(int32_t{});
    case GgufType::kU64:
      return all(uint64_t{});
    case GgufType::kI64:
      return all(int64_t{});
    case GgufType::kF32:
      return all(float{});
    case GgufType::kF64:
      return all(double{});
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      return;
  }
}

bool is_real(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }
bool is_integer(GgufType type) {
  return !is_real(type) && type != GgufType::kBool && type != GgufType::kString;
}

void check_header(const std::string& path, Cursor& cursor) {
  constexpr std::string_view kMagic = "GGUF";
  const std::span<const std::byte> magic = cursor.take(4, "the mark of a GGUF file");
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    throw InputError(path +
                     " does not begin with GGUF; expected a GGUF file, or a checkpoint directory");
  }
  const auto version = cursor.read<uint32_t>("the version");
  if (version == 2 || version == 3) return;
  // Of another byte order, the small number of the version is in the upper bytes.
  const bool swapped = version != 0 && (version & 0xffff) == 0;
  throw InputError(path +
                   (swapped ? " is a GGUF file of big-endian numbers"
                            : " is a GGUF file of version " + std::to_string(version)) +
                   ", expected version 2 or 3 in little endian");
}

struct TensorInfo {
  std::string name;
  Dtype dtype;
  std::vector<uint64_t> shape;
  uint64_t offset;
};

TensorInfo read_info(const std::string& path, Cursor& cursor) {
  TensorInfo info;
  info.name = cursor.name("a tensor's name");
  const std::string where = path + ": tensor " + printable(info.name);
  const std::string what = "the description of tensor " + printable(info.name);
  const auto dimensions = cursor.read<uint32_t>(what);
  if (dimensions == 0 || dimensions > kMaxGgufDimensions) {
    throw InputError(where + " has " + std::to_string(dimensions) + " dimensions, expected 1 to " +
                     std::to_string(kMaxGgufDimensions));
  }
  for (uint32_t i = 0; i < dimensions; ++i) info.shape.push_back(cursor.read<uint64_t>(what));
  if (std::count(info.shape.begin(), info.shape.end(), 0u) != 0) {
    throw InputError(where + " has a dimension of size 0");
  }
  std::reverse(info.shape.begin(), info.shape.end());
  info.dtype = tensor_type(where, cursor.read<uint32_t>(what));
  info.offset = cursor.read<uint64_t>(what);
  return info;
}

}  // namespace

Gguf::Gguf(const std::string& path, std::span<const std::byte> file) : path_(path) {
  Cursor cursor(path_, file);
  check_header(path_, cursor);
  const uint64_t tensors = cursor.count(kMinTensorBytes, "tensors");
  const uint64_t keys = cursor.count(kMinKeyBytes, "keys");
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string key = cursor.name("a key");
    const GgufValue value = cursor.value("key " + printable(key));
    if (!values_.emplace(key, value).second) {
      throw InputError(path_ + ": key " + printable(key) + " is there twice");
    }
  }
  const uint64_t alignment = integer("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment > UINT32_MAX) {
    fail("general.alignment", "a power of two below 2^32");
  }
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < tensors; ++i) infos.push_back(read_info(path_, cursor));

  uint64_t begin = 0;
  if (!checked_align(cursor.place(), alignment, &begin)) fail("general.alignment", "a small one");
  const std::span<const std::byte> data =
      begin < file.size() ? file.subspan(begin) : std::span<const std::byte>();
  for (TensorInfo& info : infos) {
    const std::string where = path_ + ": tensor " + printable(info.name);
    if (info.offset % alignment != 0 || info.offset > data.size()) {
      throw InputError(where + " lies at byte " + std::to_string(info.offset) +
                       " of the data, expected a multiple of " + std::to_string(alignment) +
                       " within its " + std::to_string(data.size()) +
                       " bytes; is the file cut off?");
    }
    StoredTensor tensor =
        view_of(where, info.dtype, std::move(info.shape), {}, 0, data.subspan(info.offset));
    if (!tensors_.emplace(std::move(info.name), std::move(tensor)).second) {
      throw InputError(where + " is there twice");
    }
  }
  refuse_overlaps(path_, tensors_);
}

const GgufValue* Gguf::find(const std::string& key, bool is_array, const char* expected) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  if (found->second.is_array != is_array) fail(key, expected);
  return &found->second;
}

void Gguf::fail(const std::string& key, const std::string& expected) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    throw InputError(path_ + ": key " + key + " is missing, expected " + expected);
  }
  const GgufValue& value = found->second;
  std::string what = find_type(static_cast<uint32_t>(value.type))->name;
  if (value.is_array) {
    what = "an array of " + std::to_string(value.count) + " x " + what;
  } else if (value.type == GgufType::kString) {
    // The length comes first.
    what = "'" +
           printable({reinterpret_cast<const char*>(value.bytes.data()) + sizeof(uint64_t),
                      value.bytes.size() - sizeof(uint64_t)},
                     80) +
           "'";
  } else if (value.type != GgufType::kBool) {
    for_each_number(value, [&](auto number) { what += " " + std::to_string(number); });
  }
  throw InputError(path_ + ": " + printable(key) + " is " + what + ", expected " + expected);
}

std::optional<uint64_t> Gguf::integer(const std::string& key) const {
  constexpr const char* kExpected = "an integer that is not negative";
  const GgufValue* value = find(key, false, kExpected);
  if (value == nullptr) return std::nullopt;
  bool good = is_integer(value->type);
  uint64_t out = 0;
  for_each_number(*value, [&](auto number) {
    good = good && number >= 0;
    if (good) out = static_cast<uint64_t>(number);
  });
  if (!good) fail(key, kExpected);
  return out;
}

std::optional<double> Gguf::number(const std::string& key) const {
  constexpr const char* kExpected = "a number";
  const GgufValue* value = find(key, false, kExpected);
  if (value == nullptr) return std::nullopt;
  if (!is_real(value->type) && !is_integer(value->type)) fail(key, kExpected);
  double out = 0;
  for_each_number(*value, [&](auto number) { out = static_cast<double>(number); });
  return out;
}

std::optional<bool> Gguf::flag(const std::string& key) const {
  constexpr const char* kExpected = "true or false";
  const GgufValue* value = find(key, false, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) fail(key, kExpected);
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string> Gguf::text(const std::string& key) const {
  constexpr const char* kExpected = "a text in UTF-8";
  const GgufValue* value = find(key, false, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) fail(key, kExpected);
  const std::string_view text = Cursor(path_, value->bytes).string(key);
  if (!is_utf8(text)) fail(key, kExpected);
  return std::string(text);
}

std::optional<std::vector<int64_t>> Gguf::integers(const std::string& key) const {
  constexpr const char* kExpected = "a list of integers";
  const GgufValue* value = find(key, true, kExpected);
  if (value == nullptr) return std::nullopt;
  bool good = is_integer(value->type);
  std::vector<int64_t> out;
  for_each_number(*value, [&](auto number) {
    good = good && static_cast<double>(number) < 0x1p63;
    if (good) out.push_back(static_cast<int64_t>(number));
  });
  if (!good) fail(key, kExpected);
  return out;
}

std::optional<std::vector<float>> Gguf::numbers(const std::string& key) const {
  constexpr const char* kExpected = "a list of numbers of type float32";
  const GgufValue* value = find(key, true, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kF32) fail(key, kExpected);
  std::vector<float> out;
  for_each_number(*value, [&](auto number) { out.push_back(static_cast<float>(number)); });
  return out;
}

std::optional<std::vector<std::string>> Gguf::texts(const std::string& key) const {
  constexpr const char* kExpected = "a list of texts in UTF-8";
  const GgufValue* value = find(key, true, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) fail(key, kExpected);
  std::vector<std::string> out;
  Cursor cursor(path_, value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::string_view text = cursor.string(key);
    if (!is_utf8(text))
      fail(key, std::string(kExpected) + "; element " + std::to_string(i) + " is none");
    out.emplace_back(text);
  }
  return out;
}

}  // namespace oxbow::convert
