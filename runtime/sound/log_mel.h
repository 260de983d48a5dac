#pragma once

// The log-mel spectrogram of a recording as Whisper is fed it, made while the samples come in.
//
//   frame t       the 400 samples around sample 160 t, times a Hann window; beyond both ends of the recording, which
//                 silence fills up to 160 * frames samples, it is mirrored
//   power         |X|^2 of its Fourier transform, 201 frequencies from 0 to 8,000 Hz
//   mel           triangular filters of Slaney's scale, each divided by its width: a row for each
//   feature       (max(log10 max(mel, 1e-10), greatest of all - 8) + 4) / 4
//
// 16 frames are transformed at a time, two in each lane, one as the real part and one as the imaginary.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/fft.h"
#include "runtime/base/status.h"

namespace oxbow {

inline constexpr uint32_t kSampleRate = 16000;
inline constexpr size_t kMelWindow = 400;
inline constexpr size_t kMelHop = 160;
inline constexpr size_t kMelFrequencies = kMelWindow / 2 + 1;
inline constexpr size_t kMelBatch = 2 * kFftLanes;
inline constexpr uint32_t kMaxMelBins = 1024;
inline constexpr uint32_t kMaxMelFrames = 1 << 20;

class LogMel {
 public:
  /// Bytes for a spectrogram of this size. Fails for sizes that make no sense.
  static Status measure(uint32_t bins, uint32_t frames, size_t* bytes, Error* error);
  /// `memory` is aligned to 64 and outlives it.
  static Status place(uint32_t bins, uint32_t frames, void* memory, size_t bytes, LogMel** made,
                      Error* error);

  /// Takes as many samples as the recording has room for, and tells how many.
  size_t push(std::span<const float> samples);
  /// Fills up with silence, writes [bins][frames] and begins anew.
  void finish(float* features);
  void reset();

  /// Numbers that finish() writes.
  size_t features() const { return size_t{bins_} * frames_; }
  /// Of the whole recording.
  uint64_t samples() const { return uint64_t{frames_} * kMelHop; }

 private:
  struct Filter {
    /// Frequencies [begin, end) that are not 0.
    uint32_t begin, end;
  };
  /// What lies behind the object, in this order.
  struct Places {
    size_t window, table, weights, filters, pending, lanes, power, features, end;
  };
  static constexpr size_t kPending = (kMelBatch - 1) * kMelHop + kMelWindow;
  static Places places(uint32_t bins, uint32_t frames);

  LogMel(uint32_t bins, uint32_t frames, std::byte* memory);
  void make_filters();
  void add(float sample);
  /// Of the frames whose samples are pending.
  void transform(size_t count);
  void write_frame(size_t frame, const float* power);

  uint32_t bins_, frames_;
  float* window_;
  float* table_;
  float* weights_;
  Filter* filters_;
  /// Samples of the next frames, with those mirrored in front.
  float* pending_;
  float* lanes_;
  float* power_;
  /// [bins][frames], logarithms.
  float* features_;
  FftPlan plan_;
  size_t pending_count_ = 0;
  size_t next_frame_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace oxbow
