#include "host/errors.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

/// Terminals obey controls, also those from U+0080 to U+009F, and the marks of direction make a line look like another.
bool is_obeyed(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c || point == 0x200e ||
         point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

/// Bytes of the character that the text begins with; 0 when it is none in UTF-8, or not to be shown.
size_t shown_bytes(std::string_view text) {
  const Utf8Character next = read_utf8(text);
  const bool shown = next.kind == Utf8Character::Kind::kCharacter && !is_obeyed(next.code_point);
  return shown ? next.bytes : 0;
}

int report(const std::string& program, const std::string& text, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: ", program.c_str());
  // Several problems are a line each.
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::fprintf(stderr, "%s\n", printable(text.substr(begin, end - begin), 2000).c_str());
    begin = end + 1;
  }
  return code;
}

}  // namespace

std::string printable(const std::string& text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "...";
    const size_t bytes = shown_bytes(std::string_view(text).substr(i));
    out += bytes == 0 ? "?" : text.substr(i, bytes);
    i += std::max<size_t>(bytes, 1);
    // What is left of a character that is not shown.
    while (bytes == 0 && i < text.size() && (text[i] & 0xc0) == 0x80) ++i;
  }
  return out;
}

int run_program(const std::string& program, int (*body)(int, char**), int argc, char** argv) {
  try {
    const int code = body(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report(program, "cannot write to standard output; is the device full?", kExitInput);
    }
    return code;
  } catch (const UsageError& error) {
    return report(program, error.what(), kExitUsage);
  } catch (const InputError& error) {
    return report(program, error.what(), kExitInput);
  } catch (const CheckFailed& error) {
    return report(program, error.what(), kExitCheckFailed);
  } catch (const std::bad_alloc&) {
    return report(program, "not enough memory on this machine for this input", kExitInput);
  } catch (const std::exception& error) {
    return report(program, std::string("unexpected failure: ") + error.what(), kExitInput);
  }
}

}  // namespace oxbow
