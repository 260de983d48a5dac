#include "ops/attention/seen.h"

#include <type_traits>

namespace oxbow {
namespace {

/// A length of the term Groups: what the file says, or the product of the last numbers of the shape.
Status group_length(const RunContext& context, const GroupsTerm& groups, uint32_t length,
                    uint32_t dimensions, uint64_t* result) {
  *result = length;
  if (length != 0) return Status::kOk;
  const uint32_t numbers =
      groups.shape_symbol < 0 ? groups.shape_rows : context.symbols[groups.shape_symbol];
  uint64_t product = numbers < dimensions ? 0 : 1;
  for (uint32_t i = 0; i < dimensions && product != 0; ++i) {
    const int32_t number = groups.shape[numbers - 1 - i];
    // Rows are counted with 32 bits, so that a longer group is wrong and the product of two fits.
    product = number <= 0 || product > UINT32_MAX ? 0 : product * static_cast<uint64_t>(number);
  }
  *result = product;
  if (product != 0 && product <= UINT32_MAX) return Status::kOk;
  return fail(context.error, Status::kInvalidArgument,
              "the shape of attention's groups has %u numbers, expected at least %u, all positive",
              numbers, dimensions);
}

/// What groups there are. Without queries or keys there are none, and no shape is needed.
Status find_groups(const RunContext& context, const AttentionTerms& terms, size_t rows,
                   Sight* sight) {
  if (!terms.has(schema::TermKind::Groups) || rows == 0 || sight->positions == 0) {
    return Status::kOk;
  }
  const GroupsTerm& groups = terms.groups;
  OXB_TRY(group_length(context, groups, groups.query_length, groups.query_dimensions,
                       &sight->query_group));
  return group_length(context, groups, groups.key_length, groups.key_dimensions, &sight->key_group);
}

/// Takes the caller's list of blocks, if there is one.
Status take_blocks(const RunContext& context, const AttentionParams& params, uint64_t positions,
                   PatternParams* pattern) {
  if (!params.terms.has(schema::TermKind::Blocks)) return Status::kOk;
  const IndexList& list = params.terms.blocks.list;
  const uint64_t rows = list.rows(context);
  const uint64_t blocks = ceil_div(positions, uint64_t{pattern->length});
  if (rows == 0 || positions <= pattern->full_up_to || blocks <= 2) return Status::kOk;
  // Below 2^36 times two numbers of 32 bits, of which one was checked against a width.
  const uint64_t others = params.heads * (blocks - 2);
  if (rows / others != pattern->listed || rows % others != 0) {
    return fail(context.error, Status::kInvalidArgument,
                "'%.60s' has %llu rows, expected %u for each of %zu heads and %llu blocks",
                list.name, static_cast<unsigned long long>(rows), pattern->listed, params.heads,
                static_cast<unsigned long long>(blocks - 2));
  }
  for (uint64_t i = 0; i < rows; ++i) {
    const int32_t block = list.values[i];
    if (block < 0 || static_cast<uint64_t>(block) >= blocks) {
      return fail(context.error, Status::kInvalidArgument, "'%.60s' names block %d of %llu",
                  list.name, block, static_cast<unsigned long long>(blocks));
    }
  }
  pattern->list = list.values;
  return Status::kOk;
}

/// Spans of the last source's rows become spans of all positions.
template <typename Target>
struct Moved {
  Target& target;
  uint64_t by;
  void push(const PositionSpan& span) { target.push({span.first + by, span.count, span.step}); }
};

}  // namespace

bool has_reach(const AttentionTerms& terms) {
  bool found = false;
  for_each_term(terms, [&](const auto& term) {
    found = found || requires { term.reach(0); };
  });
  return found;
}

bool terms_filter(const AttentionTerms& terms) {
  using Kind = schema::TermKind;
  bool found = has_reach(terms);
  for (const Kind kind : {Kind::KeyMask, Kind::Globals, Kind::Sides, Kind::Groups}) {
    found = found || terms.has(kind);
  }
  return found;
}

Status find_sight(const RunContext& context, const AttentionParams& params, size_t rows,
                  Sight* sight, PatternParams* pattern) {
  // Masks and flags have no rows in a ring.
  const auto last_rows = static_cast<size_t>(sight->positions - sight->last_source);
  if (params.terms.key_mask.mask != nullptr) {
    auto* turns = reinterpret_cast<uint32_t*>(context.scratch + params.turns_at);
    find_turns(params.terms.key_mask.mask, last_rows, turns);
    sight->turns = turns;
  }
  if (params.terms.globals.flags != nullptr) {
    auto* list = reinterpret_cast<uint32_t*>(context.scratch + params.globals_at);
    sight->global_count = find_globals(params.terms.globals.flags, last_rows, list);
    sight->globals = list;
  }
  OXB_TRY(take_blocks(context, params, sight->positions, pattern));
  return find_groups(context, params.terms, rows, sight);
}

void visit_seen(const Sight& sight, const PatternParams& pattern, const AttentionTerms& terms,
                size_t head, size_t row, uint64_t query, SpanSink emit) {
  if (sight.query_group != 0) {
    const uint64_t group = row / sight.query_group, length = sight.key_group;
    // The group's first key is there, so that the product fits.
    if (group >= (sight.positions + length - 1) / length) return;
    return emit_range(group * length, smaller((group + 1) * length, sight.positions), emit);
  }
  uint64_t oldest = 0, first = UINT64_MAX;
  for_each_term(terms, [&](const auto& term) {
    if constexpr (requires { term.reach(head); }) {
      // Distances below the reach are seen.
      const uint64_t reach = term.reach(head), nearest = reach > query ? 0 : query - reach + 1;
      oldest = oldest < nearest ? nearest : oldest;
      first = smaller(first, term.first);
    }
  });
  const ReachFilter within(oldest, first, emit);
  const auto to_reach = [&](const PositionSpan& span) { within.push(span); };
  const uint64_t kept = terms.key_mask.keeps_own ? row : kNoRow;
  const MaskFilter mask(terms.key_mask.mask, sight.turns, sight.last_source, kept, to_reach);
  const auto to_mask = [&](const PositionSpan& span) { mask.push(span); };
  GlobalsFilter globals(sight.globals, sight.global_count, sight.last_source, to_mask);
  // Keys of the first of two sources, which all queries see, are in front of what the pattern counts.
  const uint64_t sides = terms.has(schema::TermKind::Sides) ? sight.last_source : 0;
  if (sides != 0) globals.push({0, sides, 1});
  Moved<std::remove_reference_t<decltype(globals)>> shown{globals, sides};
  if (sight.positions != sides) {
    pattern.visit(pattern, head, query - sides, sight.positions - sides, sink_of(shown));
  }
  globals.finish();
}

}  // namespace oxbow
