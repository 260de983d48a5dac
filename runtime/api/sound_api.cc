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
  if (mel == nullptr) return missing(error, "mel");
  LogMel* made = nullptr;
  const oxbow::Status status = LogMel::place(bins, frames, memory, bytes, &made, words(error));
  *mel = reinterpret_cast<oxb_log_mel*>(made);
  return outer(status);
}

size_t oxb_log_mel_push(oxb_log_mel* mel, const float* samples, size_t count) {
  if (mel == nullptr || samples == nullptr) return 0;
  return inner(mel)->push({samples, count});
}

oxb_status oxb_log_mel_finish(oxb_log_mel* mel, float* features, oxb_error* error) {
  if (mel == nullptr) return missing(error, "mel");
  if (features == nullptr) return missing(error, "features");
  inner(mel)->finish(features);
  return OXB_OK;
}

void oxb_log_mel_reset(oxb_log_mel* mel) {
  if (mel != nullptr) inner(mel)->reset();
}
