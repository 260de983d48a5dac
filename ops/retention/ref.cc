#include <algorithm>
#include <cstring>

#include "ops/retention/retention.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// The largest sum of absolute values of a column, at least 1.
float largest_column(const float* state, size_t keys, size_t values, float divisor) {
  float most = 1.0f;
  for (size_t c = 0; c < values; ++c) {
    float sum = 0;
    for (size_t i = 0; i < keys; ++i) sum += abs_f32(state[i * values + c]);
    most = std::max(most, sum / divisor);
  }
  return most;
}

}  // namespace

size_t retention_scratch(size_t keys, size_t values) { return keys * values; }

void retention_f32_f32_ref(const RetentionHead& h, float* state) {
  const size_t chunk = h.chunk == 0 ? std::max<size_t>(h.tokens, 1) : h.chunk;
  std::memset(state, 0, h.keys * h.values * sizeof(float));
  float bound = 1.0f;
  for (size_t begin = 0; begin < h.tokens; begin += chunk) {
    const size_t end = std::min(begin + chunk, h.tokens);
    float decays = 0, power = 1;  // n_i, w^(i+1)
    for (size_t t = begin; t < end; ++t) {
      decays = decays * h.decay + 1.0f;
      power *= h.decay;
      const float root = __builtin_sqrtf(decays);
      const float* q = h.q + t * h.q_stride;
      float* y = h.y + t * h.v_stride;
      std::memset(y, 0, h.values * sizeof(float));
      float sum = 0, w = 1;
      for (size_t s = t + 1; s-- > begin; w *= h.decay) {
        const float c = dot_f32(q, h.k + s * h.q_stride, h.keys) * w / root;
        sum += abs_f32(c);
        const float* v = h.v + s * h.v_stride;
        for (size_t i = 0; i < h.values; ++i) y[i] += c * v[i];
      }
      for (size_t k = 0; begin != 0 && k < h.keys; ++k) {
        const float c = q[k] * power / root;
        for (size_t i = 0; i < h.values; ++i) y[i] += c * state[k * h.values + i];
      }
      const float inner = std::min(std::max(sum, 1.0f), h.limit);
      const float divisor = std::max(inner, bound);
      for (size_t i = 0; i < h.values; ++i) y[i] /= divisor;
    }
    // Nobody reads what an unfinished chunk would leave.
    if (end - begin < chunk) break;
    for (size_t i = 0; i < h.keys * h.values; ++i) state[i] *= power;
    float w = 1;
    for (size_t t = end; t-- > begin; w *= h.decay) {
      const float* k = h.k + t * h.q_stride;
      const float* v = h.v + t * h.v_stride;
      for (size_t j = 0; j < h.keys; ++j) {
        const float c = k[j] * w;
        for (size_t i = 0; i < h.values; ++i) state[j * h.values + i] += c * v[i];
      }
    }
    bound = largest_column(state, h.keys, h.values, decays);
  }
}

}  // namespace oxbow
