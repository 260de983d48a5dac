#include "host/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "host/errors.h"
#include "host/json_file.h"

namespace oxbow {
namespace {

// The same limit as the original library: a header beyond it is an attack or an accident.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

constexpr Dtype kDtypes[] = {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kI64,
                             Dtype::kI32, Dtype::kI16, Dtype::kI8,  Dtype::kU8,   Dtype::kBool};

/// The keys of the outermost object, as they are written, one for each time they occur.
std::vector<std::string_view> outer_keys(std::string_view text) {
  std::vector<std::string_view> keys;
  size_t depth = 0, begin = 0;
  std::string_view last;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c != '"') continue;
      in_string = false;
      last = text.substr(begin, i + 1 - begin);
    } else if (c == '"') {
      in_string = true;
      begin = i;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ':' && depth == 1) {
      keys.push_back(last);
    }
  }
  return keys;
}

/// The parser keeps the last of two equal keys; a name that means two things is refused instead.
/// Its callback would tell, in a time that grows with the square of the number of keys.
void refuse_repeated_keys(const std::string& path, std::string_view text, size_t different) {
  const std::vector<std::string_view> keys = outer_keys(text);
  if (keys.size() == different) return;
  std::set<std::string> seen;
  for (const std::string_view key : keys) {
    const auto name = nlohmann::json::parse(key).get<std::string>();
    if (!seen.insert(name).second) {
      throw InputError(path + ": tensor " + printable(name) + " is in the header twice");
    }
  }
}

nlohmann::json parse_header(const std::string& path, std::span<const std::byte> text) {
  const std::string_view header_text(reinterpret_cast<const char*>(text.data()), text.size());
  check_json_size(path + ": the header", header_text);
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(header_text);
  } catch (const nlohmann::json::exception&) {
    throw InputError(path + ": the header is not valid JSON");
  }
  if (!header.is_object()) throw InputError(path + ": the header is not a JSON object");
  refuse_repeated_keys(path, header_text, header.size());
  return header;
}

bool is_unsigned(const nlohmann::json& value) { return value.is_number_unsigned(); }

StoredTensor read_entry(const std::string& where, const nlohmann::json& entry,
                        std::span<const std::byte> data) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    throw InputError(where + " lacks dtype, shape or data_offsets");
  }
  const nlohmann::json& dtype = entry["dtype"];
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](Dtype d) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == dtype_name(d);
  });
  if (found == std::end(kDtypes)) {
    throw InputError(where + " has dtype " + printable(dtype.dump(-1, ' ', true)) +
                     ", expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
  }

  const nlohmann::json& shape = entry["shape"];
  if (!shape.is_array() || shape.size() > kMaxDimensions ||
      !std::all_of(shape.begin(), shape.end(), is_unsigned)) {
    throw InputError(where + " has a shape that is not a list of at most 16 sizes");
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
  const StoredTensor tensor = view_of(where, *found, shape.get<std::vector<uint64_t>>(), {}, 0,
                                      data.subspan(begin, end - begin));
  if (tensor.bytes.size() != end - begin) {
    throw InputError(where + " has " + std::to_string(end - begin) + " bytes, expected " +
                     std::to_string(tensor.bytes.size()) + " for " + tensor.describe());
  }
  return tensor;
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> file) {
  uint64_t header_bytes = 0;
  if (file.size() <= sizeof(header_bytes)) return false;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  return header_bytes <= file.size() - sizeof(header_bytes) &&
         file[sizeof(header_bytes)] == std::byte{'{'};
}

SafetensorsContents read_safetensors(const std::string& path, std::span<const std::byte> file) {
  if (file.size() < 8) {
    throw InputError(path + ": " + std::to_string(file.size()) +
                     " bytes are too few for a safetensors file");
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - 8) {
    throw InputError(path + ": the header claims " + std::to_string(header_bytes) +
                     " bytes, the file has " + std::to_string(file.size()) +
                     "; it is cut off or not a safetensors file");
  }
  const nlohmann::json header = parse_header(path, file.subspan(8, header_bytes));
  const std::span<const std::byte> data = file.subspan(8 + header_bytes);
  SafetensorsContents contents;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      contents.tensors.emplace(name, read_entry(path + ": tensor " + printable(name), entry, data));
      continue;
    }
    if (!entry.is_object()) throw InputError(path + ": __metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) {
        throw InputError(path + ": __metadata__ " + printable(key) + " is not a string");
      }
      contents.metadata.emplace(key, value.get<std::string>());
    }
  }
  refuse_overlaps(path, contents.tensors);
  return contents;
}

Safetensors::Safetensors(const std::string& path) : TensorFile(path) {
  SafetensorsContents contents = read_safetensors(path, file_bytes());
  tensors_ = std::move(contents.tensors);
  metadata_ = std::move(contents.metadata);
}

}  // namespace oxbow
