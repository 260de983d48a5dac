// AVX-VNNI: int4_avx.h, compiled for it.

#include "ops/linear/int4_avx.h"

namespace oxbow {

void linear_i8_i4_f32_avx_vnni(const LinearSlice<int8_t, I4Block>& s) { int4_linear(s); }
void linear_i8_i4min_f32_avx_vnni(const LinearSlice<int8_t, I4MinBlock>& s) { int4_linear(s); }

}  // namespace oxbow
