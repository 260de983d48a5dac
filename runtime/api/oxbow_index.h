/* oxbow_index.h: the nearest vectors of a table, exactly, in memory that the caller has, usually a mapped file. For models
 * that look things up, such as RETRO, and for searching by meaning.
 *
 * Vectors are kept as int8 with a scale each, in the layout of the library's weights, so that a search is the matrix product
 * it is best at. It compares a query, quantised in the same way, with every vector: nothing is approximate but the
 * eight bits. Results are the same bits on every machine.
 *
 *     oxb_index_bytes(count, width, OXB_METRIC_L2, &bytes, &error);      how much memory a table takes
 *     oxb_index_create(memory, bytes, count, width, OXB_METRIC_L2, &error);
 *     oxb_index_put(memory, bytes, first, vectors, n, &error);           any number of times
 *     oxb_index_search(memory, bytes, query, 1, 0, count, k, ids, scores, &error);
 *
 * Nothing is allocated, and nothing is kept between calls. A table that is not being written may be searched by any number of
 * threads: each takes a range of vectors, and the best of all are the best of those. */
#ifndef OXBOW_INDEX_H_
#define OXBOW_INDEX_H_

/* In the source tree, or installed. */
#if defined(__has_include)
#if __has_include("runtime/api/oxbow.h")
#include "runtime/api/oxbow.h"
#else
#include "oxbow.h"
#endif
#else
#include "oxbow.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t oxb_metric;
enum {
  /* Scores are inner products. */
  OXB_METRIC_DOT = 0,
  /* Scores are squared distances with a minus sign. */
  OXB_METRIC_L2 = 1
};

#define OXB_INDEX_MAX_WIDTH 2048
#define OXB_INDEX_MAX_RESULTS 1024

typedef struct oxb_index_info {
  size_t size;
  uint64_t count;
  uint32_t width;
  oxb_metric metric;
} oxb_index_info;
#define OXB_INDEX_INFO_INIT \
  { sizeof(oxb_index_info), 0, 0, 0 }

/* Bytes of a table of `count` vectors of `width` numbers, 1 to OXB_INDEX_MAX_WIDTH. */
OXB_API oxb_status oxb_index_bytes(uint64_t count, uint32_t width, oxb_metric metric, size_t* bytes,
                                   oxb_error* error);

/* Makes an empty table of `memory`, which is aligned to 64 and has the bytes that oxb_index_bytes tells: all vectors are
 * zeros. */
OXB_API oxb_status oxb_index_create(void* memory, size_t bytes, uint64_t count, uint32_t width,
                                    oxb_metric metric, oxb_error* error);

/* Sets vectors `first` to `first + count`: count * width numbers, one vector behind the other. */
OXB_API oxb_status oxb_index_put(void* table, size_t bytes, uint64_t first, const float* vectors,
                                 uint64_t count, oxb_error* error);

/* What is in a table. Checks its first bytes against `bytes`, as every call does: a broken file is refused. */
OXB_API oxb_status oxb_index_get_info(const void* table, size_t bytes, oxb_index_info* info,
                                      oxb_error* error);

/* The `k` best of vectors `first` to `first + count` for each of `queries` queries, the best first; of equal ones the
 * first. ids and scores have room for queries * k; where there are fewer vectors than k, the rest is UINT64_MAX and -inf. */
OXB_API oxb_status oxb_index_search(const void* table, size_t bytes, const float* queries,
                                    size_t query_count, uint64_t first, uint64_t count, uint32_t k,
                                    uint64_t* ids, float* scores, oxb_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OXBOW_INDEX_H_ */
