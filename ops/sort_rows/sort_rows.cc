#include "ops/sort_rows/sort_rows.h"

#include <algorithm>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// A number of keys for which counting them makes sense.
constexpr uint32_t kMostKeys = 1u << 24;

struct Params {
  Tensor keys, given, order;
  bool may_be_given;
  uint32_t lists;
  /// Of the keys and of those given.
  uint32_t limit;
};

void sort_list(const int32_t* keys, size_t rows, uint32_t limit, uint32_t* first, int32_t* order) {
  std::fill_n(first, limit, 0u);
  for (size_t i = 0; i < rows; ++i) ++first[keys[i]];
  uint32_t sum = 0;
  for (uint32_t key = 0; key < limit; ++key) {
    const uint32_t count = first[key];
    first[key] = sum;
    sum += count;
  }
  for (size_t i = 0; i < rows; ++i) order[first[keys[i]]++] = static_cast<int32_t>(i);
}

Status run_sort_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor order = p.order;
  const uint32_t computed = context.rows(p.keys);
  const uint32_t given = p.may_be_given ? context.rows(p.given) : 0;
  if (computed % p.lists != 0 || (given != 0 && given != computed)) {
    return fail(context.error, Status::kInvalidArgument, "'%.60s' has %u rows, expected %u",
                given != 0 ? p.given.name : p.keys.name, given != 0 ? given : computed, computed);
  }
  const int32_t* keys = given != 0 ? p.given.i32() : p.keys.i32();
  for (uint32_t i = 0; i < computed; ++i) {
    if (static_cast<uint32_t>(keys[i]) >= p.limit) {
      return fail(context.error, Status::kInvalidArgument, "'%.60s' has the value %d, at most %u",
                  given != 0 ? p.given.name : p.keys.name, keys[i], p.limit - 1);
    }
  }
  const size_t rows = computed / p.lists;
  parallel_for(context.pool, p.lists, [&](size_t list, size_t worker) {
    auto* first = reinterpret_cast<uint32_t*>(context.scratch) + worker * p.limit;
    sort_list(keys + list * rows, rows, p.limit, first, order.i32() + list * rows);
  });
  return context.set_rows(order, computed);
}

}  // namespace

constexpr OpSignature kSortRowsSignature = {
    .options = schema::OpOptions::SortRowsOptions,
    .inputs = {{.name = "keys",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .least = 1,
                .most = 2}},
    .outputs = {{.name = "order",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::counted(0)}},
};

Status bind_sort_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kSortRowsSignature));
  const uint32_t lists = context.step().options_as_SortRowsOptions()->lists();
  if (lists == 0) return context.fail("sorts 0 lists");
  const Tensor keys = context.input(0), order = context.output(0);
  auto& p = context.params<Params>();
  p.keys = keys;
  p.order = order;
  p.lists = lists;
  p.limit = keys.limit;
  p.may_be_given = context.input_count() == 2;
  if (p.may_be_given) {
    p.given = context.input(1);
    p.limit = std::max(p.limit, p.given.limit);
  }
  if (p.limit == 0 || p.limit > kMostKeys) {
    return context.fail("keys '%s' are below %u, expected a limit from 1 to %u", keys.name, p.limit,
                        kMostKeys);
  }
  // Readers rely on the limit.
  if (order.limit < keys.rows / lists) {
    return context.fail("tensor '%s' has values below %u, expected a limit of at least %u",
                        order.name, order.limit, keys.rows / lists);
  }
  context.request_scratch(context.threads() * size_t{p.limit} * sizeof(uint32_t));
  *run = run_sort_rows;
  return Status::kOk;
}

}  // namespace oxbow
