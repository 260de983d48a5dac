// runtime/base/math.h for shaders: the same steps in the same order. Vulkan rounds +, - and * correctly, but neither
// division nor roots nor its own exp, so those are here, and the bits are the CPU's on every device that rounds to nearest;
// but for subnormal numbers, which a device may flush.

const float round_magic = 12582912.0;

// By its bits: compilers for devices may take it that no value is NaN.
bool is_nan(float v) { return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u; }

float abs_f32(float v) { return uintBitsToFloat(floatBitsToUint(v) & 0x7fffffffu); }

// a / b, rounded to nearest: long division of the mantissas, in digits of 8, 8 and 7 bits. No quotient lies half-way
// between two floats. Zeros, subnormals, infinities and NaN are left to the device, as are results beyond the normal ones.
float div_f32(float a, float b) {
  const uint a_bits = floatBitsToUint(a), b_bits = floatBitsToUint(b);
  const uint a_exponent = (a_bits >> 23) & 255u, b_exponent = (b_bits >> 23) & 255u;
  const uint divisor = (b_bits & 0x7fffffu) | 0x800000u;
  uint rest = (a_bits & 0x7fffffu) | 0x800000u;
  int exponent = int(a_exponent) - int(b_exponent) + 127;
  if (rest < divisor) {
    rest <<= 1;
    exponent -= 1;
  }
  if (a_exponent - 1u >= 254u || b_exponent - 1u >= 254u || exponent < 1 || exponent > 254) return a / b;
  rest -= divisor;
  uint quotient = 0u;
  for (uint digit = 0u; digit < 3u; ++digit) {
    const uint bits = digit < 2u ? 8u : 7u;
    rest <<= bits;
    const uint next = rest / divisor;
    rest -= next * divisor;
    quotient = (quotient << bits) | next;
  }
  quotient += 2u * rest > divisor ? 1u : 0u;
  return uintBitsToFloat(((a_bits ^ b_bits) & 0x80000000u) | ((uint(exponent) << 23) + quotient));
}

// The square root, rounded to nearest: one binary digit after the other. Zeros, subnormals, infinities, NaN and negative
// numbers are left to the device.
float sqrt_f32(float x) {
  const uint bits = floatBitsToUint(x);
  if (bits - 0x800000u >= 0x7f000000u) return sqrt(x);
  int exponent = int(bits >> 23) - 127;
  uint mantissa = (bits & 0x7fffffu) | 0x800000u;
  if ((exponent & 1) != 0) {
    mantissa <<= 1;
    exponent -= 1;
  }
  // Of mantissa * 2^23, from the top, two bits for each digit.
  uint root = 0u, rest = 0u;
  for (int i = 23; i >= 0; --i) {
    const int shift = 2 * i - 23;
    const uint pair = shift >= 0 ? (mantissa >> uint(shift)) & 3u : shift == -1 ? (mantissa << 1) & 3u : 0u;
    rest = (rest << 2) | pair;
    const uint trial = (root << 2) | 1u;
    const bool one = rest >= trial;
    rest -= one ? trial : 0u;
    root = (root << 1) | (one ? 1u : 0u);
  }
  root += rest > root ? 1u : 0u;
  return uintBitsToFloat((uint(exponent / 2 + 127) << 23) + (root - 0x800000u));
}

float exp_f32(float x) {
  const float lowest = -87.33654, highest = 89.0;
  float v = x > highest ? highest : x;
  v = v < lowest ? lowest : v;
  precise float shifted = v * 1.44269504088896341 + round_magic;
  precise float n = shifted - round_magic;
  precise float r = (v - n * 0.693359375) - n * -2.12194440e-4;
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  precise float e = (p * (r * r) + r) + 1.0;
  const int exponent = int(floatBitsToUint(shifted) - floatBitsToUint(round_magic));
  const uint half_exponent = uint(exponent >> 1);
  const uint rest = uint(exponent) - half_exponent;
  precise float scaled =
      e * uintBitsToFloat((half_exponent + 127u) << 23) * uintBitsToFloat((rest + 127u) << 23);
  if (is_nan(x)) return x;
  return x < lowest ? 0.0 : scaled;
}

// By its bits, for infinities and what is not normal: devices may flush the one and take the other for what they like.
float log_f32(float x) {
  const uint bits = floatBitsToUint(x), shifted = bits - 0x3f3504f3u;
  const float n = float(int(shifted) >> 23);
  precise float f = uintBitsToFloat((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
  precise float z = f * f;
  precise float p = 7.0376836292e-2;
  p = p * f - 1.1514610310e-1;
  p = p * f + 1.1676998740e-1;
  p = p * f - 1.2420140846e-1;
  p = p * f + 1.4249322787e-1;
  p = p * f - 1.6668057665e-1;
  p = p * f + 2.0000714765e-1;
  p = p * f - 2.4999993993e-1;
  p = p * f + 3.3333331174e-1;
  precise float tail = (p * f * z + n * -2.12194440e-4) - 0.5 * z;
  precise float result = (f + tail) + n * 0.693359375;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u || bits == 0x7f800000u) return x;
  if (magnitude < 0x800000u) return uintBitsToFloat(bits != magnitude && magnitude != 0u ? 0x7fc00000u : 0xff800000u);
  return bits != magnitude ? uintBitsToFloat(0x7fc00000u) : result;
}

// Of x in [0, 1].
float log1p_f32(float x) {
  precise float sum = 1.0 + x;
  precise float kept = sum - 1.0;
  precise float scaled = log_f32(sum) * div_f32(x, kept == 0.0 ? 1.0 : kept);
  // NaN fails both.
  return kept == 0.0 ? x : scaled;
}

float sigmoid_f32(float x) {
  precise float below = 1.0 + exp_f32(-x);
  return div_f32(1.0, below);
}

float tanh_f32(float x) {
  const float z = abs_f32(x);
  precise float below = exp_f32(2.0 * z) + 1.0;
  precise float far = 1.0 - div_f32(2.0, below);
  precise float square = x * x;
  precise float p = -5.70498872745e-3;
  p = p * square + 2.06390887954e-2;
  p = p * square - 5.37397155531e-2;
  p = p * square + 1.33314422036e-1;
  p = p * square - 3.33332819422e-1;
  precise float near = p * square * z + z;
  const float result = z < 0.625 ? near : far;
  return x < 0.0 ? -result : result;
}

float erfc_abs_f32(float x) {
  const float z = abs_f32(x);
  precise float below = 1.0 + 0.3275911 * z;
  const float t = div_f32(1.0, below);
  precise float p = 1.061405429;
  p = p * t - 1.453152027;
  p = p * t + 1.421413741;
  p = p * t - 0.284496736;
  p = p * t + 0.254829592;
  precise float square = z * z;
  precise float result = p * t * exp_f32(-square);
  return result;
}
