// AVX512-VNNI: 32 registers of 512 bits, each of two blocks for many rows, of two groups of one block, as
// they lie in memory, for a few.

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 finds fault with its own header, which leaves vectors undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "ops/linear/vnni.h"

namespace oxbow {
namespace {

struct Zmm {
  using Vector = __m512i;
  static constexpr size_t kBlocks = 2;
  static constexpr size_t kGroups = 2;
  static constexpr size_t kTileRows = 12;

  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector fill(int32_t value) { return _mm512_set1_epi32(value); }
  static Vector load(const __m256i* sums) { return _mm512_load_si512(sums); }
  static void store(__m256i* sums, Vector v) { _mm512_store_si512(sums, v); }

  static Vector add_products(Vector sums, Vector weights, Vector columns) {
    return _mm512_dpbusd_epi32(sums, weights, columns);
  }
  /// Without a second group, what stands for it meets columns of zeros.
  static Vector groups_of(const int8_t* codes, size_t count) {
    return to_unsigned(count == 2 ? _mm512_loadu_si512(codes)
                                  : _mm512_castsi256_si512(half_of(codes)));
  }
  static Vector blocks_of(const int8_t* const* codes, size_t at) {
    return to_unsigned(_mm512_inserti64x4(_mm512_castsi256_si512(half_of(codes[0] + at)),
                                          half_of(codes[1] + at), 1));
  }
  static Vector column_of(const int8_t* x) { return _mm512_set1_epi32(four_of(x)); }
  static Vector columns_of(const int8_t* x, size_t count) {
    constexpr __mmask16 kFirst = 0x00FF, kSecond = 0xFF00;
    if (count == 1) return _mm512_maskz_set1_epi32(kFirst, four_of(x));
    return _mm512_mask_set1_epi32(column_of(x), kSecond, four_of(x + kBlockColumns));
  }
  static __m256i sum_groups(Vector sums) {
    return _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  }

 private:
  static __m256i half_of(const int8_t* codes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  }
  static Vector to_unsigned(Vector codes) {
    return _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
  }
  static int32_t four_of(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof(four));
    return four;
  }
};

}  // namespace

void linear_i8_i8_f32_avx512_vnni(const LinearSlice<int8_t, int8_t>& s) { VnniLinear<Zmm>::run(s); }

}  // namespace oxbow
