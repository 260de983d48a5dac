#include "converter/blocks/transformers_version.h"

#include <cstdio>

namespace oxbow::convert {

int transformers_version(const Checkpoint& checkpoint) {
  int major = 0, minor = 0;
  const std::string version = checkpoint.note("transformers_version");
  if (std::sscanf(version.c_str(), "%2d.%2d", &major, &minor) != 2) return 0;
  return 100 * major + minor;
}

uint32_t window_keys(const Checkpoint& checkpoint, uint32_t sliding_window) {
  const int version = transformers_version(checkpoint);
  return sliding_window != 0 && version != 0 && version < 442 ? sliding_window + 1 : sliding_window;
}

}  // namespace oxbow::convert
