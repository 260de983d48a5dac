// dot_i8(a, b): the sum of the products of four int8 codes each, exact.

#ifdef OXB_INT_DOT
#extension GL_EXT_spirv_intrinsics : require
// OpSDotKHR of two words; the last operand says that they hold four codes each.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(uint a, uint b, spirv_literal int packed_format);
int dot_i8(uint a, uint b) { return packed_dot(a, b, 0); }
#else
int dot_i8(uint a, uint b) {
  return code_of(a, 0u) * code_of(b, 0u) + code_of(a, 1u) * code_of(b, 1u) + code_of(a, 2u) * code_of(b, 2u) +
         code_of(a, 3u) * code_of(b, 3u);
}
#endif
