# Compiler settings shared by every target, and the internal interface targets that carry them:
#   oxbow_flags    warnings as errors, include path from the repository root
#   oxbow_no_throw what runtime and ops add: no exceptions, no RTTI, sections the linker can drop
# And oxbow_precompile() for targets that spend more on the headers of libraries than on their own sources.

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
    # Paths below the repository count as relative, so that another clone of it finds the same objects. The sloppiness is
    # what precompiled headers need: no macro of ours is defined after one, and none tells the time.
    set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                 CCACHE_SLOPPINESS=pch_defines,time_macros "${OXBOW_CCACHE}")
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
if(OXBOW_LIBFUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)

add_library(oxbow_flags INTERFACE)
target_compile_options(oxbow_flags INTERFACE -Wall -Wextra -Wshadow -Werror)
# GCC 12 sees overlapping copies in std::string's operator+ where there are none (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(oxbow_flags INTERFACE -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC 12's std::stable_sort uses what GCC 12 calls deprecated, which Clang tells those who call it.
  target_compile_options(oxbow_flags INTERFACE -Wthread-safety -Wno-deprecated-declarations)
  if(OXBOW_SANITIZE)  # Checks stand between loops and vectors.
    target_compile_options(oxbow_flags INTERFACE -Wno-pass-failed)
  endif()
endif()
target_include_directories(oxbow_flags INTERFACE "${PROJECT_SOURCE_DIR}")

add_library(oxbow_no_throw INTERFACE)
target_compile_options(
  oxbow_no_throw INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti> -ffunction-sections -fdata-sections)
# Nothing is thrown through runtime and ops, so a tenth of the library would serve only those who look at a crash. Frame
# pointers, which Arm's compilers keep unless told, would serve them alone, too.
if(OXBOW_SMALL)
  target_compile_options(oxbow_no_throw INTERFACE -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer)
endif()
# For what does not compute. Clang's -Oz also shares what functions have in common; GCC's is its -Os.
set(oxbow_smallest $<IF:$<CXX_COMPILER_ID:Clang>,-Oz,-Os>)

# Links a small library. lld folds functions that are equal (none is told from another by its address) and packs the places
# that the loader has to fill in, in the way that API level 24, or glibc 2.36, reads. Android's linker is lld anyway; GCC finds
# it by its folder.
set(oxbow_small_link "")
if(OXBOW_SMALL AND (ANDROID OR CMAKE_CXX_COMPILER_TARGET MATCHES "android"))
  set(oxbow_small_link LINKER:-O2 LINKER:--icf=all LINKER:--no-rosegment LINKER:--pack-dyn-relocs=android)
elseif(OXBOW_SMALL AND NOT OXBOW_SANITIZE)
  file(GLOB folders "/usr/lib/llvm-*/bin")
  list(SORT folders COMPARE NATURAL ORDER DESCENDING)
  find_path(OXBOW_LLD_FOLDER ld.lld PATHS ${folders} NO_DEFAULT_PATH)
  mark_as_advanced(OXBOW_LLD_FOLDER)
  if(OXBOW_LLD_FOLDER)
    set(oxbow_small_link -fuse-ld=lld "-B${OXBOW_LLD_FOLDER}" LINKER:-O2 LINKER:--icf=all LINKER:--no-rosegment
                         LINKER:-z,pack-relative-relocs)
  else()
    message(STATUS "OXBOW_SMALL: there is no lld, so the library will be a tenth larger")
  endif()
endif()

# oxbow_precompile(<target> [SKIP regex] HEADERS header... | REUSE_FROM <target>)
#
# SKIP: sources that include little of it; reading what is precompiled costs about a third of reading what it came from.
# Elsewhere than in runtime and ops, oxbow_header_check and builds without OXBOW_PCH see what a source lacks.
option(OXBOW_PCH "Precompile the headers of libraries (GCC, Clang)" ${PROJECT_IS_TOP_LEVEL})
function(oxbow_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SKIP;REUSE_FROM" "HEADERS")
  if(NOT OXBOW_PCH OR NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    return()
  endif()
  if(arg_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${arg_REUSE_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${arg_HEADERS})
  endif()
  if(arg_SKIP)
    get_target_property(skipped ${target} SOURCES)
    list(FILTER skipped INCLUDE REGEX "${arg_SKIP}")
    set_source_files_properties(${skipped} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # ccache takes a header that was made again for the one before only without its time.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
    return()
  endif()
  # ccache preprocesses first. In a precompiled std::string GCC 12 sees copies out of bounds where there are none, which
  # it does not look for in a system header.
  set(false_alarms -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;${false_alarms}>")
endfunction()
set(oxbow_json_headers <nlohmann/json.hpp> <schema/model_generated.h>)

# oxbow_precompile_library(<target> [SKIP regex]): for runtime and ops, where what a source lacks would not be seen: the
# shared library's build goes without, so that it is. Not where sources are compiled for size, each in its own way.
option(OXBOW_PCH_LIBRARY "Precompile the schema for runtime and ops, too; for builds beside one that does not" OFF)
function(oxbow_precompile_library target)
  if(OXBOW_PCH_LIBRARY AND NOT OXBOW_SMALL)
    oxbow_precompile(${target} ${ARGN} HEADERS <schema/model_generated.h> <algorithm>)
  endif()
endfunction()
