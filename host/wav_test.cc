#include "host/wav.h"

#include <gtest/gtest.h>

#include <string>

#include "host/errors.h"

namespace oxbow {
namespace {

std::string bytes(uint32_t value, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string wav(uint32_t kind, uint32_t channels, uint32_t bits, const std::string& data,
                const std::string& before = "") {
  const uint32_t frame = channels * bits / 8;
  return "RIFF" + bytes(0, 4) + "WAVE" + before + "fmt " + bytes(16, 4) + bytes(kind, 2) +
         bytes(channels, 2) + bytes(16000, 4) + bytes(16000 * frame, 4) + bytes(frame, 2) +
         bytes(bits, 2) + "data" + bytes(static_cast<uint32_t>(data.size()), 4) + data;
}

Recording read(const std::string& file) {
  return read_wav("a.wav", std::as_bytes(std::span(file)));
}

TEST(Wav, ReadsAllWidthsAndAveragesChannels) {
  EXPECT_EQ(read(wav(1, 1, 16, bytes(0x4000, 2) + bytes(0x8000, 2))).samples,
            (std::vector<float>{0.5f, -1.0f}));
  EXPECT_EQ(read(wav(1, 2, 16, bytes(0x4000, 2) + bytes(0xc000, 2))).samples,
            (std::vector<float>{0.0f}));
  EXPECT_EQ(read(wav(1, 1, 8, bytes(128 + 64, 1))).samples, (std::vector<float>{0.5f}));
  EXPECT_EQ(read(wav(1, 1, 24, bytes(0xc00000, 3))).samples, (std::vector<float>{-0.5f}));
  EXPECT_EQ(read(wav(1, 1, 32, bytes(0x20000000, 4))).samples, (std::vector<float>{0.25f}));
  EXPECT_EQ(read(wav(3, 1, 32, bytes(0x3e800000, 4))).samples, (std::vector<float>{0.25f}));
  // A chunk of odd length in front, and a last sample that is cut.
  const Recording odd =
      read(wav(1, 1, 16, bytes(0x4000, 2) + "x", "LIST" + bytes(3, 4) + "abc" + "\x01"));
  EXPECT_EQ(odd.samples, (std::vector<float>{0.5f}));
  EXPECT_EQ(odd.rate, 16000u);
}

TEST(Wav, RefusesWhatItCannotRead) {
  const std::string good = wav(1, 1, 16, "abcd");
  for (size_t cut = 0; cut < good.size() - 4; ++cut) {
    if (cut == 44) continue;  // A recording without samples.
    EXPECT_THROW(read(good.substr(0, cut)), InputError) << cut;
  }
  EXPECT_THROW(read(wav(2, 1, 16, "abcd")), InputError);
  EXPECT_THROW(read(wav(1, 1, 12, "abcd")), InputError);
  EXPECT_THROW(read(wav(1, 0, 16, "abcd")), InputError);
  EXPECT_THROW(read(wav(3, 1, 64, "abcdefgh")), InputError);
  EXPECT_THROW(read("RIFFxxxxWAVE" + std::string("fmt ") + bytes(0xffffffff, 4)), InputError);
}

}  // namespace
}  // namespace oxbow
