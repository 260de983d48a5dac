#include "converter/errors.h"

#include <cstdio>
#include <exception>
#include <new>

namespace oxbow::convert {
namespace {

int report(const std::string& program, const std::string& text, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), printable(text, 2000).c_str());
  return code;
}

}  // namespace

std::string printable(const std::string& text, size_t limit) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) return out + "...";
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
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

}  // namespace oxbow::convert
