#include "host/errors.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "runtime/text/shown.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

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

/// For what must not allocate any more.
const char* program_name = "";
std::terminate_handler usual_end = nullptr;

/// Some destructors need memory, as those of JSON do, and end the program when there is none: with words, as every end.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    constexpr char kWords[] = ": not enough memory on this machine for this input\n";
    for (const std::string_view part : {std::string_view(program_name), std::string_view(kWords)}) {
      if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
    }
    ::_exit(kExitInput);
  } catch (...) {
  }
  usual_end();
  std::abort();
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
  program_name = program.c_str();
  usual_end = std::set_terminate(end_without_memory);
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
