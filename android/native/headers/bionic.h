/* Where the C library of the headers at hand and Android's differ in the name of a symbol. */
#include <errno.h>
#undef errno
#ifdef __cplusplus
extern "C" int* __errno(void);
#else
int* __errno(void);
#endif
#define errno (*__errno())
