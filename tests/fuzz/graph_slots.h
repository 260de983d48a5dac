#pragma once

// Every number of a FlatBuffer of the schema, found by its reflection: where it is, how wide, and which field. And
// every list, whose length and elements can be changed in place.

#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/reflection_generated.h>

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "schema/model_bfbs_generated.h"

namespace oxbow::testing {

struct Slot {
  size_t at = 0;
  uint8_t bytes = 0;
  bool is_float = false;
  /// The same for all numbers of one field of one kind of table.
  uint32_t field = 0;
};

/// Elements are indices or offsets of 4 bytes.
struct List {
  size_t length_at = 0;
  uint32_t length = 0;
  /// Offsets to tables, relative to their own place.
  bool of_tables = false;
};

class GraphSlots {
 public:
  /// `graph` is a verified buffer, whose root offset is at its beginning.
  explicit GraphSlots(std::span<const uint8_t> graph) : graph_(graph) {
    const auto* schema = reflection::GetSchema(schema::ModelBinarySchema::data());
    objects_ = schema->objects();
    table(read<uint32_t>(0), *schema->root_table());
    for (size_t i = 0; i < slots_.size(); ++i) by_field_[slots_[i].field].push_back(i);
  }

  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<List>& lists() const { return lists_; }
  /// Numbers of the same field.
  const std::vector<size_t>& kin(size_t slot) const { return by_field_.at(slots_[slot].field); }

 private:
  template <typename T>
  T read(size_t at) const {
    T value;
    std::memcpy(&value, graph_.data() + at, sizeof(T));
    return value;
  }
  static size_t bytes_of(reflection::BaseType type) {
    switch (type) {
      case reflection::UType:
      case reflection::Bool:
      case reflection::Byte:
      case reflection::UByte:
        return 1;
      case reflection::Short:
      case reflection::UShort:
        return 2;
      case reflection::Int:
      case reflection::UInt:
      case reflection::Float:
        return 4;
      case reflection::Long:
      case reflection::ULong:
      case reflection::Double:
        return 8;
      default:
        return 0;
    }
  }

  void table(size_t at, const reflection::Object& object) {
    if (!seen_.insert(at).second) return;
    const size_t vtable = at - static_cast<size_t>(read<int32_t>(at));
    const size_t vtable_bytes = read<uint16_t>(vtable);
    for (const reflection::Field* field : *object.fields()) {
      if (field->offset() >= vtable_bytes) continue;
      const uint16_t place = read<uint16_t>(vtable + field->offset());
      if (place == 0) continue;
      const auto id =
          static_cast<uint32_t>(fields_.try_emplace(field, fields_.size()).first->second);
      value(at + place, *field, id, vtable, vtable_bytes, at);
    }
  }

  void value(size_t at, const reflection::Field& field, uint32_t id, size_t vtable,
             size_t vtable_bytes, size_t owner) {
    const reflection::Type& type = *field.type();
    switch (type.base_type()) {
      case reflection::Obj: {
        const reflection::Object& object = *objects_->Get(static_cast<uint32_t>(type.index()));
        if (!object.is_struct()) table(at + read<uint32_t>(at), object);
        return;
      }
      case reflection::Union: {
        // The field before it tells which table it is.
        const size_t kind_entry = field.offset() - sizeof(uint16_t);
        const uint16_t place =
            kind_entry < vtable_bytes ? read<uint16_t>(vtable + kind_entry) : uint16_t{0};
        if (place == 0) return;
        const auto* values = reflection::GetSchema(schema::ModelBinarySchema::data())
                                 ->enums()
                                 ->Get(static_cast<uint32_t>(type.index()))
                                 ->values();
        const uint8_t kind = read<uint8_t>(owner + place);
        for (const reflection::EnumVal* one : *values) {
          if (one->value() == kind && one->union_type()->index() >= 0) {
            table(at + read<uint32_t>(at),
                  *objects_->Get(static_cast<uint32_t>(one->union_type()->index())));
          }
        }
        return;
      }
      case reflection::Vector: {
        const size_t list = at + read<uint32_t>(at);
        const uint32_t length = read<uint32_t>(list);
        const bool tables = type.element() == reflection::Obj &&
                            !objects_->Get(static_cast<uint32_t>(type.index()))->is_struct();
        const size_t width = bytes_of(type.element());
        if (tables || width == 4) lists_.push_back({list, length, tables});
        for (uint32_t i = 0; i < length; ++i) {
          if (tables) {
            const size_t element = list + 4 + size_t{4} * i;
            table(element + read<uint32_t>(element),
                  *objects_->Get(static_cast<uint32_t>(type.index())));
          } else if (width != 0) {
            add(list + 4 + width * i, type.element(), id);
          }
        }
        return;
      }
      case reflection::String:
        return;
      default:
        add(at, type.base_type(), id);
    }
  }

  void add(size_t at, reflection::BaseType type, uint32_t id) {
    const bool is_float = type == reflection::Float || type == reflection::Double;
    slots_.push_back({at, static_cast<uint8_t>(bytes_of(type)), is_float, id});
  }

  std::span<const uint8_t> graph_;
  const flatbuffers::Vector<flatbuffers::Offset<reflection::Object>>* objects_ = nullptr;
  std::set<size_t> seen_;
  std::map<const reflection::Field*, size_t> fields_;
  std::vector<Slot> slots_;
  std::vector<List> lists_;
  std::map<uint32_t, std::vector<size_t>> by_field_;
};

}  // namespace oxbow::testing
