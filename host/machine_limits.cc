// Loops that do one thing as fast as a core can. Those of products are written in assembly: a compiler moves sums to memory
// when all registers are in use.

#include "host/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/cpu.h"

namespace oxbow {
namespace {

constexpr uint64_t kLeastBlock = uint64_t{64} << 10, kMostBlock = uint64_t{128} << 20;
/// Twelve sums at a time hide how long one takes. All are zeros: other numbers may be slower.
constexpr int kSums = 12;
/// Turns of a loop between two looks at the clock.
constexpr size_t kTurns = 20'000;
/// Of a block that is read, likewise.
constexpr size_t kMostPiece = size_t{2} << 20;
/// Shorter than the time that a system gives to another program.
constexpr double kSliceSeconds = 0.003;

// ---- Products -----------------------------------------------------------------------------------

// clang-format off
#define OXB_TWELVE(product) \
  product(0) product(1) product(2) product(3) product(4) product(5) \
  product(6) product(7) product(8) product(9) product(10) product(11)
#define OXB_LOOP(name, product) \
  void name(size_t turns) { \
    asm volatile(OXB_TWELVE(OXB_ZERO) OXB_ZERO(12) OXB_ZERO(13) \
                 "1:\n" OXB_TWELVE(product) OXB_NEXT \
                 : "+r"(turns) \
                 : \
                 : OXB_TWELVE(OXB_TOUCHED) OXB_REGISTER(12), OXB_REGISTER(13), OXB_REGISTER(15), "cc"); \
  }
#define OXB_TOUCHED(sum) OXB_REGISTER(sum),
// clang-format on

struct Products {
  Isa isa;
  void (*run)(size_t turns);
  /// Of one instruction, or of the few that make one sum longer.
  double macs;
};

#if defined(__x86_64__)

#define OXB_ZERO(sum) "vpxor %%xmm" #sum ", %%xmm" #sum ", %%xmm" #sum "\n"
#define OXB_NEXT "dec %0\n jnz 1b\n vzeroupper\n"
#define OXB_REGISTER(sum) "xmm" #sum
#define OXB_INT8(sum) \
  "vpmaddwd %%ymm12, %%ymm13, %%ymm15\n vpaddd %%ymm15, %%ymm" #sum ", %%ymm" #sum "\n"
#define OXB_FLOAT(sum) \
  "vmulps %%ymm12, %%ymm13, %%ymm15\n vaddps %%ymm15, %%ymm" #sum ", %%ymm" #sum "\n"
#define OXB_INT8_VNNI(sum) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" #sum "\n"
#define OXB_INT8_512(sum) "vpdpbusd %%zmm12, %%zmm13, %%zmm" #sum "\n"
#define OXB_FLOAT_512(sum) \
  "vmulps %%zmm12, %%zmm13, %%zmm15\n vaddps %%zmm15, %%zmm" #sum ", %%zmm" #sum "\n"

OXB_LOOP(int8_avx2, OXB_INT8)
OXB_LOOP(float_avx2, OXB_FLOAT)
OXB_LOOP(int8_avx_vnni, OXB_INT8_VNNI)
OXB_LOOP(int8_avx512_vnni, OXB_INT8_512)
OXB_LOOP(float_avx512, OXB_FLOAT_512)

/// The fastest first, as in the lists of kernels.
constexpr Products kInt8[] = {{Isa::kAvx512Vnni, int8_avx512_vnni, 64},
                              {Isa::kAvxVnni, int8_avx_vnni, 32},
                              {Isa::kAvx2, int8_avx2, 16}};
constexpr Products kFloat[] = {{Isa::kAvx512Vnni, float_avx512, 16}, {Isa::kAvx2, float_avx2, 8}};

#elif defined(__aarch64__)

#define OXB_ZERO(sum) "movi v" #sum ".4s, #0\n"
#define OXB_NEXT "subs %0, %0, #1\n b.ne 1b\n"
#define OXB_REGISTER(sum) "v" #sum
#define OXB_INT8(sum) \
  "smull v15.8h, v12.8b, v13.8b\n smlal2 v15.8h, v12.16b, v13.16b\n sadalp v" #sum ".4s, v15.8h\n"
#define OXB_FLOAT(sum) "fmul v15.4s, v12.4s, v13.4s\n fadd v" #sum ".4s, v" #sum ".4s, v15.4s\n"
// sdot and smmla of v12 and v13, by number: assemblers know them only when the whole file may have them.
#define OXB_INT8_DOTPROD(sum) ".inst 0x4e8d9580 + " #sum "\n"
#define OXB_INT8_I8MM(sum) ".inst 0x4e8da580 + " #sum "\n"

OXB_LOOP(int8_neon, OXB_INT8)
OXB_LOOP(float_neon, OXB_FLOAT)
OXB_LOOP(int8_dotprod, OXB_INT8_DOTPROD)
OXB_LOOP(int8_i8mm, OXB_INT8_I8MM)

constexpr Products kInt8[] = {{Isa::kNeonI8mm, int8_i8mm, 32},
                              {Isa::kNeonDotprod, int8_dotprod, 16},
                              {Isa::kNeon, int8_neon, 16}};
constexpr Products kFloat[] = {{Isa::kNeon, float_neon, 4}};

#else

constexpr std::span<const Products> kInt8, kFloat;

#endif

const Products* best_of(std::span<const Products> list) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [](const Products& one) { return cpu_supports(one.isa); });
  return found == list.end() ? nullptr : &*found;
}

// ---- Reading ------------------------------------------------------------------------------------

/// Four streams at distant places, which memory serves faster than one.
template <typename Word>
[[gnu::always_inline]] inline void read_words(const std::byte* data, size_t bytes) {
  const size_t part = bytes / 4 / sizeof(Word) * sizeof(Word);
  Word a = {}, b = {}, c = {}, d = {};
  const auto take = [](Word & sum, const std::byte* from) __attribute__((always_inline)) {
    Word word;
    std::memcpy(&word, from, sizeof(Word));
    sum ^= word;
  };
  for (size_t at = 0; at < part; at += sizeof(Word)) {
    take(a, data + at);
    take(b, data + at + part);
    take(c, data + at + 2 * part);
    take(d, data + at + 3 * part);
  }
  // Kept, or a compiler may leave out how it was made.
  a ^= b ^ c ^ d;
  asm volatile("" : : "m"(a));
}

using Word16 [[gnu::vector_size(16)]] = uint64_t;
void read_plain(const std::byte* data, size_t bytes) { read_words<Word16>(data, bytes); }

#if defined(__x86_64__)
using Word32 [[gnu::vector_size(32)]] = uint64_t;
[[gnu::target("avx2")]] void read_avx2(const std::byte* data, size_t bytes) {
  read_words<Word32>(data, bytes);
}
auto reader() { return cpu_supports(Isa::kAvx2) ? read_avx2 : read_plain; }
#else
auto reader() { return read_plain; }
#endif

// ---- Measuring ----------------------------------------------------------------------------------

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `work(thread)` tells how much it did: on all threads at once for about `seconds`, the best rate of a slice. Threads do
/// what they can until the slice is over, so that slow cores do not hold up fast ones.
double best_rate(uint32_t threads, double seconds, const std::function<double(size_t)>& work) {
  double best = 0.0;
  const auto start = std::chrono::steady_clock::now();
  do {
    std::vector<double> amounts(threads, 0.0);
    const auto begin = std::chrono::steady_clock::now();
    const auto slice = [&](size_t thread) {
      do {
        amounts[thread] += work(thread);
      } while (seconds_since(begin) < kSliceSeconds);
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(slice, i);
    slice(0);
    for (std::thread& other : others) other.join();
    const double past = seconds_since(begin);
    best = std::max(best, std::accumulate(amounts.begin(), amounts.end(), 0.0) / past);
  } while (seconds_since(start) < seconds);
  return best;
}

}  // namespace

MachineLimits machine_limits(uint32_t threads, uint64_t block_bytes, double seconds) {
  MachineLimits limits;
  limits.threads = threads;
  limits.block_bytes = std::clamp(block_bytes, kLeastBlock, kMostBlock);
  const auto start = std::chrono::steady_clock::now();
  const auto products = [&](const Products* best) -> std::optional<double> {
    if (best == nullptr) return std::nullopt;
    return best_rate(threads, seconds * 0.3, [&](size_t) {
      best->run(kTurns);
      return best->macs * kSums * double{kTurns};
    });
  };
  if (const Products* best = best_of(kInt8)) limits.instructions = isa_name(best->isa);
  limits.int8_macs = products(best_of(kInt8));
  limits.float_macs = products(best_of(kFloat));

  // Written, so that every page is there.
  const std::vector<std::byte> block(limits.block_bytes, std::byte{1});
  const size_t part = block.size() / threads, piece = std::min(part, kMostPiece);
  std::vector<size_t> at(threads, 0);
  const auto read = reader();
  limits.read_bytes = best_rate(threads, seconds * 0.4, [&](size_t thread) {
    if (at[thread] + piece > part) at[thread] = 0;
    read(block.data() + thread * part + at[thread], piece);
    at[thread] += piece;
    return static_cast<double>(piece);
  });
  limits.seconds = seconds_since(start);
  return limits;
}

}  // namespace oxbow
