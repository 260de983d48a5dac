#include "host/testing/paths.h"

namespace oxbow::testing {

std::string source_dir() { return OXB_SOURCE_DIR; }
std::string program_dir() { return OXB_BIN_DIR; }
std::string emulator() { return OXB_EMULATOR; }

}  // namespace oxbow::testing
