// What every shader includes first. Binding 0 has the values of the dispatch (runtime/device/vulkan/wrapper/step.h); tensors follow.
//
// int8 is read and written as words of four codes: rows start at multiples of 16 bytes, and no device needs 8-bit
// storage. Tensors are indexed with word_at() and four_at() only. The scales of a tensor lie behind its elements in the same binding, which may be declared twice, as uint[]
// and as float[]. Sums that must have the CPU's bits are declared `precise`: no multiply-add is fused then.

// A shader that tells the host something writes it into its values, and defines this as nothing.
#ifndef VALUES_ACCESS
#define VALUES_ACCESS readonly
#endif
layout(std430, binding = 0) VALUES_ACCESS buffer DispatchValues {
  uint groups[3];
  uint rests;
  uint values[28];
} dispatch;

// Behind the last id a shader's own constants can have. False on devices that bind a tensor wherever it lies.
layout(constant_id = 32) const bool has_rests = false;

// How far behind the beginning of a binding its tensor begins, in units of 64 bytes.
uint rest_of(uint binding) { return has_rests ? (dispatch.rests >> (2u * binding - 2u)) & 3u : 0u; }
// Where a word of the tensor at a binding is, and where four words. Every access to a tensor goes through one of them.
uint word_at(uint binding, uint word) { return rest_of(binding) * 16u + word; }
uint four_at(uint binding, uint four) { return rest_of(binding) * 4u + four; }

// The number of this group, as spread_groups() of runtime/device/vulkan/vulkan_op.h cut them. May be beyond the last.
uint group_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// Code i, 0 to 3, of a word.
int code_of(uint word, uint i) { return bitfieldExtract(int(word), int(8u * i), 8); }

vec4 codes_of(uint word) {
  return vec4(code_of(word, 0u), code_of(word, 1u), code_of(word, 2u), code_of(word, 3u));
}

// As combine_sums() of runtime/base/math.h: the lanes of a sum folded in its order.
float combine_sums(float s[8]) {
  precise float sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  return sum;
}
