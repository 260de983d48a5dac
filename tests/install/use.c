/* The installed C header and library, used from C. */
#include <oxbow/oxbow.h>
#include <stdio.h>

int main(void) {
  printf("oxbow from C: version %u\n", (unsigned)oxb_version());
  return 0;
}
