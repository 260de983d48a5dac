# Tests and kernel benchmarks, found by name. An empty list gives no target.
#
#   ops/*/test.cc, ops/**/*_test.cc   oxbow_op_tests           ops/*/bench.cc, *_bench.cc  oxbow_bench_kernels
#   runtime/**/*_test.cc              oxbow_runtime_tests      tests/*_test.cc           oxbow_tests (end to end)
#   converter/**/*_test.cc            oxbow_converter_tests    tests/alloc_trap_test.cc  oxbow_alloc_tests
#   tests/fuzz/*.cc                   fuzz_*, see cmake/fuzz.cmake
#
# And the programs that the scripts of tests/bench drive.
# In a build for qemu the benchmarks are also oxbow_count_kernels, whose instructions are counted (tests/bench/arm).

find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest not found. Run scripts/setup (Debian: libgtest-dev, libgmock-dev), or configure with "
                      "-DOXBOW_BUILD_TESTS=OFF.")
endif()
include(GoogleTest)

# oxbow_test(<name> SOURCES file... [LIBRARIES target...])
function(oxbow_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE oxbow_flags ${arg_LIBRARIES} oxbow_core GTest::gmock GTest::gtest_main)
  # What is tested is compiled as it is shipped; the tests themselves need not be fast.
  target_compile_options(${name} PRIVATE -O1)
  target_compile_definitions(
    ${name}
    PRIVATE OXB_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OXB_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
            # What to put before a program of OXB_BIN_DIR to run it here; empty when it runs by itself.
            OXB_EMULATOR="$<JOIN:${CMAKE_CROSSCOMPILING_EMULATOR}, >")
  if(CMAKE_CROSSCOMPILING)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900)
  elseif(name STREQUAL oxbow_tests)
    # A test for each folder in tests/golden, which may be new without anything being built anew.
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 1200)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 600)
  endif()
endfunction()

oxbow_glob(op_tests ops/testing/*.cc ops/*/test.cc ops/*/*_test.cc ops/*_test.cc tests/support/vulkan_leaks.cc)
set(unbuilt_tests "/vulkan(_[a-z]+)?_test\\.cc$")
if(OXBOW_WITH_VULKAN)
  set(unbuilt_tests "^$")
endif()
oxbow_glob(runtime_tests RECURSE runtime/*_test.cc EXCLUDE ${unbuilt_tests})
oxbow_glob(converter_tests RECURSE converter/*_test.cc)
oxbow_glob(end_to_end_tests tests/*_test.cc EXCLUDE "/alloc_trap_test\\.cc$" ${unbuilt_tests})
oxbow_glob(alloc_tests tests/alloc_trap_test.cc)
oxbow_glob(test_support tests/support/*.cc)

oxbow_test(oxbow_op_tests SOURCES ${op_tests})
oxbow_test(oxbow_runtime_tests SOURCES ${runtime_tests})

if(TARGET oxbow_converter)
  oxbow_test(oxbow_converter_tests SOURCES ${converter_tests} LIBRARIES oxbow_converter)
  oxbow_test(oxbow_tests SOURCES ${end_to_end_tests} ${test_support} LIBRARIES oxbow_converter)
  # It replaces malloc, which is the sanitizers' own trick.
  if(NOT OXBOW_SANITIZE)
    oxbow_test(oxbow_alloc_tests SOURCES ${alloc_tests} ${test_support} LIBRARIES oxbow_converter)
  endif()
  foreach(test oxbow_tests oxbow_alloc_tests)
    foreach(program oxbow_convert oxbow_cli)
      if(TARGET ${test} AND TARGET ${program})
        add_dependencies(${test} ${program})
      endif()
    endforeach()
  endforeach()
  add_executable(oxbow_make_hub_folder tests/make_hub_folder.cc ${test_support})
  target_link_libraries(oxbow_make_hub_folder PRIVATE oxbow_flags oxbow_converter oxbow_core GTest::gtest)
  target_compile_definitions(
    oxbow_make_hub_folder PRIVATE OXB_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OXB_EMULATOR=""
                                  OXB_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  include(cmake/fuzz.cmake)
endif()

# Cores without dot product, without i8mm, and with everything: dispatch must pick what they have and nothing else, and
# the bits must be the same.
if(CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu-aarch64" AND TARGET oxbow_op_tests)
  list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 qemu)
  foreach(cpu cortex-a53 cortex-a76 max,sve=off max)
    add_test(NAME AllOpTestsOn.${cpu} COMMAND ${qemu} -cpu ${cpu} $<TARGET_FILE:oxbow_op_tests> --gtest_brief=1)
    set_tests_properties(AllOpTestsOn.${cpu} PROPERTIES TIMEOUT 1800 ENVIRONMENT "OXB_TEST_CORE=${cpu}")
    if(TARGET oxbow_tests)
      # All golden models where the kernels differ from those of the other tests; a few pinned ones on the others.
      if(cpu MATCHES "cortex")
        set(filter "*SameBits*")
      else()
        set(filter "*SameBits.*")
      endif()
      add_test(NAME SameBitsOn.${cpu} COMMAND ${qemu} -cpu ${cpu} $<TARGET_FILE:oxbow_tests> --gtest_brief=1
                                              --gtest_filter=${filter})
      set_tests_properties(SameBitsOn.${cpu} PROPERTIES TIMEOUT 1800)
    endif()
  endforeach()
endif()

find_package(benchmark QUIET)
oxbow_glob(benches ops/*/bench.cc)
oxbow_glob(step_benches ops/testing/*.cc ops/*/*_bench.cc)
if(benches AND benchmark_FOUND AND NOT OXBOW_SANITIZE)
  add_executable(oxbow_bench_kernels tests/bench/kernels.cc ${benches} ${step_benches})
  target_link_libraries(oxbow_bench_kernels PRIVATE oxbow_flags oxbow_core benchmark::benchmark GTest::gtest)
endif()

# Run a model, or its tokenizer, for the scripts of tests/bench.
foreach(server session tokenizer)
  add_executable(oxbow_bench_${server} tests/bench/${server}_server.cc)
  target_link_libraries(oxbow_bench_${server} PRIVATE oxbow_flags oxbow::oxbow)
endforeach()

# Kernels beside XNNPACK's, where it is a backend.
find_library(PTHREADPOOL_LIBRARY pthreadpool)
mark_as_advanced(PTHREADPOOL_LIBRARY)
if(OXBOW_WITH_XNNPACK AND PTHREADPOOL_LIBRARY AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND NOT OXBOW_SANITIZE)
  add_executable(oxbow_bench_peers tests/bench/kernel_server.cc tests/bench/machine_limits.cc ops/testing/op_runner.cc
                 ops/testing/vulkan_runner.cc)
  set_source_files_properties(tests/bench/machine_limits.cc PROPERTIES COMPILE_OPTIONS -mavx2)
  target_link_libraries(oxbow_bench_peers PRIVATE oxbow_flags oxbow_core GTest::gtest XNNPACK "${PTHREADPOOL_LIBRARY}")
endif()

# Instructions of kernels, counted by a plugin of qemu, which is a library of the machine qemu runs on.
if(benches AND CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu-aarch64" AND NOT OXBOW_SANITIZE)
  add_executable(oxbow_count_kernels tests/bench/arm/count_kernels.cc ${benches})
  target_link_libraries(oxbow_count_kernels PRIVATE oxbow_flags oxbow_core)
  # Addresses as in the file, and a dynamic linker that is done before anything is counted. Not static: backends are not.
  target_link_options(oxbow_count_kernels PRIVATE -no-pie LINKER:-z,now)

  find_program(OXBOW_HOST_CC NAMES gcc cc REQUIRED)
  set(count_plugin "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libcount_plugin.so")
  set(count_plugin_source "${PROJECT_SOURCE_DIR}/tests/bench/arm/count_plugin.c")
  add_custom_command(
    OUTPUT "${count_plugin}"
    COMMAND "${OXBOW_HOST_CC}" -shared -fPIC -O2 -Wall -Wextra -Werror -fvisibility=hidden -o "${count_plugin}"
            "${count_plugin_source}"
    DEPENDS "${count_plugin_source}"
    VERBATIM)
  add_custom_target(oxbow_count_plugin ALL DEPENDS "${count_plugin}")
  # The plugin is written to the first version of qemu's interface, which qemu 9 gave up.
  execute_process(COMMAND qemu-aarch64 --version OUTPUT_VARIABLE qemu_version ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9.]+" qemu_version "${qemu_version}")
  if(qemu_version VERSION_LESS 9)
    add_test(NAME InstructionCounts.StayWithinTheirBounds
             COMMAND "${PROJECT_SOURCE_DIR}/tests/bench/arm/check_counts" "${PROJECT_BINARY_DIR}")
  endif()
endif()

# The rest is for the native build without sanitizers: most looks at sources, so once is enough.
if(CMAKE_CROSSCOMPILING OR OXBOW_SANITIZE)
  return()
endif()

add_test(NAME Layering.IncludesPointOneWay COMMAND "${PROJECT_SOURCE_DIR}/tests/layering")
add_test(NAME Layering.CheckerSeesBadIncludes COMMAND "${PROJECT_SOURCE_DIR}/tests/layering" --self-test)

# A benchmark that nobody runs would not be missed when it breaks.
if(TARGET oxbow_bench_kernels)
  add_test(NAME KernelBenchmarks.AllRunOnce COMMAND oxbow_bench_kernels --benchmark_min_time=0)
endif()

# Every header compiles alone, and the C header as strict C99.
set(unbuilt_headers "^runtime/vulkan/(api|buffer|command|context|copies|device|instance|memory|pipeline|program|result)\\.h$")
if(OXBOW_WITH_VULKAN)
  set(unbuilt_headers "^$")
endif()
oxbow_glob(headers RECURSE runtime/*.h runtime/*.hpp ops/*.h converter/*.h tools/*.h EXCLUDE ${unbuilt_headers} "/testing/")
set(header_sources "")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
  if(name MATCHES "^(converter|tools)/" AND NOT TARGET oxbow_converter)
    continue()
  endif()
  string(MAKE_C_IDENTIFIER "${name}" id)
  foreach(language cc c)
    if(language STREQUAL "c" AND NOT name STREQUAL "runtime/api/oxbow.h")
      continue()
    endif()
    set(source "${PROJECT_BINARY_DIR}/generated/headers/${id}.${language}")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${name}\"\n" @ONLY)
    list(APPEND header_sources "${source}")
  endforeach()
endforeach()
if(header_sources)
  add_library(oxbow_header_check OBJECT ${header_sources})
  target_link_libraries(oxbow_header_check PRIVATE oxbow_flags oxbow_core)
  if(TARGET oxbow_converter)
    target_link_libraries(oxbow_header_check PRIVATE oxbow_converter)
  endif()
  target_compile_options(oxbow_header_check PRIVATE -O0 -g0 -Wno-unused $<$<COMPILE_LANGUAGE:C>:-pedantic-errors>)
  set_target_properties(oxbow_header_check PROPERTIES C_EXTENSIONS OFF)
endif()
