#pragma once

// Where tests find their files and programs. Functions of one source file, so that no other object depends on where the
// repository lies and a compiler cache serves every clone.

#include <string>

namespace oxbow::testing {

/// The repository.
std::string source_dir();
/// The programs of this build.
std::string program_dir();
/// What to put before a program to run it here, words with spaces between; empty when it runs by itself.
std::string emulator();

}  // namespace oxbow::testing
