#pragma once

// Archives and pickles made by hand, true or not, for what torch itself would never write.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace oxbow::testing {

template <typename T>
std::string little(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

/// A member as the directory and the header before its data describe it; each may lie.
struct ZipMember {
  std::string name;
  std::string data;
  uint16_t flags = 0;
  uint16_t method = 0;
  /// When not 0, what the directory claims instead of the truth.
  uint32_t claimed_size = 0;
  uint32_t claimed_place = 0;
  /// Of the header before the data, when not empty.
  std::string other_name = {};
  /// Sizes and place are in the zip64 field.
  bool wide = false;
};

inline std::string zip_bytes(const std::vector<ZipMember>& members) {
  std::string out, directory;
  for (const ZipMember& m : members) {
    const auto place = static_cast<uint32_t>(out.size());
    const std::string& local = m.other_name.empty() ? m.name : m.other_name;
    const auto size = static_cast<uint32_t>(m.data.size());
    const auto common = [&](uint32_t shown, const std::string& name, size_t extra) {
      return little<uint16_t>(20) + little(m.flags) + little(m.method) + little<uint32_t>(0) +
             little<uint32_t>(0) + little(shown) + little(shown) +
             little(static_cast<uint16_t>(name.size())) + little(static_cast<uint16_t>(extra));
    };
    out += "PK\3\4" + common(size, local, 0) + local + m.data;
    const uint32_t claimed = m.claimed_size != 0 ? m.claimed_size : size;
    const uint32_t claimed_place = m.claimed_place != 0 ? m.claimed_place : place;
    std::string extra;
    if (m.wide) {
      extra = little<uint16_t>(1) + little<uint16_t>(24) + little<uint64_t>(claimed) +
              little<uint64_t>(claimed) + little<uint64_t>(claimed_place);
    }
    directory += "PK\1\2" + little<uint16_t>(20) +
                 common(m.wide ? UINT32_MAX : claimed, m.name, extra.size()) +
                 std::string(10, '\0') + little(m.wide ? UINT32_MAX : claimed_place) + m.name +
                 extra;
  }
  const auto count = static_cast<uint16_t>(members.size());
  const auto begin = static_cast<uint32_t>(out.size());
  return out + directory + "PK\5\6" + std::string(4, '\0') + little(count) + little(count) +
         little(static_cast<uint32_t>(directory.size())) + little(begin) + std::string(2, '\0');
}

// -- Parts of pickles.

inline std::string text(const std::string& value) {
  return "X" + little(static_cast<uint32_t>(value.size())) + value;
}
inline std::string integer(int64_t value) { return std::string("\x8a\x08") + little(value); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += integer(value);
  return out + "t";
}

/// A tensor of a storage as torch writes it.
struct PickledTensor {
  std::string storage = "FloatStorage";
  std::string key = "0";
  int64_t elements = 6;
  int64_t offset = 0;
  std::vector<int64_t> sizes = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  /// The last part of the storage's id in the older layout.
  std::string view = {};

  std::string bytes() const {
    return global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
           global("torch", storage) + text(key) + text("cpu") + integer(elements) + view + "tQ" +
           integer(offset) + tuple(sizes) + tuple(strides) + "\x89" +
           global("collections", "OrderedDict") + ")RtR";
  }
};

/// A pickle of a dictionary.
inline std::string dict_pickle(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "\x80\x02}(";
  for (const auto& [key, value] : entries) out += text(key) + value;
  return out + "u.";
}

/// An archive of torch with this pickle and six floats, 0 to 5.
inline std::string torch_bytes(const std::string& pickle) {
  std::string data;
  for (const float value : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) data += little(value);
  return zip_bytes(
      {{.name = "any/data.pkl", .data = pickle}, {.name = "any/data/0", .data = data}});
}

/// The older layout of the same.
inline std::string old_torch_bytes(const std::string& pickle, int64_t elements = 6) {
  std::string out("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  out += std::string("\x80\x02M\xe9\x03.", 6);
  out += dict_pickle({{"little_endian", "\x88"}}) + pickle;
  out += "\x80\x02](" + text("0") + "e." + little(elements);
  for (const float value : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) out += little(value);
  return out;
}

}  // namespace oxbow::testing
