#pragma once

// What terms are made of. A term is a struct of what bind finds in a step, with
//
//   kInputs, kMostInputs    how many inputs it has; the second only where that varies
//   place(view, i)          what input i must be, which the op's signature checks; not without inputs
//   bind(binding)           checks options and keeps pointers, which are null while bytes are counted
//
// and some of the following, which generic.h and seen.h call in this order. All but `reach` take the kernel's
// struct of loops as first template argument: it makes them a part of the kernel's file, which alone may hold
// code for its ISA, and nothing of the standard library is called in them.
//
//   State                                     what is kept for one query, next to the running maximum and sum
//   reach(head), first                        keys at this distance or further are not read, but for `first` positions
//   query_bias(query, shape)                  what is added to q in the products with keys
//   begin(query, shape, scratch, state)       before the first tile
//   before_scale(tile, state, scores)         changes the scores of a tile, then
//   after_scale(tile, state, scores)          once more, behind the factor on the scores
//   weights(tile, rescale, state, weights)    changes exponentials; `rescale` is due to all that was summed up before
//   divisor(state, sum)                       what the sum of the values is divided by, in place of all weights' sum
//
// The list is terms.inc, in the order of the arithmetic. <name>.glsl beside a term has a function of the struct's
// name, which attention.glsl calls for every score.

#include <cstddef>
#include <cstdint>

#include "ops/attention/tile.h"
#include "ops/common/signature.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {

inline constexpr size_t kTermKinds = static_cast<size_t>(schema::TermKind::MAX) + 1;

/// One term of a step: which of the step's inputs it has, and its options, null for a flag's.
struct TermUse {
  schema::TermKind kind = schema::TermKind::MIN;
  size_t first_input = 0;
  size_t inputs = 0;
  const schema::ScoreTerm* options = nullptr;
};

/// What the inputs of a term depend on. Numbers of inputs are places in the step's list.
struct TermView {
  uint32_t heads;
  /// Of keys, values and tables beside them.
  DataType type;
  uint32_t q_width;
  uint8_t last_keys;
  /// Of the term.
  uint8_t first_input;

  /// F32 with exactly so many rows, or any fixed number: what terms are made of.
  Place weight(const char* name, uint64_t width, Rows rows = Rows::one()) const {
    return {.name = name, .role = Role::kWeight, .width = Width::exactly(width), .rows = rows};
  }
  /// A number for each row of the last source, which is not in a ring.
  Place row_numbers(const char* name) const {
    return {.name = name,
            .role = Role::kIds,
            .types = kI32,
            .width = Width::exactly(1),
            .rows = Rows::of(last_keys)};
  }
  /// As many as come.
  Place indices(const char* name) const {
    return {.name = name,
            .role = Role::kIds,
            .types = kI32,
            .width = Width::exactly(1),
            .rows = Rows::with_room()};
  }
};

/// What bind gives a term.
struct TermBinding {
  BindContext& context;
  const schema::AttentionOptions& options;
  const TermUse& use;
  /// The relative term of the step, or null.
  const TermUse* relative;
  size_t heads;
  bool own;
  /// Of keys, values and tables beside them.
  DataType type;
  Tensor q;
  Tensor last_keys;
  /// A ring among the sources has pinned rows.
  bool pinned_rows;
  /// Of all terms of the step: bit i for the kind i.
  uint32_t kinds;
  /// Terms that are read by distance set its `distances`.
  AttentionShape& shape;

  Tensor input(size_t index) const { return context.input(use.first_input + index); }
  bool has(schema::TermKind kind) const { return (kinds >> static_cast<unsigned>(kind) & 1) != 0; }
};

/// Indices that a step of the run or its caller made, as many as a symbol tells. Smaller than a view of a tensor.
struct IndexList {
  const int32_t* values = nullptr;
  const char* name = "";
  int32_t rows_symbol = -1;
  uint32_t most = 0;

  static IndexList of(const Tensor& tensor) {
    return {tensor.i32(), tensor.name, tensor.rows_symbol, tensor.rows};
  }

  uint32_t rows(const RunContext& context) const {
    return rows_symbol < 0 ? most : context.symbols[rows_symbol];
  }
};

/// Keys of a tile and the query that meets them.
template <typename Element>
struct TermTile {
  const AttentionQuery& query;
  const AttentionShape& shape;
  const KeyTile<Element>& keys;
  std::byte* scratch;
};

}  // namespace oxbow
