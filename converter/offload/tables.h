#pragma once

// FlatBuffers of which only a handful of tables is needed, written by the numbers of their fields.

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oxbow::convert {

struct Table {};
using Tables = std::vector<flatbuffers::Offset<Table>>;

class TableWriter {
 protected:
  template <typename T>
  using Offset = flatbuffers::Offset<T>;

  void begin() { start_ = builder_.StartTable(); }
  Offset<Table> end() { return {builder_.EndTable(start_)}; }
  template <typename T>
  void add(uint16_t number, T value) {
    builder_.AddElement(field(number), value);
  }
  template <typename T>
  void add_offset(uint16_t number, Offset<T> offset) {
    builder_.AddOffset(field(number), offset);
  }
  /// A table without fields.
  Offset<Table> nothing() {
    begin();
    return end();
  }
  std::vector<std::byte> finish(Offset<Table> root, const char* identifier) {
    builder_.Finish(root, identifier);
    const auto* data = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return {data, data + builder_.GetSize()};
  }

  flatbuffers::FlatBufferBuilder builder_;

 private:
  static constexpr flatbuffers::voffset_t field(uint16_t number) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
  }

  flatbuffers::uoffset_t start_ = 0;
};

}  // namespace oxbow::convert
