#include "tests/bench/machine_limits.h"

#include <immintrin.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace oxbow::bench {
namespace {

constexpr size_t kReadBytes = size_t{160} << 20;
constexpr size_t kMultiplySteps = 200'000;
/// 12 accumulators, 16 products each.
constexpr double kMultiplyAddsPerStep = 12 * 16;

/// Keeps a value, without which a compiler may leave out how it was made.
template <typename T>
void keep(T& value) {
  asm volatile("" : "+x"(value));
}

/// The inner loop of a tile of 6 rows by 16 channels: weights are widened once for 6 rows. Written
/// out, since compilers move accumulators to memory when all 16 registers are in use.
#define OXB_PRODUCT(weights, sum)    \
  "vpmaddwd %%ymm12, %%ymm" #weights \
  ", %%ymm15\n"                      \
  "vpaddd %%ymm15, %%ymm" #sum ", %%ymm" #sum "\n"
void multiply() {
  size_t steps = kMultiplySteps;
  asm volatile(
      "vpcmpeqw %%ymm12, %%ymm12, %%ymm12\n"
      "1:\n"
      "vpmovsxbw %%xmm12, %%ymm13\n"
      "vpmovsxbw %%xmm12, %%ymm14\n"  //
      OXB_PRODUCT(13, 0) OXB_PRODUCT(14, 1) OXB_PRODUCT(13, 2) OXB_PRODUCT(14, 3) OXB_PRODUCT(13, 4)
          OXB_PRODUCT(14, 5) OXB_PRODUCT(13, 6) OXB_PRODUCT(14, 7) OXB_PRODUCT(13, 8)
              OXB_PRODUCT(14, 9) OXB_PRODUCT(13, 10) OXB_PRODUCT(14, 11)  //
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(steps)
      :
      : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10",
        "ymm11", "ymm12", "ymm13", "ymm14", "ymm15", "cc");
}
#undef OXB_PRODUCT

template <size_t kStreams>
void read(const uint8_t* data, size_t bytes) {
  const size_t part = bytes / kStreams / 128 * 128;
  __m256i sums[4] = {};
  for (size_t at = 0; at < part; at += 128) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      for (size_t i = 0; i < 4; ++i) {
        const auto* from = reinterpret_cast<const __m256i*>(data + stream * part + at + 32 * i);
        sums[i] = _mm256_xor_si256(sums[i], _mm256_loadu_si256(from));
      }
    }
  }
  for (__m256i& sum : sums) keep(sum);
}

/// `work(thread)` on each of them, the caller included.
template <typename Work>
void on_threads(size_t threads, const Work& work) {
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back([&work, i] { work(i); });
  work(0);
  for (std::thread& other : others) other.join();
}

/// Written once, so that every page is there.
const std::vector<uint8_t>& large_memory() {
  static const std::vector<uint8_t> memory(kReadBytes, 1);
  return memory;
}

}  // namespace

Limit make_limit(const std::string& name, size_t threads) {
  if (name == "multiply") {
    return {[threads] { on_threads(threads, [](size_t) { multiply(); }); },
            kMultiplyAddsPerStep * static_cast<double>(kMultiplySteps * threads)};
  }
  if (name != "read1" && name != "read4") return {};
  const size_t part = kReadBytes / threads;
  const bool one = name == "read1";
  const uint8_t* data = large_memory().data();
  return {[=] {
            on_threads(threads, [=](size_t thread) {
              const uint8_t* own = data + thread * part;
              one ? read<1>(own, part) : read<4>(own, part);
            });
          },
          static_cast<double>(part * threads)};
}

}  // namespace oxbow::bench
