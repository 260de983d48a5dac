#pragma once

/// Before a loop whose iterations do not touch what others write: the compiler need not test that, nor keep a second
/// loop for when they do.
#ifdef __clang__
#define OXB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OXB_INDEPENDENT _Pragma("GCC ivdep")
#endif
