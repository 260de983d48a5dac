// The installed C++ wrapper and library, used from C++.
#include <cstdio>
#include <oxbow/oxbow.hpp>

int main() {
  std::printf("oxbow from C++: version %u\n", static_cast<unsigned>(oxb_version()));
  return 0;
}
