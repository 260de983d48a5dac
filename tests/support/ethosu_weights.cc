// The stream is a list of slices. Each has a header, perhaps a palette of frequent values, and two sequences of numbers in
// Golomb-Rice codes: the weights, as places in the palette or values behind it, and, in slices that have them, how many zeros
// stand before each. Both are cut into chunks, and the chunks take turns: quotients of a chunk come before the
// remainders of the chunk before it.

#include "tests/support/ethosu_weights.h"

#include <array>

namespace oxbow::testing {
namespace {

constexpr uint32_t kNoZeroRuns = 6;
constexpr uint32_t kEnd = 7;
constexpr uint32_t kPlainBits = 7;

/// Lowest bit first. Reading past the end gives zeros and is remembered.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t take(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= bytes_.size()) {
        broken_ = true;
        return 0;
      }
      value |= (static_cast<uint32_t>(bytes_[at_ / 8]) >> (at_ % 8) & 1) << i;
    }
    return value;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  bool is_done() const { return at_ / 8 >= bytes_.size(); }
  bool is_broken() const { return broken_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool broken_ = false;
};

struct Palette {
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t bits = 2;
  std::array<uint32_t, 32> values = {};

  void read(Bits& bits_in) {
    offset = bits_in.take(5);
    size = bits_in.take(5);
    if (size > 0) ++size;
    bits = bits_in.take(3) + 2;
    for (uint32_t i = 0; i < size; ++i) values[i] = bits_in.take(bits);
  }
  /// Sign and magnitude become a number.
  int16_t weight(uint32_t index) const {
    const uint32_t value = index < size ? values[index] : index - size + offset;
    const auto magnitude = static_cast<int16_t>(value >> 1);
    return (value & 1) != 0 ? static_cast<int16_t>(-magnitude) : magnitude;
  }
};

/// One of the two sequences of a slice: quotients of the chunk before wait for their remainders.
struct Sequence {
  uint32_t wanted = 0;
  uint32_t remainder_bits = 0;
  std::vector<uint32_t> values;
  std::vector<uint32_t> waiting, chunk;
  /// Quotients read, and one that the last chunk has begun.
  uint32_t read = 0;
  uint32_t begun = 0;
  bool is_waiting = false;

  void finish_waiting(Bits& bits) {
    if (!is_waiting) return;
    for (const uint32_t quotient : waiting) {
      if (values.size() == wanted) break;
      values.push_back((quotient << remainder_bits) + bits.take(remainder_bits));
    }
  }
  void turn(bool took) {
    waiting = chunk;
    is_waiting = took;
  }
};

void read_zero_quotients(Bits& bits, uint32_t count, Sequence& zeros) {
  const uint32_t unary = bits.take(count);
  zeros.chunk.clear();
  for (uint32_t i = 0; i < count; ++i) {
    if ((unary >> i & 1) != 0) {
      ++zeros.begun;
      continue;
    }
    zeros.chunk.push_back(zeros.begun);
    zeros.begun = 0;
  }
  zeros.read += static_cast<uint32_t>(zeros.chunk.size());
}

/// `first` are the low bits of each symbol: 0 is the quotient's end; otherwise a second bit tells one or two more.
void read_weight_quotients(Bits& bits, uint32_t first, uint32_t symbols, bool ends_at_two,
                           Sequence& weights) {
  uint32_t ones = 0;
  for (uint32_t i = 0; i < symbols; ++i) ones += first >> i & 1;
  uint32_t second = bits.take(ones);
  weights.chunk.clear();
  for (uint32_t i = 0; i < symbols && weights.chunk.size() < weights.wanted - weights.read; ++i) {
    uint32_t code = 0;
    if ((first >> i & 1) != 0) {
      code = 1 + (second & 1);
      second >>= 1;
    }
    weights.begun += code;
    if (code == 2 && !ends_at_two) continue;
    weights.chunk.push_back(weights.begun);
    weights.begun = 0;
  }
  weights.read += static_cast<uint32_t>(weights.chunk.size());
}

uint32_t bits_for(uint32_t count) {
  uint32_t bits = 0;
  while ((1u << bits) < count) ++bits;
  return bits;
}

bool read_slice(Bits& bits, uint32_t zero_divisor, Palette& palette, size_t most,
                std::vector<int16_t>& out) {
  const bool has_zeros = zero_divisor != kNoZeroRuns;
  Sequence weights, zeros;
  weights.wanted = bits.take(15) + 1;
  weights.remainder_bits = bits.take(3);
  const bool is_plain = weights.remainder_bits == kPlainBits;
  const bool ends_at_two = bits.take(1) != 0;
  const bool has_palette = bits.take(1) != 0;
  if (has_palette) palette.read(bits);
  if (is_plain) weights.remainder_bits = palette.size > 0 ? bits_for(palette.size) : palette.bits;
  if (!is_plain && weights.remainder_bits > 5) return false;
  zeros.wanted = has_zeros ? weights.wanted + (has_palette ? 1 : 0) : 0;
  zeros.remainder_bits = has_zeros ? zero_divisor : 0;
  const uint32_t zero_symbols = zero_divisor < 3 ? 12 : 8;
  const uint32_t symbols = is_plain && weights.remainder_bits > 5 ? 8 : 12;
  do {
    const auto ahead = static_cast<int64_t>(weights.read) - zeros.read;
    const bool takes_weights = (!has_zeros || ahead < 8) && weights.read < weights.wanted;
    const bool takes_zeros = has_zeros && ahead >= 0 && zeros.read < zeros.wanted;
    const uint32_t first = takes_weights && !is_plain ? bits.take(12) : 0;
    if (takes_zeros) read_zero_quotients(bits, zero_symbols, zeros);
    if (takes_weights) read_weight_quotients(bits, first, symbols, ends_at_two, weights);
    weights.finish_waiting(bits);
    zeros.finish_waiting(bits);
    weights.turn(takes_weights);
    zeros.turn(takes_zeros);
    if (bits.is_broken()) return false;
  } while (weights.is_waiting || zeros.is_waiting);
  if (weights.values.size() < weights.wanted || zeros.values.size() < zeros.wanted) return false;

  size_t next_zero = 0;
  const auto add_zeros = [&] {
    const uint32_t count = zeros.values[next_zero++];
    if (count > most - out.size()) return false;
    out.insert(out.end(), count, 0);
    return true;
  };
  if (has_zeros && has_palette && !add_zeros()) return false;
  for (const uint32_t index : weights.values) {
    if (index >= 512 || out.size() == most) return false;
    out.push_back(palette.weight(index));
    if (has_zeros && !add_zeros()) return false;
  }
  return true;
}

}  // namespace

bool decode_ethosu_weights(std::span<const std::byte> bytes, size_t most,
                           std::vector<int16_t>* weights) {
  Bits bits(bytes);
  Palette palette;
  weights->clear();
  while (!bits.is_done()) {
    const uint32_t divisor = bits.take(3);
    if (divisor == kEnd) {
      bits.align();
      continue;
    }
    if (divisor > 3 && divisor != kNoZeroRuns) return false;
    if (!read_slice(bits, divisor, palette, most, *weights)) return false;
  }
  return !bits.is_broken();
}

}  // namespace oxbow::testing
