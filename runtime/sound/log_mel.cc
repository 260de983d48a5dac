#include "runtime/sound/log_mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/base/math.h"
#include "runtime/base/sincos.h"

namespace oxbow {
namespace {

constexpr size_t kMargin = kMelWindow / 2;
constexpr size_t kAlignment = 64;

/// Slaney's scale: straight up to 1,000 Hz, a logarithm above.
double mel_of(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) * (27 / std::log(6.4));
}
double hertz_of(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * (std::log(6.4) / 27));
}

}  // namespace

LogMel::Places LogMel::places(uint32_t bins, uint32_t frames) {
  // Both are bounded, so that nothing here overflows.
  Places p = {};
  size_t at = round_up(sizeof(LogMel), kAlignment);
  const auto floats = [&](size_t count) {
    const size_t place = at;
    at += round_up(count * sizeof(float), kAlignment);
    return place;
  };
  p.window = floats(kMelWindow);
  p.table = floats(fft_table_floats(kMelWindow));
  p.weights = floats(size_t{bins} * kMelFrequencies);
  p.filters = floats(size_t{bins} * sizeof(Filter) / sizeof(float));
  p.pending = floats(kPending);
  p.lanes = floats(2 * kMelWindow * kFftLanes + fft_room_floats(kMelWindow));
  p.power = floats(kMelFrequencies);
  p.features = floats(size_t{bins} * frames);
  p.end = at;
  return p;
}

Status LogMel::measure(uint32_t bins, uint32_t frames, size_t* bytes, Error* error) {
  // Mirroring needs more samples than it makes.
  constexpr uint32_t kLeast = 2;
  if (bins == 0 || bins > kMaxMelBins || frames < kLeast || frames > kMaxMelFrames) {
    return fail(error, Status::kInvalidArgument,
                "log mel: %u bins and %u frames; expected 1 to %u and %u to %u", bins, frames,
                kMaxMelBins, kLeast, kMaxMelFrames);
  }
  *bytes = places(bins, frames).end;
  return Status::kOk;
}

Status LogMel::place(uint32_t bins, uint32_t frames, void* memory, size_t bytes, LogMel** made,
                     Error* error) {
  size_t needed = 0;
  OXB_TRY(measure(bins, frames, &needed, error));
  if (memory == nullptr || bytes < needed ||
      reinterpret_cast<uintptr_t>(memory) % alignof(LogMel)) {
    return fail(error, Status::kInvalidArgument,
                "log mel: %zu bytes of memory, expected %zu, aligned to %zu", bytes, needed,
                alignof(LogMel));
  }
  *made = new (memory) LogMel(bins, frames, static_cast<std::byte*>(memory));
  return Status::kOk;
}

LogMel::LogMel(uint32_t bins, uint32_t frames, std::byte* memory) : bins_(bins), frames_(frames) {
  const Places p = places(bins, frames);
  const auto floats = [&](size_t place) { return reinterpret_cast<float*>(memory + place); };
  window_ = floats(p.window);
  table_ = floats(p.table);
  weights_ = floats(p.weights);
  filters_ = reinterpret_cast<Filter*>(memory + p.filters);
  pending_ = floats(p.pending);
  lanes_ = floats(p.lanes);
  power_ = floats(p.power);
  features_ = floats(p.features);
  plan_ = fft_plan(kMelWindow, table_);
  // The cosines of the plan are those of the window.
  for (size_t i = 0; i < kMelWindow; ++i) window_[i] = 0.5f - 0.5f * plan_.real[i];
  make_filters();
  reset();
}

void LogMel::make_filters() {
  const double top = mel_of(kSampleRate / 2.0), step = top / (bins_ + 1.0);
  for (uint32_t bin = 0; bin < bins_; ++bin) {
    const double low = hertz_of(step * bin), middle = hertz_of(step * (bin + 1.0));
    // The last corner is the highest frequency itself, whatever is lost on the way there and back.
    const double high = bin + 1 == bins_ ? kSampleRate / 2.0 : hertz_of(step * (bin + 2.0));
    Filter& filter = filters_[bin];
    filter = {0, 0};
    for (uint32_t i = 0; i < kMelFrequencies; ++i) {
      const double hertz = kSampleRate / 2.0 * i / (kMelFrequencies - 1);
      const double weight =
          std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      weights_[bin * kMelFrequencies + i] =
          static_cast<float>(std::max(0.0, weight) * 2 / (high - low));
      if (weight <= 0) continue;
      if (filter.end == 0) filter.begin = i;
      filter.end = i + 1;
    }
  }
}

void LogMel::reset() {
  // Room for what will be mirrored in front.
  pending_count_ = kMargin;
  next_frame_ = 0;
  taken_ = 0;
}

size_t LogMel::push(std::span<const float> samples) {
  const auto count =
      static_cast<size_t>(std::min<uint64_t>(samples.size(), this->samples() - taken_));
  for (const float sample : samples.first(count)) add(sample);
  return count;
}

void LogMel::add(float sample) {
  pending_[pending_count_++] = sample;
  if (++taken_ == kMargin + 1) {
    for (size_t i = 0; i < kMargin; ++i) pending_[i] = pending_[2 * kMargin - i];
  }
  if (pending_count_ < kPending) return;
  transform(kMelBatch);
  // What the next frames begin with.
  constexpr size_t kDone = kMelBatch * kMelHop;
  std::memmove(pending_, pending_ + kDone, (kPending - kDone) * sizeof(float));
  pending_count_ -= kDone;
}

void LogMel::transform(size_t count) {
  float* real = lanes_;
  float* imaginary = real + kMelWindow * kFftLanes;
  std::fill(real, real + 2 * kMelWindow * kFftLanes, 0.0f);
  count = std::min(count, frames_ - next_frame_);
  for (size_t frame = 0; frame < count; ++frame) {
    float* part = (frame % 2 == 0 ? real : imaginary) + frame / 2;
    for (size_t i = 0; i < kMelWindow; ++i) {
      part[i * kFftLanes] = pending_[frame * kMelHop + i] * window_[i];
    }
  }
  fft(plan_, real, imaginary, imaginary + kMelWindow * kFftLanes);
  for (size_t frame = 0; frame < count; ++frame) {
    // Of a + i b the transform at k and at n - k tells both.
    const float* own = (frame % 2 == 0 ? real : imaginary) + frame / 2;
    const float* other = (frame % 2 == 0 ? imaginary : real) + frame / 2;
    for (size_t k = 0; k < kMelFrequencies; ++k) {
      const size_t at = k * kFftLanes, mirror = (k == 0 ? 0 : kMelWindow - k) * kFftLanes;
      const float re = 0.5f * (own[at] + own[mirror]), im = 0.5f * (other[at] - other[mirror]);
      power_[k] = re * re + im * im;
    }
    write_frame(next_frame_ + frame, power_);
  }
  next_frame_ += count;
}

void LogMel::write_frame(size_t frame, const float* power) {
  constexpr float kLogTen = 0.43429448190325182765f;  // log10 e
  for (size_t bin = 0; bin < bins_; ++bin) {
    const Filter& filter = filters_[bin];
    const float sum = dot_f32(weights_ + bin * kMelFrequencies + filter.begin, power + filter.begin,
                              filter.end - filter.begin);
    features_[bin * frames_ + frame] = log_f32(sum > 1e-10f ? sum : 1e-10f) * kLogTen;
  }
}

void LogMel::finish(float* features) {
  while (taken_ < samples()) add(0.0f);
  // Mirrored: the newest but one, and back from there.
  const size_t last = pending_count_ - 1;
  const size_t count = frames_ - next_frame_;
  for (size_t i = 1; count != 0 && pending_count_ < (count - 1) * kMelHop + kMelWindow; ++i) {
    pending_[pending_count_++] = pending_[last - i];
  }
  transform(count);
  const size_t all = size_t{bins_} * frames_;
  const float greatest = max_f32(all, -10.0f, [&](size_t i) { return features_[i]; });
  for (size_t i = 0; i < all; ++i) {
    features[i] = (std::max(features_[i], greatest - 8.0f) + 4.0f) / 4.0f;
  }
  reset();
}

}  // namespace oxbow
