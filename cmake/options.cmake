# Compiler settings shared by every target, and the internal interface targets that carry them:
#   oxbow_flags    warnings as errors, include path from the repository root
#   oxbow_no_throw what runtime and ops add: no exceptions, no RTTI, sections the linker can drop

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

  find_program(OXBOW_CCACHE ccache)
  if(OXBOW_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    # Paths below the repository count as relative, so that another clone of it finds the same objects.
    set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${OXBOW_CCACHE}")
    set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
  endif()
endif()

# A fused multiply-add would round differently on each ISA, and int8 results must be the same bits everywhere.
add_compile_options(-ffp-contract=off)

if(OXBOW_SANITIZE)
  # vptr needs RTTI, which runtime and ops do not have.
  add_compile_options("-fsanitize=${OXBOW_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${OXBOW_SANITIZE}")
  if(OXBOW_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

find_package(Threads REQUIRED)

add_library(oxbow_flags INTERFACE)
target_compile_options(oxbow_flags INTERFACE -Wall -Wextra -Wshadow -Werror)
# GCC 12 sees overlapping copies in std::string's operator+ where there are none (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(oxbow_flags INTERFACE -Wno-restrict)
endif()
target_include_directories(oxbow_flags INTERFACE "${PROJECT_SOURCE_DIR}")

add_library(oxbow_no_throw INTERFACE)
target_compile_options(
  oxbow_no_throw INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti> -ffunction-sections -fdata-sections)
