#pragma once

// Recordings from WAV files: PCM of 8 to 32 bits or float, any number of channels, which become their mean.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oxbow {

struct Recording {
  uint32_t rate = 0;
  /// From -1 to 1.
  std::vector<float> samples;
};

bool looks_like_wav(std::span<const std::byte> file);

/// `path` is for messages. Throws InputError.
Recording read_wav(const std::string& path, std::span<const std::byte> file);

}  // namespace oxbow
