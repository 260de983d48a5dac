// As ops/common/row_output.h: rows written as float or int8, one group of threads for each row. The includer defines
// `float value_at(uint row, uint column)`; for int8 it is asked twice, once to find the scale. Values: rows. The includer's own
// constants have the ids from 5 on.

#extension GL_EXT_control_flow_attributes : require

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

// What is turned of the row, as hadamard_row() of runtime/base/hadamard.h: all blocks of rows that are not too wide, or one.
const uint most_kept = 2048u;
const bool keeps_row = width <= most_kept;
const uint turned_room = hadamard == 0u ? 1u : keeps_row ? width : hadamard;
// One more after every eight, so that threads meet different banks.
shared float turned_row[turned_room + turned_room / 8u + 1u];
uint turned_slot(uint i) { return i + i / 8u; }
// Where the block that begins at a column is kept.
uint turned_base(uint first) { return keeps_row ? first : 0u; }

// All threads together: eight elements each take three steps in registers, in the order of single ones.
void turn_block(uint row, uint first) {
  const uint thread = gl_LocalInvocationID.x, base = turned_base(first);
  barrier();
  for (uint i = thread; i < hadamard; i += threads) turned_row[turned_slot(base + i)] = value_at(row, first + i);
  barrier();
  for (uint h = 1u; h < hadamard; h *= 8u) {
    const uint points = min(8u, hadamard / h);
    for (uint g = thread; g < hadamard / points; g += threads) {
      const uint from = base + g / h * (points * h) + g % h;
      precise float v[8];
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        v[k] = 0.0;
        if (k < points) v[k] = turned_row[turned_slot(from + k * h)];
      }
      [[unroll]] for (uint apart = 1u; apart < 8u; apart *= 2u) {
        if (apart < points) {
          [[unroll]] for (uint k = 0u; k < 8u; ++k) {
            if ((k & apart) != 0u) continue;
            precise float sum = v[k] + v[k + apart];
            precise float difference = v[k] - v[k + apart];
            v[k] = sum;
            v[k + apart] = difference;
          }
        }
      }
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        if (k < points) turned_row[turned_slot(from + k * h)] = v[k];
      }
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
    for (uint i = thread; i < hadamard; i += threads) {
      most = max(most, magnitude_of(turned_row[turned_slot(turned_base(first) + i)]));
    }
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
    // Rows that are kept were turned to find their scales.
    if (!keeps_row || static_scale != 0.0) turn_block(row, first);
    const float inverse = uintBitsToFloat(groups_of_row[first / group_width]);
    for (uint word = gl_LocalInvocationID.x; word < hadamard / 4u; word += threads) {
      uint codes = 0u;
      const uint from = turned_base(first) + word * 4u;
      for (uint j = 0u; j < 4u; ++j) codes |= code_for(turned_row[turned_slot(from + j)], inverse) << (8u * j);
      y_words[word_at(1u, (row * width + first) / 4u + word)] = codes;
    }
  }
}

void write_turned_f32(uint row) {
  for (uint first = 0u; first < width; first += hadamard) {
    turn_block(row, first);
    for (uint i = gl_LocalInvocationID.x; i < hadamard; i += threads) {
      y[word_at(1u, row * width + first + i)] = turned_row[turned_slot(turned_base(first) + i)];
    }
  }
}

// Without a division where there is one group.
uint group_of(uint column) { return scale_groups == 1u ? 0u : column / (width / scale_groups); }

void find_absmax(uint row) {
  const uint thread = gl_LocalInvocationID.x;
  for (uint g = thread; g < scale_groups; g += threads) groups_of_row[g] = 0u;
  barrier();
  // One atomic step for the columns of a group that come one after the other here.
  uint group = 0u, most = 0u;
  for (uint column = thread; column < width; column += threads) {
    if (group_of(column) != group) {
      atomicMax(groups_of_row[group], most);
      group = group_of(column);
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
  for (uint word = gl_LocalInvocationID.x; word < row_words; word += threads) {
    uint codes = 0u;
    for (uint j = 0u; j < 4u; ++j) {
      const uint column = word * 4u + j;
      if (column >= width) break;
      const float inverse = uintBitsToFloat(groups_of_row[group_of(column)]);
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
