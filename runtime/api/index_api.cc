// The C interface of the index: argument checks and conversions, no logic of its own.

#include "runtime/api/handles.h"
#include "runtime/api/oxbow_index.h"
#include "runtime/index/index.h"

namespace {

using oxbow::IndexLayout;
using oxbow::missing;
using oxbow::outer;
using oxbow::Status;
using oxbow::words;

static_assert(OXB_INDEX_MAX_WIDTH == oxbow::kMaxIndexWidth);
static_assert(OXB_INDEX_MAX_RESULTS == oxbow::kMaxIndexResults);
static_assert(OXB_METRIC_DOT == static_cast<int>(oxbow::Metric::kDot));
static_assert(OXB_METRIC_L2 == static_cast<int>(oxbow::Metric::kL2));

}  // namespace

oxb_status oxb_index_bytes(uint64_t count, uint32_t width, oxb_metric metric, size_t* bytes,
                           oxb_error* error) {
  if (bytes == nullptr) return missing(error, "bytes");
  IndexLayout layout;
  const Status status =
      oxbow::plan_index(count, width, static_cast<uint32_t>(metric), &layout, words(error));
  *bytes = status == Status::kOk ? static_cast<size_t>(layout.bytes) : 0;
  return outer(status);
}

oxb_status oxb_index_create(void* memory, size_t bytes, uint64_t count, uint32_t width,
                            oxb_metric metric, oxb_error* error) {
  if (memory == nullptr) return missing(error, "memory");
  IndexLayout layout;
  const Status status =
      oxbow::plan_index(count, width, static_cast<uint32_t>(metric), &layout, words(error));
  if (status != Status::kOk) return outer(status);
  return outer(oxbow::create_index(memory, bytes, layout, words(error)));
}

oxb_status oxb_index_put(void* table, size_t bytes, uint64_t first, const float* vectors,
                         uint64_t count, oxb_error* error) {
  if (table == nullptr) return missing(error, "table");
  if (vectors == nullptr && count != 0) return missing(error, "vectors");
  IndexLayout layout;
  const Status status = oxbow::read_index(table, bytes, &layout, words(error));
  if (status != Status::kOk) return outer(status);
  return outer(oxbow::put_vectors(table, layout, first, vectors, count, words(error)));
}

oxb_status oxb_index_get_info(const void* table, size_t bytes, oxb_index_info* given,
                              oxb_error* error) {
  if (table == nullptr) return missing(error, "table");
  if (given == nullptr) return missing(error, "info");
  IndexLayout layout;
  const Status status = oxbow::read_index(table, bytes, &layout, words(error));
  if (status != Status::kOk) return outer(status);
  const oxb_index_info info = {sizeof(info), layout.count, layout.width,
                               static_cast<oxb_metric>(layout.metric)};
  return outer(oxbow::write_info("index info", info, given, words(error)));
}

oxb_status oxb_index_search(const void* table, size_t bytes, const float* queries,
                            size_t query_count, uint64_t first, uint64_t count, uint32_t k,
                            uint64_t* ids, float* scores, oxb_error* error) {
  if (table == nullptr) return missing(error, "table");
  if (queries == nullptr && query_count != 0) return missing(error, "queries");
  if (ids == nullptr) return missing(error, "ids");
  if (scores == nullptr) return missing(error, "scores");
  IndexLayout layout;
  const Status status = oxbow::read_index(table, bytes, &layout, words(error));
  if (status != Status::kOk) return outer(status);
  if (k == 0 || k > oxbow::kMaxIndexResults || first > layout.count ||
      count > layout.count - first) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "index: %u results of vectors %llu and %llu more, expected 1 to %u of "
                             "at most %llu",
                             k, static_cast<unsigned long long>(first),
                             static_cast<unsigned long long>(count), oxbow::kMaxIndexResults,
                             static_cast<unsigned long long>(layout.count)));
  }
  oxbow::search_index(table, layout, queries, query_count, first, count, k, ids, scores);
  return OXB_OK;
}
