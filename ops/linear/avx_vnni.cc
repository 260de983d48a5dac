// AVX-VNNI: sixteen registers of 256 bits.

#include "ops/linear/vnni.h"

namespace oxbow {
namespace {

struct Ymm {
  using Vector = __m256i;
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kGroups = 1;
  static constexpr size_t kTileRows = 6;

  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector fill(int32_t value) { return _mm256_set1_epi32(value); }
  static Vector load(const __m256i* sums) { return _mm256_load_si256(sums); }
  static void store(__m256i* sums, Vector v) { _mm256_store_si256(sums, v); }

  static Vector add_products(Vector sums, Vector weights, Vector columns) {
    return _mm256_dpbusd_avx_epi32(sums, weights, columns);
  }
  static Vector groups_of(const int8_t* codes, size_t) {
    const auto signed_codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    return _mm256_xor_si256(signed_codes, _mm256_set1_epi8(-128));
  }
  static Vector blocks_of(const int8_t* const* codes, size_t at) {
    return groups_of(codes[0] + at, 1);
  }
  static Vector column_of(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof(four));
    return _mm256_set1_epi32(four);
  }
  static Vector columns_of(const int8_t* x, size_t) { return column_of(x); }
  static __m256i sum_groups(Vector sums) { return sums; }
};

}  // namespace

void linear_i8_i8_f32_avx_vnni(const LinearSlice<int8_t, int8_t>& s) { VnniLinear<Ymm>::run(s); }

}  // namespace oxbow
