# 64-bit ARM Linux from another machine; tests run under qemu's user emulation.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# `max` has dot product and i8mm; OXBOW_QEMU_CPU picks another core, e.g. cortex-a76.
set(OXBOW_QEMU_CPU max CACHE STRING "The core qemu emulates for the tests")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;${OXBOW_QEMU_CPU}")
