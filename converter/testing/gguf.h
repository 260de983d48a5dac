#pragma once

// GGUF files made by hand, true or not.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"

namespace oxbow::testing {

using convert::GgufType;

template <typename T>
std::string raw(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}
inline std::string raw_text(const std::string& text) { return raw<uint64_t>(text.size()) + text; }
inline std::string raw_type(GgufType type) { return raw(static_cast<uint32_t>(type)); }

struct GgufBuilder {
  struct Tensor {
    std::string name;
    /// The innermost first.
    std::vector<uint64_t> sizes;
    uint32_t type;
    uint64_t offset;
  };
  uint32_t version = 3;
  /// Key, type and value of each, as they are in the file.
  std::vector<std::string> keys;
  std::vector<Tensor> tensors;
  std::string data;

  void add(const std::string& key, const std::string& value) {
    keys.push_back(raw_text(key) + raw_type(GgufType::kString) + raw_text(value));
  }
  void add(const std::string& key, uint32_t value) {
    keys.push_back(raw_text(key) + raw_type(GgufType::kU32) + raw(value));
  }
  void add(const std::string& key, float value) {
    keys.push_back(raw_text(key) + raw_type(GgufType::kF32) + raw(value));
  }
  void add(const std::string& key, bool value) {
    keys.push_back(raw_text(key) + raw_type(GgufType::kBool) + raw<uint8_t>(value ? 1 : 0));
  }
  /// `count` elements of `type`, which are in `elements`.
  void add_array(const std::string& key, GgufType type, uint64_t count,
                 const std::string& elements) {
    keys.push_back(raw_text(key) + raw_type(GgufType::kArray) + raw_type(type) + raw(count) +
                   elements);
  }
  void add_texts(const std::string& key, const std::vector<std::string>& texts) {
    std::string elements;
    for (const std::string& text : texts) elements += raw_text(text);
    add_array(key, GgufType::kString, texts.size(), elements);
  }
  /// A tensor of this type with these bytes, at the next place that is aligned.
  void add_tensor(const std::string& name, std::vector<uint64_t> sizes, uint32_t type,
                  const std::string& bytes) {
    data.resize((data.size() + 31) / 32 * 32);
    tensors.push_back({name, std::move(sizes), type, data.size()});
    data += bytes;
  }
  void add_floats(const std::string& name, std::vector<uint64_t> sizes,
                  const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add_tensor(name, std::move(sizes), 0, bytes);
  }

  std::string bytes() const {
    std::string out =
        "GGUF" + raw(version) + raw<uint64_t>(tensors.size()) + raw<uint64_t>(keys.size());
    for (const std::string& key : keys) out += key;
    for (const Tensor& tensor : tensors) {
      out += raw_text(tensor.name) + raw(static_cast<uint32_t>(tensor.sizes.size()));
      for (const uint64_t size : tensor.sizes) out += raw(size);
      out += raw(tensor.type) + raw(tensor.offset);
    }
    out.resize((out.size() + 31) / 32 * 32);
    return out + data;
  }
};

}  // namespace oxbow::testing
