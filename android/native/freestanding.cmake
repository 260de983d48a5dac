# Toolchain: the Android target without the NDK, to see on any machine that the core compiles and links for it, and what
# it asks of the system (tests/android/freestanding). Debian's clang and lld; the C++ headers of Debian's cross
# compiler stand in for the NDK's; the libraries are empty ones that hold the names of system-symbols.txt and nothing
# else, so that a new one does not link. The result is checked, not run.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-14)
set(CMAKE_CXX_COMPILER clang++-14)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-android24)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-android24)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# There is nothing to link a program with.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_HAVE_LIBC_PTHREAD TRUE)

set(sysroot /usr/aarch64-linux-gnu/include)
set(headers "-nostdinc++ -isystem ${sysroot}/c++/12 -isystem ${sysroot}/c++/12/aarch64-linux-gnu -isystem ${sysroot}")
# The NDK links its own helpers for atomics into each library.
set(target "-mno-outline-atomics -isystem ${CMAKE_CURRENT_LIST_DIR}/headers -include ${CMAKE_CURRENT_LIST_DIR}/headers/bionic.h")
set(CMAKE_C_FLAGS_INIT "-isystem ${sysroot} ${target}")
set(CMAKE_CXX_FLAGS_INIT "${headers} ${target}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT
    "-nostdlib -Wno-unused-command-line-argument -fuse-ld=lld -Wl,-z,max-page-size=16384 -L${CMAKE_BINARY_DIR}/system -lc -lm -lc++stub")
