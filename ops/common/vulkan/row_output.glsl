// As ops/common/row_output.h: rows written as float or int8, one group of threads for each row. The includer defines
// `float value_at(uint row, uint column)`; for int8 it is asked twice, once to find the scale. Values: rows. The includer's own
// constants have the ids from 5 on.

#include "ops/common/vulkan/math.glsl"

const uint threads = 64u;
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint width = 1;
// 0: the output is float.
layout(constant_id = 1) const uint scale_groups = 0;
// Where the scales begin, in words.
layout(constant_id = 2) const uint y_scales = 0;
// 0: each group of elements has its own.
layout(constant_id = 3) const float static_scale = 0;
// 0: rows are not turned.
layout(constant_id = 4) const uint hadamard = 0;
layout(std430, binding = 1) writeonly buffer Y { float y[]; };
layout(std430, binding = 1) writeonly buffer YWords { uint y_words[]; };

float value_at(uint row, uint column);
void find_scales(uint row);

// kMaxRowScaleGroups of ops/common/vulkan_rows.h. First the largest magnitudes, as bits, which have the order of the
// numbers; then the inverse scales.
shared uint groups_of_row[256];

// As quantize_value() of runtime/base/quantize.h; the code is in the low byte.
uint code_for(float x, float inverse) {
  precise float v = x * inverse;
  v = v > 127.0 ? 127.0 : v;
  v = v < -127.0 ? -127.0 : v;
  v = is_nan(v) ? 0.0 : v;
  precise float rounded = v + round_magic;
  return (floatBitsToUint(rounded) - floatBitsToUint(round_magic)) & 255u;
}

// The block of the row that is being turned, as hadamard_row() of runtime/base/hadamard.h: kMaxHadamardBlock.
shared float hadamard_block[512];

// All threads together.
void turn_block(uint row, uint first) {
  const uint thread = gl_LocalInvocationID.x;
  barrier();
  for (uint i = thread; i < hadamard; i += threads) hadamard_block[i] = value_at(row, first + i);
  barrier();
  for (uint h = 1u; h < hadamard; h *= 2u) {
    for (uint pair = thread; pair < hadamard / 2u; pair += threads) {
      const uint i = pair / h * 2u * h + pair % h;
      precise float sum = hadamard_block[i] + hadamard_block[i + h];
      precise float difference = hadamard_block[i] - hadamard_block[i + h];
      hadamard_block[i] = sum;
      hadamard_block[i + h] = difference;
    }
    barrier();
  }
}

uint magnitude_of(float x) {
  const uint magnitude = floatBitsToUint(x) & 0x7fffffffu;
  return magnitude <= 0x7f800000u ? magnitude : 0u;
}

// A block lies within one group.
void find_turned_absmax(uint row) {
  const uint thread = gl_LocalInvocationID.x;
  const uint group_width = width / scale_groups;
  for (uint g = thread; g < scale_groups; g += threads) groups_of_row[g] = 0u;
  for (uint first = 0u; first < width; first += hadamard) {
    turn_block(row, first);
    uint most = 0u;
    for (uint i = thread; i < hadamard; i += threads) most = max(most, magnitude_of(hadamard_block[i]));
    atomicMax(groups_of_row[first / group_width], most);
  }
  barrier();
}

// Widths are multiples of 16: there is no padding.
void write_turned_i8(uint row) {
  if (static_scale == 0.0) find_turned_absmax(row);
  find_scales(row);
  const uint group_width = width / scale_groups;
  for (uint first = 0u; first < width; first += hadamard) {
    turn_block(row, first);
    const float inverse = uintBitsToFloat(groups_of_row[first / group_width]);
    for (uint word = gl_LocalInvocationID.x; word < hadamard / 4u; word += threads) {
      uint codes = 0u;
      for (uint j = 0u; j < 4u; ++j) codes |= code_for(hadamard_block[word * 4u + j], inverse) << (8u * j);
      y_words[word_at(1u, (row * width + first) / 4u + word)] = codes;
    }
  }
}

void write_turned_f32(uint row) {
  for (uint first = 0u; first < width; first += hadamard) {
    turn_block(row, first);
    for (uint i = gl_LocalInvocationID.x; i < hadamard; i += threads) {
      y[word_at(1u, row * width + first + i)] = hadamard_block[i];
    }
  }
}

void find_absmax(uint row) {
  const uint thread = gl_LocalInvocationID.x;
  const uint group_width = width / scale_groups;
  for (uint g = thread; g < scale_groups; g += threads) groups_of_row[g] = 0u;
  barrier();
  // One atomic step for the columns of a group that come one after the other here.
  uint group = 0u, most = 0u;
  for (uint column = thread; column < width; column += threads) {
    if (column / group_width != group) {
      atomicMax(groups_of_row[group], most);
      group = column / group_width;
      most = 0u;
    }
    const uint magnitude = floatBitsToUint(value_at(row, column)) & 0x7fffffffu;
    most = magnitude > most && magnitude <= 0x7f800000u ? magnitude : most;
  }
  atomicMax(groups_of_row[group], most);
  barrier();
}

// As quant_scale().
void find_scales(uint row) {
  for (uint g = gl_LocalInvocationID.x; g < scale_groups; g += threads) {
    float scale = static_scale, inverse = 0.0;
    if (static_scale != 0.0) {
      inverse = div_f32(1.0, static_scale);
    } else {
      // From 2^-100 on, and no infinity.
      const uint absmax = min(groups_of_row[g], 0x7f7fffffu);
      if (absmax >= 0x0d800000u) {
        scale = div_f32(uintBitsToFloat(absmax), 127.0);
        inverse = div_f32(127.0, uintBitsToFloat(absmax));
      }
    }
    y[word_at(1u, y_scales + row * scale_groups + g)] = scale;
    groups_of_row[g] = floatBitsToUint(inverse);
  }
  barrier();
}

void write_i8(uint row) {
  if (static_scale == 0.0) find_absmax(row);
  find_scales(row);
  const uint row_words = (width + 15u) / 16u * 4u;
  const uint group_width = width / scale_groups;
  for (uint word = gl_LocalInvocationID.x; word < row_words; word += threads) {
    uint codes = 0u;
    for (uint j = 0u; j < 4u; ++j) {
      const uint column = word * 4u + j;
      if (column >= width) break;
      const float inverse = uintBitsToFloat(groups_of_row[column / group_width]);
      codes |= code_for(value_at(row, column), inverse) << (8u * j);
    }
    y_words[word_at(1u, row * row_words + word)] = codes;
  }
}

void write_row(uint row) {
  if (hadamard != 0u) {
    if (scale_groups != 0u) {
      write_turned_i8(row);
    } else {
      write_turned_f32(row);
    }
    return;
  }
  if (scale_groups != 0u) {
    write_i8(row);
    return;
  }
  for (uint column = gl_LocalInvocationID.x; column < width; column += threads) {
    y[word_at(1u, row * width + column)] = value_at(row, column);
  }
}
