#include "converter/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/errors.h"
#include "converter/half.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies");

// The same limit as the original library: a header beyond it is an attack or an accident.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDimensions = 16;

struct DtypeRow {
  Dtype dtype;
  const char* name;
  size_t bytes;
  bool is_float;
};
constexpr DtypeRow kDtypes[] = {
    {Dtype::kF64, "F64", 8, true},  {Dtype::kF32, "F32", 4, true},
    {Dtype::kF16, "F16", 2, true},  {Dtype::kBF16, "BF16", 2, true},
    {Dtype::kI64, "I64", 8, false}, {Dtype::kI32, "I32", 4, false},
    {Dtype::kI16, "I16", 2, false}, {Dtype::kI8, "I8", 1, false},
    {Dtype::kU8, "U8", 1, false},   {Dtype::kBool, "BOOL", 1, false},
};

const DtypeRow& row(Dtype dtype) {
  return *std::find_if(std::begin(kDtypes), std::end(kDtypes),
                       [&](const DtypeRow& r) { return r.dtype == dtype; });
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename Stored, typename Out, typename Convert>
std::vector<Out> convert_all(const StoredTensor& tensor, Convert convert) {
  std::vector<Out> out(tensor.count);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = convert(load<Stored>(tensor.bytes.data() + i * sizeof(Stored)));
  }
  return out;
}

nlohmann::json parse_header(const std::string& path, std::span<const std::byte> text) {
  // The parser keeps the last of two equal keys; a name that means two things is refused instead.
  std::set<std::string> seen;
  std::string repeated;
  const auto watch_keys = [&](int depth, nlohmann::json::parse_event_t event,
                              nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !seen.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  const char* begin = reinterpret_cast<const char*>(text.data());
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(begin, begin + text.size(), watch_keys);
  } catch (const nlohmann::json::exception&) {
    throw InputError(path + ": the header is not valid JSON");
  }
  if (!header.is_object()) throw InputError(path + ": the header is not a JSON object");
  if (!repeated.empty()) {
    throw InputError(path + ": tensor " + printable(repeated) + " is in the header twice");
  }
  return header;
}

bool is_unsigned(const nlohmann::json& value) { return value.is_number_unsigned(); }

StoredTensor read_entry(const std::string& where, const nlohmann::json& entry,
                        std::span<const std::byte> data) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    throw InputError(where + " lacks dtype, shape or data_offsets");
  }
  StoredTensor tensor;
  const nlohmann::json& dtype = entry["dtype"];
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeRow& r) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == r.name;
  });
  if (found == std::end(kDtypes)) {
    throw InputError(where + " has dtype " + printable(dtype.dump(-1, ' ', true)) +
                     ", expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
  }
  tensor.dtype = found->dtype;

  const nlohmann::json& shape = entry["shape"];
  if (!shape.is_array() || shape.size() > kMaxDimensions ||
      !std::all_of(shape.begin(), shape.end(), is_unsigned)) {
    throw InputError(where + " has a shape that is not a list of at most 16 sizes");
  }
  tensor.count = 1;
  uint64_t bytes = 0;
  bool fits = true;
  for (const nlohmann::json& size : shape) {
    tensor.shape.push_back(size.get<uint64_t>());
    fits = fits && checked_mul(tensor.count, tensor.shape.back(), &tensor.count);
  }
  if (!fits || !checked_mul(tensor.count, found->bytes, &bytes)) {
    throw InputError(where + " has a shape whose product does not fit in 64 bits");
  }

  const nlohmann::json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !is_unsigned(offsets[0]) ||
      !is_unsigned(offsets[1])) {
    throw InputError(where + " has data_offsets that are not two sizes");
  }
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    throw InputError(where + " lies at bytes " + std::to_string(begin) + " to " +
                     std::to_string(end) + " of the data, expected within its " +
                     std::to_string(data.size()) + " bytes; is the file cut off?");
  }
  if (end - begin != bytes) {
    throw InputError(where + " has " + std::to_string(end - begin) + " bytes, expected " +
                     std::to_string(bytes) + " for " + tensor.describe());
  }
  tensor.bytes = data.subspan(begin, bytes);
  return tensor;
}

void check_overlaps(const std::string& path, const std::map<std::string, StoredTensor>& tensors) {
  std::vector<std::pair<const std::byte*, const std::string*>> order;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.bytes.empty()) order.emplace_back(tensor.bytes.data(), &name);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 1; i < order.size(); ++i) {
    const StoredTensor& before = tensors.at(*order[i - 1].second);
    if (before.bytes.data() + before.bytes.size() > order[i].first) {
      throw InputError(path + ": tensors " + printable(*order[i - 1].second) + " and " +
                       printable(*order[i].second) + " overlap");
    }
  }
}

}  // namespace

const char* dtype_name(Dtype dtype) { return row(dtype).name; }
size_t dtype_bytes(Dtype dtype) { return row(dtype).bytes; }
bool is_float(Dtype dtype) { return row(dtype).is_float; }

std::string StoredTensor::describe() const {
  std::string text = std::string(dtype_name(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Safetensors::Safetensors(const std::string& path) : file_(path) {
  const std::span<const std::byte> file = file_.bytes();
  if (file.size() < 8) {
    throw InputError(path + ": " + std::to_string(file.size()) +
                     " bytes are too few for a safetensors file");
  }
  const uint64_t header_bytes = load<uint64_t>(file.data());
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - 8) {
    throw InputError(path + ": the header claims " + std::to_string(header_bytes) +
                     " bytes, the file has " + std::to_string(file.size()) +
                     "; it is cut off or not a safetensors file");
  }
  const nlohmann::json header = parse_header(path, file.subspan(8, header_bytes));
  const std::span<const std::byte> data = file.subspan(8 + header_bytes);
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors_.emplace(name, read_entry(path + ": tensor " + printable(name), entry, data));
      continue;
    }
    if (!entry.is_object()) throw InputError(path + ": __metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) {
        throw InputError(path + ": __metadata__ " + printable(key) + " is not a string");
      }
      metadata_.emplace(key, value.get<std::string>());
    }
  }
  check_overlaps(path, tensors_);
}

const StoredTensor* Safetensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const StoredTensor& Safetensors::at(const std::string& name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) throw InputError(path() + ": tensor " + printable(name) + " is missing");
  return *tensor;
}

std::vector<float> Safetensors::floats(const std::string& name) const {
  const StoredTensor& tensor = at(name);
  if (!is_float(tensor.dtype)) {
    throw InputError(path() + ": tensor " + printable(name) + " is " + tensor.describe() +
                     ", expected F32, F16 or BF16");
  }
  return to_floats(tensor);
}

std::vector<int64_t> Safetensors::integers(const std::string& name) const {
  const StoredTensor& tensor = at(name);
  if (is_float(tensor.dtype)) {
    throw InputError(path() + ": tensor " + printable(name) + " is " + tensor.describe() +
                     ", expected integers");
  }
  return to_integers(tensor);
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF64:
      return convert_all<double, float>(tensor, [](double v) { return static_cast<float>(v); });
    case Dtype::kF16:
      return convert_all<uint16_t, float>(tensor, float_from_f16);
    case Dtype::kBF16:
      return convert_all<uint16_t, float>(tensor, float_from_bf16);
    default:
      return convert_all<float, float>(tensor, [](float v) { return v; });
  }
}

std::vector<int64_t> to_integers(const StoredTensor& tensor) {
  const auto widen = [](auto v) { return static_cast<int64_t>(v); };
  switch (tensor.dtype) {
    case Dtype::kI32:
      return convert_all<int32_t, int64_t>(tensor, widen);
    case Dtype::kI16:
      return convert_all<int16_t, int64_t>(tensor, widen);
    case Dtype::kI8:
      return convert_all<int8_t, int64_t>(tensor, widen);
    case Dtype::kU8:
      return convert_all<uint8_t, int64_t>(tensor, widen);
    case Dtype::kBool:
      return convert_all<uint8_t, int64_t>(tensor, [](uint8_t v) { return int64_t{v != 0}; });
    default:
      return convert_all<int64_t, int64_t>(tensor, widen);
  }
}

}  // namespace oxbow::convert
