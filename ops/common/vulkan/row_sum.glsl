// A sum over a row in the order of sum_f32() of runtime/base/math.h: eight threads have a lane each, the others fetch.
// After row_output.glsl; the includer has declared x.

const uint staged_columns = 512u;
shared float staged[staged_columns];
shared float lanes[8];

// Of x, or of (x - mean)^2.
float row_sum(uint row, bool squares, float mean) {
  const uint thread = gl_LocalInvocationID.x;
  precise float sum = 0.0;
  for (uint begin = 0u; begin < width; begin += staged_columns) {
    const uint count = min(staged_columns, width - begin);
    for (uint i = thread; i < count; i += threads) {
      precise float value = x[word_at(2u, row * width + begin + i)];
      if (squares) {
        precise float difference = value - mean;
        value = difference * difference;
      }
      staged[i] = value;
    }
    barrier();
    if (thread < 8u) {
      for (uint i = thread; i < count; i += 8u) sum = sum + staged[i];
    }
    barrier();
  }
  if (thread < 8u) lanes[thread] = sum;
  barrier();
  const float result =
      combine_sums(float[8](lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]));
  barrier();
  return result;
}
