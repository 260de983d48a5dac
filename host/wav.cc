#include "host/wav.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "host/errors.h"

namespace oxbow {
namespace {

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

std::string_view word_at(std::span<const std::byte> file, size_t at) {
  if (at > file.size() || file.size() - at < 4) return {};
  return {reinterpret_cast<const char*>(file.data()) + at, 4};
}

/// Little-endian; bytes beyond the end are 0.
uint32_t number_at(std::span<const std::byte> file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes && at + i < file.size(); ++i) {
    value |= std::to_integer<uint32_t>(file[at + i]) << (8 * i);
  }
  return value;
}

struct Format {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

float sample_at(std::span<const std::byte> data, size_t at, const Format& format) {
  const uint32_t bits = number_at(data, at, format.bits / 8);
  if (format.kind == kFloat) return std::bit_cast<float>(bits);
  // Bytes are around 128, all others signed.
  if (format.bits == 8) return (static_cast<float>(bits) - 128.0f) / 128.0f;
  const auto value = static_cast<int32_t>(bits << (32 - format.bits));
  return static_cast<float>(static_cast<double>(value) / 2147483648.0);
}

void check_format(const std::string& path, const Format& format) {
  const bool pcm = format.kind == kPcm && (format.bits == 8 || format.bits == 16 ||
                                           format.bits == 24 || format.bits == 32);
  const bool floats = format.kind == kFloat && format.bits == 32;
  if ((!pcm && !floats) || format.channels == 0 || format.channels > 64 || format.rate == 0) {
    throw InputError(path + ": format " + std::to_string(format.kind) + " with " +
                     std::to_string(format.bits) + " bits and " + std::to_string(format.channels) +
                     " channels; expected PCM of 8, 16, 24 or 32 bits, or floats of 32");
  }
}

}  // namespace

bool looks_like_wav(std::span<const std::byte> file) {
  return word_at(file, 0) == "RIFF" && word_at(file, 8) == "WAVE";
}

Recording read_wav(const std::string& path, std::span<const std::byte> file) {
  if (!looks_like_wav(file)) throw InputError(path + ": no WAV file");
  Format format;
  for (size_t at = 12; !word_at(file, at).empty() && file.size() - at >= 8;) {
    const std::string_view name = word_at(file, at);
    const size_t size = number_at(file, at + 4, 4), begin = at + 8;
    if (name == "fmt ") {
      format = {number_at(file, begin, 2), number_at(file, begin + 2, 2),
                number_at(file, begin + 4, 4), number_at(file, begin + 14, 2)};
      if (format.kind == kExtensible) format.kind = number_at(file, begin + 24, 2);
    } else if (name == "data") {
      check_format(path, format);
      // Recorders that are cut off leave a wrong length: what is there counts.
      const std::span<const std::byte> data =
          file.subspan(begin, std::min(size, file.size() - begin));
      const size_t width = format.bits / 8, frame = width * format.channels;
      Recording recording{format.rate, std::vector<float>(data.size() / frame)};
      for (size_t i = 0; i < recording.samples.size(); ++i) {
        double sum = 0;
        for (size_t c = 0; c < format.channels; ++c) {
          sum += static_cast<double>(sample_at(data, i * frame + c * width, format));
        }
        recording.samples[i] = static_cast<float>(sum / format.channels);
      }
      return recording;
    }
    // Chunks begin at even places.
    if (size > file.size() - begin) break;
    at = begin + size + size % 2;
  }
  throw InputError(path + ": no sound in the WAV file");
}

}  // namespace oxbow
