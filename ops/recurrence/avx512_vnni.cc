#include "ops/recurrence/chunks.h"
#include "ops/recurrence/generic.h"
#include "ops/recurrence/recurrence.h"

namespace oxbow {

void recurrence_f32_f32_avx512_vnni(const RecurrenceTile& tile) { recurrence(tile); }

void recurrence_chunk_rows_avx512_vnni(const RecurrenceTile& tile, size_t begin, ChunkRow* rows) {
  chunk_rows(tile, begin, rows);
}

void recurrence_chunks_avx512_vnni(const RecurrenceTile& tile, const ChunkRow* rows) {
  recurrence_chunks(tile, rows);
}

}  // namespace oxbow
