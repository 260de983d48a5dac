#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// One thread for each channel, row after row, by the rules of ops/scan/generic.h.
//
// Values: channels, rows, whether the first row is the first of its stream, the position of the first row, the place of
// the oldest row of the past, and how many it holds.

layout(constant_id = 0) const uint rule = 0;
layout(constant_id = 1) const uint width = 1;
layout(constant_id = 2) const uint depth = 0;
layout(constant_id = 3) const uint window = 1;
layout(constant_id = 4) const uint last_position = 0;
layout(std430, binding = 1) buffer State0 { float state0[]; };
layout(std430, binding = 2) buffer State1 { float state1[]; };
layout(std430, binding = 3) buffer State2 { float state2[]; };
layout(std430, binding = 4) writeonly buffer Y0 { float y0[]; };
layout(std430, binding = 5) writeonly buffer Y1 { float y1[]; };
layout(std430, binding = 6) writeonly buffer Y2 { float y2[]; };
layout(std430, binding = 7) readonly buffer In0 { float in0[]; };
layout(std430, binding = 8) readonly buffer In1 { float in1[]; };
layout(std430, binding = 9) readonly buffer In2 { float in2[]; };
layout(std430, binding = 10) readonly buffer In3 { float in3[]; };
layout(std430, binding = 11) readonly buffer In4 { float in4[]; };
layout(std430, binding = 12) readonly buffer In5 { float in5[]; };
layout(std430, binding = 13) readonly buffer PastKeys { float past_keys[]; };
layout(std430, binding = 14) readonly buffer PastValues { float past_values[]; };

// The channel of this thread.
uint c;

float larger(float a, float b) { return a > b ? a : b; }

float log_sigmoid(float x) {
  precise float sum = (x < 0.0 ? x : 0.0) - log1p_f32(exp_f32(-abs_f32(x)));
  return sum;
}

float exp_of_difference(float a, float b) {
  precise float difference = a - b;
  return exp_f32(difference);
}

// A row joins the sums, told as multiples of e^most.
void join_average(float key, float value) {
  precise float old = state2[word_at(3u, c)] + in2[word_at(9u, c)];
  const float top = larger(old, key);
  const float keep = exp_of_difference(old, top), add = exp_of_difference(key, top);
  precise float kept_above = keep * state0[word_at(1u, c)];
  precise float more = add * value;
  precise float above = kept_above + more;
  precise float kept_below = keep * state1[word_at(2u, c)];
  precise float below = kept_below + add;
  state0[word_at(1u, c)] = above;
  state1[word_at(2u, c)] = below;
  state2[word_at(3u, c)] = top;
}

void average(uint row) {
  const float key = in0[word_at(7u, row * width + c)], value = in1[word_at(8u, row * width + c)], most = state2[word_at(3u, c)];
  precise float own = key + in3[word_at(10u, c)];
  const float top = larger(most, own);
  const float keep = exp_of_difference(most, top), add = exp_of_difference(own, top);
  precise float kept_above = keep * state0[word_at(1u, c)];
  precise float more = add * value;
  precise float above = kept_above + more;
  precise float kept_below = keep * state1[word_at(2u, c)];
  precise float below = kept_below + add;
  y0[word_at(4u, row * width + c)] = div_f32(above, below);
  join_average(key, value);
}

// Row `at` of [ past | run ]; `held` rows are past.
uint past_place(uint at) { return (dispatch.values[4] + at) % max(window - 1u, 1u) * width + c; }
float key_at(uint at, uint held) {
  return at < held ? past_keys[word_at(13u, past_place(at))] : in0[word_at(7u, (at - held) * width + c)];
}
float value_at(uint at, uint held) {
  return at < held ? past_values[word_at(14u, past_place(at))] : in1[word_at(8u, (at - held) * width + c)];
}

void windowed_average(uint row) {
  const uint held = dispatch.values[5], own = held + row;
  const uint oldest = own + 1u > window ? own + 1u - window : 0u;
  const uint bonus = min(dispatch.values[3] + row, last_position) * window + window - 1u - own;
  const float most = state2[word_at(3u, c)];
  float top = most;
  for (uint at = oldest; at <= own; ++at) {
    precise float exponent = key_at(at, held) + in3[word_at(10u, bonus + at)];
    top = larger(top, exponent);
  }
  const float keep = exp_of_difference(most, top);
  precise float above = keep * state0[word_at(1u, c)];
  precise float below = keep * state1[word_at(2u, c)];
  for (uint at = oldest; at <= own; ++at) {
    precise float exponent = key_at(at, held) + in3[word_at(10u, bonus + at)];
    const float add = exp_of_difference(exponent, top);
    precise float more = add * value_at(at, held);
    above = above + more;
    below = below + add;
  }
  y0[word_at(4u, row * width + c)] = div_f32(above, below);
  // It is out of the next row's window.
  if (own - oldest + 1u == window) join_average(key_at(oldest, held), value_at(oldest, held));
}

void selective(uint row) {
  const float x = in0[word_at(7u, row * width + c)], dt = in1[word_at(8u, row * width + c)];
  precise float sum = 0.0;
  for (uint n = 0u; n < depth; ++n) {
    const uint at = n * width + c;
    precise float exponent = dt * in4[word_at(11u, at)];
    precise float kept = exp_f32(exponent) * state0[word_at(1u, at)];
    precise float written = dt * in2[word_at(9u, row * depth + n)];
    written = written * x;
    precise float next = kept + written;
    state0[word_at(1u, at)] = next;
    precise float product = in3[word_at(10u, row * depth + n)] * next;
    sum = sum + product;
  }
  precise float skipped = in5[word_at(12u, c)] * x;
  precise float y = sum + skipped;
  y0[word_at(4u, row * width + c)] = y;
}

void gated_linear(uint row) {
  precise float entering = in1[word_at(8u, row * width + c)] * in0[word_at(7u, row * width + c)];
  if (row == 0u && dispatch.values[2] != 0u) {
    state0[word_at(1u, c)] = entering;
    y0[word_at(4u, c)] = entering;
    return;
  }
  precise float log_a = in3[word_at(10u, c)] * in2[word_at(9u, row * width + c)];
  precise float twice = 2.0 * log_a;
  precise float rest = 1.0 - exp_f32(twice);
  const float factor = sqrt_f32(rest < 0.0 ? 0.0 : rest);
  precise float kept = exp_f32(log_a) * state0[word_at(1u, c)];
  precise float added = factor * entering;
  precise float next = kept + added;
  state0[word_at(1u, c)] = next;
  y0[word_at(4u, row * width + c)] = next;
}

void exponential_gates(uint row) {
  const uint at = row * width + c;
  precise float old = log_sigmoid(in1[word_at(8u, at)]) + state0[word_at(1u, c)];
  const float top = larger(old, in0[word_at(7u, at)]);
  y0[word_at(4u, at)] = exp_of_difference(old, top);
  y1[word_at(5u, at)] = exp_of_difference(in0[word_at(7u, at)], top);
  y2[word_at(6u, at)] = exp_f32(-top);
  state0[word_at(1u, c)] = top;
}

void main() {
  c = element_index();
  if (c >= dispatch.values[0]) return;
  for (uint row = 0u; row < dispatch.values[1]; ++row) {
    if (rule == 0u && window == 1u) {
      average(row);
    } else if (rule == 0u) {
      windowed_average(row);
    } else if (rule == 1u) {
      selective(row);
    } else if (rule == 2u) {
      gated_linear(row);
    } else {
      exponential_gates(row);
    }
  }
}
