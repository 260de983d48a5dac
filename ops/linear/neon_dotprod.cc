#include "ops/linear/dotprod.h"
#include "ops/linear/linear.h"

namespace oxbow {

void linear_i8_i8_f32_neon_dotprod(const LinearSlice<int8_t, int8_t>& s) { linear_i8<Dotprod>(s); }

}  // namespace oxbow
