#include "host/errors.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

namespace oxbow {
namespace {

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
  for (size_t i = 0; i < text.size(); ++i) {
    if (out.size() >= limit) return out + "...";
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, which terminals obey too.
    const bool upper = byte == 0xc2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (upper) ++i;
    out += upper || byte < 0x20 || byte == 0x7f ? '?' : text[i];
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
