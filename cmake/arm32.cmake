# 32-bit ARM Linux (ARMv7-A, hard float) from another machine; tests run under qemu's user emulation.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)
set(CMAKE_LIBRARY_ARCHITECTURE arm-linux-gnueabihf)
# GCC tells that version 7 passes 64-bit members otherwise than version 6 did.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Every core that qemu knows for it has NEON; Tegra 2 had none, and qemu's cortex-a9 can be told so.
set(OXBOW_QEMU_CPU cortex-a7 CACHE STRING "The core qemu emulates for the tests")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-arm;-cpu;${OXBOW_QEMU_CPU}")
