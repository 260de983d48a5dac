// As ops/activate/generic.h; after ops/common/vulkan/math.glsl.

// The values of Activation in ops/activate/activate.h.
const uint activation_relu = 1u;
const uint activation_gelu = 2u;
const uint activation_gelu_tanh = 3u;
const uint activation_silu = 4u;
const uint activation_sigmoid = 5u;
const uint activation_tanh = 6u;
const uint activation_gelu_quick = 7u;
const uint activation_clamp = 8u;
const uint activation_relu_squared = 9u;
const uint activation_elu_plus_one = 10u;
const uint activation_exp = 11u;
const uint activation_softplus = 12u;
const uint activation_soft_cap = 13u;

float gelu(float x) {
  precise float scaled = x * 0.707106781;
  const float tail = erfc_abs_f32(scaled);
  precise float above = 2.0 - tail;
  precise float result = 0.5 * x * (x < 0.0 ? tail : above);
  return result;
}

float times_sigmoid(float x, float argument) {
  precise float result = x * sigmoid_f32(argument);
  return result;
}

float gelu_tanh(float x) {
  precise float argument = 1.59576912 * x * (1.0 + 0.044715 * (x * x));
  return times_sigmoid(x, argument);
}

float gelu_quick(float x) {
  precise float argument = 1.702 * x;
  return times_sigmoid(x, argument);
}

float elu_plus_one(float x) {
  precise float above = x + 1.0;
  return x > 0.0 ? above : exp_f32(x);
}

float softplus(float x) {
  const float above = x < 0.0 ? 0.0 : x;
  precise float result = above + log1p_f32(exp_f32(-abs_f32(x)));
  return result;
}

float soft_cap(float x, float limit) {
  precise float result = limit * tanh_f32(div_f32(x, limit));
  return result;
}

// `limit` is that of clamp and soft_cap.
float activate(uint activation, float limit, float x) {
  switch (activation) {
    case activation_relu: return x < 0.0 ? 0.0 : x;
    case activation_gelu: return gelu(x);
    case activation_gelu_tanh: return gelu_tanh(x);
    case activation_silu: return times_sigmoid(x, x);
    case activation_sigmoid: return sigmoid_f32(x);
    case activation_tanh: return tanh_f32(x);
    case activation_gelu_quick: return gelu_quick(x);
    case activation_clamp: {
      const float v = x > limit ? limit : x;
      return v < -limit ? -limit : v;
    }
    case activation_relu_squared: {
      const float v = x < 0.0 ? 0.0 : x;
      precise float square = v * v;
      return square;
    }
    case activation_elu_plus_one: return elu_plus_one(x);
    case activation_exp: return exp_f32(x);
    case activation_softplus: return softplus(x);
    case activation_soft_cap: return soft_cap(x, limit);
    default: return x;
  }
}
