#include "runtime/sound/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

namespace oxbow {
namespace {

struct Spectrogram {
  std::unique_ptr<std::byte[]> memory;
  LogMel* mel = nullptr;
  uint32_t bins, frames;

  Spectrogram(uint32_t b, uint32_t f) : bins(b), frames(f) {
    size_t bytes = 0;
    Error error;
    EXPECT_EQ(LogMel::measure(bins, frames, &bytes, &error), Status::kOk) << error.text;
    memory.reset(new std::byte[bytes]);
    EXPECT_EQ(LogMel::place(bins, frames, memory.get(), bytes, &mel, &error), Status::kOk)
        << error.text;
  }
  std::vector<float> finish() const {
    std::vector<float> features(size_t{bins} * frames);
    mel->finish(features.data());
    return features;
  }
};

/// A chord that moves, with a little noise.
std::vector<float> recording(size_t samples) {
  std::vector<float> x(samples);
  uint32_t state = 7;
  for (size_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / kSampleRate;
    state = state * 1664525u + 1013904223u;
    x[i] = static_cast<float>(0.4 * std::sin(2 * std::numbers::pi * (300 + 400 * t) * t) +
                              0.2 * std::sin(2 * std::numbers::pi * 3100 * t) +
                              0.01 * (static_cast<double>(state >> 8) / 8388608.0 - 1));
  }
  return x;
}

/// The formula of the header in double, from corners of the filters that are computed anew.
std::vector<double> formula(std::vector<float> x, size_t bins, size_t frames) {
  x.resize(frames * kMelHop);
  const auto n = static_cast<int64_t>(x.size());
  const auto sample = [&](int64_t i) -> double {
    if (i < 0) i = -i;
    if (i >= n) i = 2 * n - 2 - i;
    return x[static_cast<size_t>(i)];
  };
  const double top = 15 + std::log(8.0) * 27 / std::log(6.4);
  const auto corner = [&](size_t i) {
    const double mel = top * static_cast<double>(i) / static_cast<double>(bins + 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
  };
  std::vector<std::complex<double>> roots(kMelWindow);
  for (size_t i = 0; i < kMelWindow; ++i) {
    roots[i] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / kMelWindow);
  }
  std::vector<double> features(bins * frames);
  double greatest = -10;
  for (size_t frame = 0; frame < frames; ++frame) {
    std::vector<double> power(kMelFrequencies);
    for (size_t k = 0; k < kMelFrequencies; ++k) {
      std::complex<double> sum = 0;
      for (size_t i = 0; i < kMelWindow; ++i) {
        const auto at = static_cast<int64_t>(frame * kMelHop + i) - 200;
        sum += sample(at) * (0.5 - 0.5 * roots[i].real()) * roots[i * k % kMelWindow];
      }
      power[k] = std::norm(sum);
    }
    for (size_t bin = 0; bin < bins; ++bin) {
      double sum = 0;
      const double low = corner(bin), middle = corner(bin + 1), high = corner(bin + 2);
      for (size_t k = 0; k < kMelFrequencies; ++k) {
        const double hertz = 40.0 * static_cast<double>(k);
        const double up = (hertz - low) / (middle - low), down = (high - hertz) / (high - middle);
        sum += power[k] * std::max(0.0, std::min(up, down)) * 2 / (high - low);
      }
      const double log = std::log10(std::max(sum, 1e-10));
      features[bin * frames + frame] = log;
      greatest = std::max(greatest, log);
    }
  }
  for (double& value : features) value = (std::max(value, greatest - 8) + 4) / 4;
  return features;
}

TEST(LogMel, FollowsTheFormulaForRecordingsOfAnyLength) {
  for (const uint32_t frames : {2u, 15u, 16u, 17u, 33u}) {
    for (const size_t samples :
         {size_t{0}, size_t{150}, size_t{frames} * 100, size_t{frames} * 160}) {
      const Spectrogram s(20, frames);
      const std::vector<float> x = recording(samples);
      EXPECT_EQ(s.mel->push(x), samples);
      const std::vector<float> features = s.finish();
      const std::vector<double> expected = formula(x, 20, frames);
      for (size_t i = 0; i < features.size(); ++i) {
        ASSERT_NEAR(features[i], expected[i], 1e-5) << frames << " " << samples << " " << i;
      }
    }
  }
}

TEST(LogMel, PiecesDoNotChangeTheBitsAndFinishBeginsAnew) {
  const Spectrogram s(80, 40);
  const std::vector<float> x = recording(40 * 160);
  s.mel->push(x);
  const std::vector<float> whole = s.finish();
  for (size_t begin = 0, piece = 1; begin < x.size(); begin += piece, piece = piece * 3 % 1009) {
    const size_t count = std::min(piece, x.size() - begin);
    EXPECT_EQ(s.mel->push(std::span(x).subspan(begin, count)), count);
  }
  EXPECT_EQ(s.finish(), whole);
}

TEST(LogMel, TakesNoMoreThanTheRecordingHolds) {
  const Spectrogram s(8, 4);
  const std::vector<float> x = recording(1000);
  EXPECT_EQ(s.mel->push(x), 640u);
  EXPECT_EQ(s.mel->push(x), 0u);
  s.mel->reset();
  EXPECT_EQ(s.mel->push(x), 640u);
}

TEST(LogMel, RefusesSizesThatMakeNoSense) {
  size_t bytes = 0;
  Error error;
  for (const auto& [bins, frames] :
       {std::pair{0u, 10u}, {1025u, 10u}, {80u, 1u}, {80u, 1u << 21}}) {
    EXPECT_EQ(LogMel::measure(bins, frames, &bytes, &error), Status::kInvalidArgument);
    EXPECT_NE(std::string(error.text).find("log mel"), std::string::npos);
  }
  LogMel* mel = nullptr;
  ASSERT_EQ(LogMel::measure(80, 10, &bytes, &error), Status::kOk);
  std::vector<std::byte> memory(bytes);
  EXPECT_EQ(LogMel::place(80, 10, memory.data(), bytes - 1, &mel, &error),
            Status::kInvalidArgument);
}

}  // namespace
}  // namespace oxbow
