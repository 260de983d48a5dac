#pragma once

// How failure travels: a Status comes back from every call, and the words go into an Error that the
// caller gave. No exceptions, no globals.

#include <cstdarg>
#include <cstddef>
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
    kCancelled = 15,
    kTextStopped = 16,
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

/// What went wrong, for a program and for a person: oxb_error of oxbow.h. Lives where the caller puts it, who may have
/// fewer fields (`size`).
struct Error {
  static constexpr int kCapacity = 256;
  size_t size = sizeof(Error);
  int32_t code = 0;
  int32_t step = -1;
  const char* op = nullptr;
  char text[kCapacity] = {};

  bool has(size_t end) const { return size >= end; }
  size_t text_room() const {
    const size_t before = offsetof(Error, text);
    if (size <= before) return 0;
    return size - before < sizeof(text) ? size - before : sizeof(text);
  }
  void set_code(Status status) {
    if (has(offsetof(Error, code) + sizeof(code))) code = static_cast<int32_t>(status);
  }
  void set_step(int32_t index, const char* name) {
    if (has(offsetof(Error, step) + sizeof(step))) step = index;
    if (has(offsetof(Error, op) + sizeof(op))) op = name;
  }
};

/// Formats the message and hands `status` back, so that a failing line reads `return fail(...)`.
[[gnu::format(printf, 3, 4)]] inline Status fail(Error* error, Status status, const char* format,
                                                 ...) {
  if (error != nullptr) {
    error->set_code(status);
    error->set_step(-1, nullptr);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text, error->text_room(), format, arguments);
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
