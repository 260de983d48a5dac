// What every shader includes first. Binding 0 has the values of the dispatch (runtime/device/vulkan/wrapper/step.h); tensors follow.
//
// int8 is read and written as words of four codes: rows start at multiples of 16 bytes, and no device needs 8-bit
// storage. The scales of a tensor lie behind its elements in the same binding, which may be declared twice, as uint[]
// and as float[]. Sums that must have the CPU's bits are declared `precise`: no multiply-add is fused then.

// A shader that tells the host something writes it into its values, and defines this as nothing.
#ifndef VALUES_ACCESS
#define VALUES_ACCESS readonly
#endif
layout(std430, binding = 0) VALUES_ACCESS buffer DispatchValues {
  uvec4 groups;
  uint values[28];
} dispatch;

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
