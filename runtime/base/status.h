#pragma once

// How failure travels: a Status comes back from every call, and the words go into an Error that the
// caller gave. No exceptions, no globals.

#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace oxbow {

/// Values are part of the C API (oxb_status): grouped with gaps, never renumbered.
enum class [[nodiscard]] Status : int32_t{
    kOk = 0,
    // The caller's doing.
    kInvalidArgument = 10,
    kArenaTooSmall = 11,
    kBufferTooSmall = 12,
    kNeedsReset = 13,
    kStreamFull = 14,
    // The file's doing.
    kFileUnreadable = 20,
    kFileCorrupt = 21,
    kFileUnsupported = 22,
    // A saved state's doing.
    kStateCorrupt = 30,
    kStateMismatch = 31,
    // The machine's doing.
    kOutOfMemory = 40,
    kNoDevice = 41,
    kDeviceLost = 42,
    kInternal = 50,
};

/// What went wrong, for a person. Lives where the caller puts it.
struct Error {
  static constexpr int kCapacity = 256;
  char text[kCapacity] = {};
};

/// Formats the message and hands `status` back, so that a failing line reads `return fail(...)`.
[[gnu::format(printf, 3, 4)]] inline Status fail(Error* error, Status status, const char* format,
                                                 ...) {
  if (error != nullptr) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
  }
  return status;
}

}  // namespace oxbow

#define OXB_TRY(expression)                                  \
  do {                                                       \
    if (const ::oxbow::Status oxb_try_status = (expression); \
        oxb_try_status != ::oxbow::Status::kOk)              \
      return oxb_try_status;                                 \
  } while (false)
