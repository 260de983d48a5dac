#include "runtime/model/graph_verifier.h"

#include <array>
#include <iterator>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

enum TableId : uint8_t {
#define OXB_TABLE(name) k##name,
#define OXB_FIELD(table, place, what, needed, of)
#define OXB_MEMBER(name)
#include "schema/model_shape.inc"
  kTableCount
};

/// What lies at a field's place; those with an s are lists.
enum What : uint8_t { kScalar, kScalars, kString, kStrings, kTable, kTables, kUnion };
constexpr uint8_t kOptional = 0, kRequired = 0x80;

struct Field {
  uint8_t what;
  /// Bytes of a scalar, or the table.
  uint8_t of;
};

#undef OXB_TABLE
#define OXB_TABLE(name)
#undef OXB_FIELD
#define OXB_FIELD(table, place, what, needed, of) {what | needed, of},
constexpr Field kFields[] = {
#include "schema/model_shape.inc"
};

// The tables' fields follow each other in the order of their places, so that a place says which field it is.
struct Row {
  TableId table;
  flatbuffers::voffset_t place;
};
#undef OXB_FIELD
#define OXB_FIELD(table, place, what, needed, of) {k##table, schema::table::place},
constexpr Row kRows[] = {
#include "schema/model_shape.inc"
};

/// Where each table's fields begin.
constexpr auto kBegins = [] {
  std::array<uint16_t, kTableCount + 1> begins = {};
  for (const Row& row : kRows) ++begins[row.table + 1];
  for (size_t i = 0; i < kTableCount; ++i) {
    begins[i + 1] = static_cast<uint16_t>(begins[i] + begins[i + 1]);
  }
  return begins;
}();

constexpr flatbuffers::voffset_t place_of(size_t field, TableId table) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * (field - kBegins[table]));
}

constexpr bool all_are_at_their_place() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].place != place_of(i, kRows[i].table)) return false;
  }
  return true;
}
static_assert(all_are_at_their_place());

/// Of Step's options, from the first that is not NONE on.
#undef OXB_FIELD
#define OXB_FIELD(table, place, what, needed, of)
#undef OXB_MEMBER
#define OXB_MEMBER(name) k##name,
constexpr TableId kMembers[] = {
#include "schema/model_shape.inc"
};
static_assert(std::size(kMembers) == static_cast<size_t>(schema::OpOptions::MAX));

/// The root's place, the identifier and a table without fields.
constexpr size_t kLeastBytes = 12;

class Walk {
 public:
  Walk(const uint8_t* bytes, size_t size, uint32_t max_depth, uint32_t max_tables)
      : bytes_(bytes), verifier_(bytes, size, max_depth, max_tables) {}

  bool is_graph(size_t size) {
    if (size < kLeastBytes || !schema::ModelBufferHasIdentifier(bytes_)) return false;
    const flatbuffers::uoffset_t root = verifier_.VerifyOffset(0);
    return root != 0 && is_table(bytes_ + root, kModel);
  }

 private:
  /// Calls itself no deeper than the verifier allows.
  bool is_table(const uint8_t* at, TableId id) {
    if (!verifier_.VerifyTableStart(at)) return false;
    const auto& table = *reinterpret_cast<const flatbuffers::Table*>(at);
    for (size_t i = kBegins[id]; i < kBegins[id + 1]; ++i) {
      const flatbuffers::voffset_t offset = table.GetOptionalFieldOffset(place_of(i, id));
      const Field& field = kFields[i];
      if (offset == 0 ? (field.what & kRequired) != 0 : !is_value(at, offset, table, i, id)) {
        return false;
      }
    }
    return verifier_.EndTable();
  }

  /// Of a field that is there.
  bool is_value(const uint8_t* at, flatbuffers::voffset_t offset, const flatbuffers::Table& table,
                size_t index, TableId id) {
    const Field& field = kFields[index];
    const int what = field.what & ~kRequired;
    if (what == kScalar) return verifier_.VerifyFieldStruct(at, offset, field.of, field.of);
    const flatbuffers::uoffset_t distance = verifier_.VerifyOffset(at, offset);
    if (distance == 0) return false;
    const uint8_t* there = at + offset + distance;
    switch (what) {
      case kString:
        return is_text(there);
      case kTable:
        return is_table(there, static_cast<TableId>(field.of));
      case kUnion: {
        // One that is not known here is refused by whoever wants it.
        const auto type = table.GetField<uint8_t>(place_of(index - 1, id), 0);
        return type == 0 || type > std::size(kMembers) || is_table(there, kMembers[type - 1]);
      }
      case kScalars:
        return verifier_.VerifyVectorOrString(there, field.of);
      default:
        return is_list(there, what, static_cast<TableId>(field.of));
    }
  }

  bool is_list(const uint8_t* at, int what, TableId id) {
    using Offsets = flatbuffers::Vector<flatbuffers::Offset<void>>;
    if (!verifier_.VerifyVectorOrString(at, sizeof(flatbuffers::uoffset_t))) return false;
    const auto& offsets = *reinterpret_cast<const Offsets*>(at);
    for (flatbuffers::uoffset_t i = 0; i < offsets.size(); ++i) {
      const auto* there = static_cast<const uint8_t*>(offsets.Get(i));
      if (!(what == kStrings ? is_text(there) : is_table(there, id))) return false;
    }
    return true;
  }

  bool is_text(const uint8_t* at) {
    return verifier_.VerifyString(reinterpret_cast<const flatbuffers::String*>(at));
  }

  const uint8_t* bytes_;
  flatbuffers::Verifier verifier_;
};

}  // namespace

bool verify_graph(const uint8_t* bytes, size_t size, uint32_t max_depth, uint32_t max_tables) {
  return Walk(bytes, size, max_depth, max_tables).is_graph(size);
}

}  // namespace oxbow
