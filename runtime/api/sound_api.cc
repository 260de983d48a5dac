// The C interface over LogMel: argument checks and conversions, no logic of its own.

#include "runtime/api/handles.h"
#include "runtime/sound/log_mel.h"

namespace {

using oxbow::LogMel;
using oxbow::missing;
using oxbow::outer;
using oxbow::words;

LogMel* inner(oxb_log_mel* mel) { return reinterpret_cast<LogMel*>(mel); }

}  // namespace

oxb_status oxb_log_mel_bytes(uint32_t bins, uint32_t frames, size_t* bytes, oxb_error* error) {
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(LogMel::measure(bins, frames, bytes, words(error)));
}

oxb_status oxb_log_mel_create(uint32_t bins, uint32_t frames, void* memory, size_t bytes,
                              oxb_log_mel** mel, oxb_error* error) {
  if (memory == nullptr) return missing(error, "memory");
  if (mel == nullptr) return missing(error, "mel");
  LogMel* made = nullptr;
  const oxbow::Status status = LogMel::place(bins, frames, memory, bytes, &made, words(error));
  *mel = reinterpret_cast<oxb_log_mel*>(made);
  return outer(status);
}

void oxb_log_mel_destroy(oxb_log_mel*) {}  // All it has lies in the caller's memory.

oxb_status oxb_log_mel_push(oxb_log_mel* mel, const float* samples, size_t count, size_t* taken,
                            oxb_error* error) {
  if (mel == nullptr) return missing(error, "mel");
  if (samples == nullptr) return missing(error, "samples");
  if (taken == nullptr) return missing(error, "taken");
  *taken = inner(mel)->push({samples, count});
  return OXB_OK;
}

oxb_status oxb_log_mel_finish(oxb_log_mel* mel, float* features, size_t capacity,
                              oxb_error* error) {
  if (mel == nullptr) return missing(error, "mel");
  if (features == nullptr) return missing(error, "features");
  if (const size_t needed = inner(mel)->features(); capacity < needed) {
    return outer(oxbow::fail(words(error), oxbow::Status::kBufferTooSmall,
                             "log mel: room for %zu features; there are %zu", capacity, needed));
  }
  inner(mel)->finish(features);
  return OXB_OK;
}

oxb_status oxb_log_mel_reset(oxb_log_mel* mel, oxb_error* error) {
  if (mel == nullptr) return missing(error, "mel");
  inner(mel)->reset();
  return OXB_OK;
}
