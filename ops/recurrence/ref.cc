#include "ops/recurrence/chunks.h"
#include "ops/recurrence/recurrence.h"

namespace oxbow {

void recurrence_f32_f32_ref(const RecurrenceTile& tile) {
  for (size_t t = 0; t < tile.tokens; ++t) {
    const auto row = [t](const TokenRows& rows) {
      return rows.data == nullptr ? nullptr : rows.data + t * rows.stride;
    };
    const float* q = row(tile.q);
    const float* k = row(tile.k);
    const float* v = row(tile.v);
    const float* w = row(tile.decay);
    const float* a = row(tile.a);
    const float* b = row(tile.b);
    const float* factor = row(tile.factor);
    const float* divisor = row(tile.divisor);
    const auto decay = [&](size_t i) {
      return w == nullptr ? 1.0f : w[tile.decay_per_key ? i : 0];
    };
    for (size_t c = 0; c < tile.columns; ++c) {
      float* column = tile.state + c;
      const auto at = [&](size_t i) -> float& { return column[i * tile.state_stride]; };
      const auto read = [&] {
        float sum = 0;
        for (size_t i = 0; i < tile.keys; ++i) sum += at(i) * q[i];
        float& y = tile.y[t * tile.y_stride + c];
        y = divisor == nullptr ? sum : sum / *divisor;
      };
      if (q != nullptr && (tile.read_before || k == nullptr)) read();
      if (k == nullptr) continue;
      float seen = 0;  // S a
      for (size_t i = 0; a != nullptr && i < tile.keys; ++i) seen += at(i) * a[i];
      float known = 0;  // (S diag(w)) k
      for (size_t i = 0; tile.delta && i < tile.keys; ++i) known += decay(i) * at(i) * k[i];
      float value = tile.delta ? v[c] - known : v[c];
      if (factor != nullptr) value *= *factor;
      for (size_t i = 0; i < tile.keys; ++i) {
        float s = decay(i) * at(i);
        if (b != nullptr) s += b[i] * seen;
        at(i) = s + k[i] * value;
      }
      if (q != nullptr && !tile.read_before) read();
    }
  }
}

void recurrence_chunk_rows_ref(const RecurrenceTile& tile, size_t begin, ChunkRow* rows) {
  chunk_rows(tile, begin, rows);
}

void recurrence_chunks_ref(const RecurrenceTile& tile, const ChunkRow* rows) {
  for (size_t c = 0; c < tile.columns; ++c) run_chunks<float, 1>(tile, rows, c, 0);
}

}  // namespace oxbow
