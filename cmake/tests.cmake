# Tests and kernel benchmarks, found by name. An empty list gives no target.
#
#   ops/*/test.cc, ops/**/*_test.cc     oxbow_op_tests          ops/*/bench.cc, *_bench.cc       oxbow_bench_kernels
#   runtime/**/*_test.cc                oxbow_runtime_tests     tests/suites/*_test.cc           oxbow_tests (end to end)
#   converter/**/*_test.cc              oxbow_converter_tests   of tests/suites, see below       oxbow_hostile_tests
#   host/*_test.cc, and of converter/   oxbow_format_tests      tests/suites/alloc_trap_test.cc  oxbow_alloc_tests
#     formats/ and text/                                        tests/suites/npu*_test.cc        oxbow_npu_tests
#   tests/fuzz/*.cc                     fuzz_*, see cmake/fuzz.cmake
#
# Of tests/suites, what only runs converted files is oxbow_model_tests, without the converter's library: builds for other
# machines and for threads take the files of another build's converter (OXB_TEST_CONVERTER).
#
# And the programs that the scripts of tests/bench drive.
# In a build for qemu the benchmarks are also oxbow_count_kernels, whose instructions are counted (tests/bench/arm).

find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest not found. Run scripts/setup (Debian: libgtest-dev, libgmock-dev), or configure with "
                      "-DOXBOW_BUILD_TESTS=OFF.")
endif()
include(GoogleTest)

add_library(oxbow_test_paths OBJECT host/testing/paths.cc)
target_link_libraries(oxbow_test_paths PRIVATE oxbow_flags)
target_compile_definitions(
  oxbow_test_paths
  PRIVATE OXB_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OXB_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
          OXB_EMULATOR="$<JOIN:${CMAKE_CROSSCOMPILING_EMULATOR}, >")

# oxbow_test(<name> SOURCES file... [LIBRARIES target...] [PRECOMPILED arguments of oxbow_precompile()...])
#
# ctest runs a suite in a process; suites whose tests take seconds run each test in its own (cmake/discover_tests.cmake).
function(oxbow_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;PRECOMPILED")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:oxbow_test_paths>)
  set(test_programs ${test_programs} ${name} PARENT_SCOPE)  # oxbow_tested
  target_link_libraries(${name} PRIVATE oxbow_flags ${arg_LIBRARIES} oxbow_core GTest::gmock GTest::gtest_main)
  # What is tested is compiled as it is shipped; the tests themselves need not be fast.
  target_compile_options(${name} PRIVATE -O1)
  if(arg_PRECOMPILED)
    oxbow_precompile(${name} ${arg_PRECOMPILED})
  endif()
  # Under qemu all of them run on every core, see below.
  if(CMAKE_CROSSCOMPILING AND name STREQUAL "oxbow_op_tests")
    return()
  endif()
  set(include_file "${PROJECT_BINARY_DIR}/${name}_tests.cmake")
  file(CONFIGURE OUTPUT "${include_file}" @ONLY CONTENT "
set(program \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}\")
set(emulator \"${CMAKE_CROSSCOMPILING_EMULATOR}\")
set(list_file \"${PROJECT_BINARY_DIR}/${name}_tests.txt\")
include(\"${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include_file}")
endfunction()

oxbow_glob(op_tests ops/testing/*.cc ops/*/test.cc ops/*/*_test.cc ops/*/*/*_test.cc ops/*_test.cc tests/support/vulkan_leaks.cc)
set(unbuilt_tests "/vulkan(_[a-z]+)?_test\\.cc$")
if(OXBOW_WITH_VULKAN)
  set(unbuilt_tests "^$")
endif()
oxbow_glob(runtime_tests RECURSE runtime/*_test.cc EXCLUDE ${unbuilt_tests})
# Under the thread sanitizer tests about threads run (scripts/test finds them by their names), so others are not compiled.
if(OXBOW_SANITIZE STREQUAL "thread")
  foreach(source IN LISTS op_tests runtime_tests)
    file(READ "${source}" text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    if(source MATCHES "test\\.cc$" AND NOT text MATCHES "\n(TEST|INSTANTIATE)[A-Z_]*\\([^)]*(Thread|Concurrent)")
      list(REMOVE_ITEM op_tests "${source}")
      list(REMOVE_ITEM runtime_tests "${source}")
    endif()
  endforeach()
endif()
oxbow_glob(converter_tests RECURSE converter/*_test.cc EXCLUDE "^converter/(formats|text)/")
# Readers of files that others made, which the address sanitizer watches by default (scripts/test).
oxbow_glob(format_tests RECURSE host/*_test.cc converter/formats/*_test.cc converter/text/*_test.cc)
# Those that convert what they have read are tests of importers, too.
foreach(source IN LISTS format_tests)
  file(STRINGS "${source}" includes REGEX "#include \"converter/(convert|importers|testing/imports)\\.h\"")
  if(includes)
    list(REMOVE_ITEM format_tests "${source}")
    list(APPEND converter_tests "${source}")
  endif()
endforeach()
set(model_suites "/(api|arena_size|beam_search|entry_points|golden|lockstep|same_bits|session)_test\\.cc$")
# Files that lie, and graphs, streams and devices made to break something.
set(hostile_suites "/(hostile_[a-z]+|opening_time|graph_limits|plain_state|executor|device|draft|generator)_test\\.cc$")
oxbow_glob(hostile_tests tests/suites/*_test.cc)
list(FILTER hostile_tests INCLUDE REGEX "${hostile_suites}")
oxbow_glob(end_to_end_tests tests/suites/*_test.cc EXCLUDE "/alloc_trap_test\\.cc$" "/npu[a-z_]*_test\\.cc$" ${hostile_suites}
           ${model_suites} ${unbuilt_tests})
oxbow_glob(model_tests tests/suites/*_test.cc)
list(FILTER model_tests INCLUDE REGEX "${model_suites}")
oxbow_glob(alloc_tests tests/suites/alloc_trap_test.cc)
oxbow_glob(model_support tests/support/*.cc EXCLUDE "/(edit_model|ethosu_[a-z]+|fake_litert|hub_folder|npu|tokenizer_vectors|vulkan_leaks)\\.cc$")
oxbow_glob(converter_support tests/support/*.cc EXCLUDE "/ethosu_[a-z]+\\.cc$")
list(REMOVE_ITEM converter_support ${model_support})

# Programs that own the precompiled headers of all tests: what reuses a target's waits until that target is built.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/empty_program.cc" CONTENT "int main() {}\n" @ONLY)
function(oxbow_test_headers name)
  add_executable(${name} EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/generated/empty_program.cc")
  target_link_libraries(${name} PRIVATE oxbow_flags oxbow_schema GTest::gmock $<TARGET_NAME_IF_EXISTS:oxbow_json>)
  target_compile_options(${name} PRIVATE -O1)
  oxbow_precompile(${name} HEADERS ${ARGN})
endfunction()
oxbow_test_headers(oxbow_graph_headers <gtest/gtest.h> <schema/model_generated.h>)
if(TARGET oxbow_converter)
  oxbow_test_headers(oxbow_converter_headers <gmock/gmock.h> ${oxbow_json_headers})
endif()

oxbow_test(
  oxbow_op_tests SOURCES ${op_tests} LIBRARIES oxbow_op_traits PRECOMPILED REUSE_FROM oxbow_graph_headers)
oxbow_test(oxbow_runtime_tests SOURCES ${runtime_tests} PRECOMPILED REUSE_FROM oxbow_graph_headers)

if(TARGET oxbow_converter)
  oxbow_test(
    oxbow_converter_tests SOURCES ${converter_tests} LIBRARIES oxbow_converter
    PRECOMPILED REUSE_FROM oxbow_converter_headers)
  oxbow_test(
    oxbow_format_tests SOURCES ${format_tests} LIBRARIES oxbow_converter_base PRECOMPILED REUSE_FROM oxbow_converter_headers)
  # Their helpers, compiled once.
  add_library(oxbow_model_support OBJECT ${model_support})
  target_link_libraries(oxbow_model_support PRIVATE oxbow_flags oxbow_host GTest::gtest)
  add_library(oxbow_converter_support OBJECT ${converter_support})
  target_link_libraries(oxbow_converter_support PRIVATE oxbow_flags oxbow_converter_base GTest::gtest)
  set(model_objects $<TARGET_OBJECTS:oxbow_model_support>)
  set(support_objects ${model_objects} $<TARGET_OBJECTS:oxbow_converter_support>)
  oxbow_test(
    oxbow_tests SOURCES ${end_to_end_tests} ${support_objects} LIBRARIES oxbow_converter
    PRECOMPILED REUSE_FROM oxbow_converter_headers)
  oxbow_test(
    oxbow_hostile_tests SOURCES ${hostile_tests} ${support_objects} LIBRARIES oxbow_converter_base
    PRECOMPILED REUSE_FROM oxbow_converter_headers)
  oxbow_test(
    oxbow_model_tests SOURCES ${model_tests} ${model_objects} LIBRARIES oxbow_host
    PRECOMPILED REUSE_FROM oxbow_graph_headers)
  if(OXBOW_WITH_NPU)
    oxbow_glob(npu_tests tests/suites/npu*_test.cc tests/support/ethosu_*.cc)
    oxbow_test(oxbow_npu_tests SOURCES ${npu_tests} examples/npu_plugin.c ${support_objects} LIBRARIES oxbow_converter)
    # In place of libLiteRt.so, opened as that is.
    add_library(oxbow_fake_litert MODULE tests/support/fake_litert.cc)
    target_link_libraries(oxbow_fake_litert PRIVATE oxbow_flags)
    target_include_directories(oxbow_fake_litert PRIVATE "${PROJECT_SOURCE_DIR}" "${FLATBUFFERS_INCLUDE_DIR}")
    set_target_properties(oxbow_fake_litert PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    add_dependencies(oxbow_npu_tests oxbow_fake_litert)
  endif()
  # It replaces malloc, which is the sanitizers' own trick.
  if(NOT OXBOW_SANITIZE)
    oxbow_test(oxbow_alloc_tests SOURCES ${alloc_tests} ${support_objects} LIBRARIES oxbow_converter)
  endif()
  # tests/suites/examples_test.cc runs them.
  foreach(example generate chat classify embed translate resume rewind)
    add_dependencies(oxbow_tests example_${example} example_${example}_cpp)
  endforeach()
  add_dependencies(oxbow_tests oxbow_cli oxbow_convert)
  foreach(test oxbow_hostile_tests oxbow_npu_tests oxbow_alloc_tests)
    if(TARGET ${test})
      add_dependencies(${test} oxbow_cli oxbow_npu_example)
      if(NOT OXBOW_SANITIZE)
        add_dependencies(${test} oxbow_convert)
      endif()
    endif()
  endforeach()
  if(NOT CMAKE_CROSSCOMPILING AND NOT OXBOW_SANITIZE)
    add_dependencies(oxbow_model_tests oxbow_convert)
  endif()
  # The thread sanitizer sees threads in sessions of the tests themselves.
  if(NOT OXBOW_SANITIZE STREQUAL "thread")
    add_dependencies(oxbow_model_tests oxbow_cli)
  endif()
  add_executable(oxbow_make_hub_folder tests/make_hub_folder.cc ${support_objects} $<TARGET_OBJECTS:oxbow_test_paths>)
  target_link_libraries(oxbow_make_hub_folder PRIVATE oxbow_flags oxbow_converter oxbow_core GTest::gtest)
  add_executable(oxbow_tokenizer_ids tests/tokenizer_ids.cc)
  target_link_libraries(oxbow_tokenizer_ids PRIVATE oxbow_flags oxbow_converter oxbow_core)
  add_executable(oxbow_compare_files tests/compare_files.cc)
  target_link_libraries(oxbow_compare_files PRIVATE oxbow_flags oxbow_host)
  include(cmake/fuzz.cmake)
endif()

# Cores without dot product, without i8mm, and with everything; of 32 bits, with NEON and without: dispatch must pick what
# they have and nothing else, and the bits must be the same.
set(qemu "")
if(CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu-a")
  list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 qemu)
endif()
if(qemu AND TARGET oxbow_op_tests)
  set(cores cortex-a53 cortex-a76 max,sve=off max)
  if(qemu STREQUAL "qemu-arm")
    set(cores cortex-a7 cortex-a9,neon=off)
  endif()
  # Suites of the ops that have kernels for some cores of 64 bits only, or call such: all that a second core can change.
  oxbow_glob(core_kernels ops/*/*neon_*.cc)
  list(TRANSFORM core_kernels REPLACE ".*/(ops/[a-z0-9_]+/)[^/]*$" "\\1")
  list(REMOVE_DUPLICATES core_kernels)
  list(JOIN core_kernels "|" core_kernels)
  set(core_suites Dispatch.*)
  foreach(test IN LISTS op_tests)
    cmake_path(GET test PARENT_PATH folder)
    file(GLOB sources "${folder}/*.cc" "${folder}/*.h")
    set(concerned FALSE)
    foreach(source IN LISTS sources)
      file(STRINGS "${source}" includes REGEX "#include \"(${core_kernels})")
      if(includes)
        set(concerned TRUE)
      endif()
    endforeach()
    file(STRINGS "${test}" names REGEX "^TEST")
    if(concerned AND names)
      foreach(name IN LISTS names)
        string(REGEX REPLACE "^TEST[A-Z_]*\\(([A-Za-z0-9]+).*" "\\1.*" name "${name}")
        list(APPEND core_suites "${name}" "*/${name}")
      endforeach()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES core_suites)
  list(JOIN core_suites ":" core_suites)
  foreach(cpu IN LISTS cores)
    if(NOT cpu STREQUAL "cortex-a53" AND NOT qemu STREQUAL "qemu-arm")
      add_test(NAME OpsWithKernelsOn.${cpu} COMMAND ${qemu} -cpu ${cpu} $<TARGET_FILE:oxbow_op_tests> --gtest_filter=${core_suites})
      set_tests_properties(OpsWithKernelsOn.${cpu} PROPERTIES TIMEOUT 1800 ENVIRONMENT "OXB_TEST_CORE=${cpu}")
    endif()
    add_test(NAME AllOpTestsOn.${cpu} COMMAND ${qemu} -cpu ${cpu} $<TARGET_FILE:oxbow_op_tests>)
    set_tests_properties(AllOpTestsOn.${cpu} PROPERTIES TIMEOUT 1800 ENVIRONMENT "OXB_TEST_CORE=${cpu}")
    if(TARGET oxbow_model_tests)
      # All golden models where the kernels differ from those of the other tests; a few pinned ones on the others.
      if(cpu MATCHES "cortex")
        set(filter "*SameBits*")
      else()
        set(filter "*SameBits.*")
      endif()
      add_test(NAME SameBitsOn.${cpu} COMMAND ${qemu} -cpu ${cpu} $<TARGET_FILE:oxbow_model_tests>
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
                 ops/testing/vulkan_runner.cc ops/testing/proof_writer.cc)
  set_source_files_properties(tests/bench/machine_limits.cc PROPERTIES COMPILE_OPTIONS -mavx2)
  target_link_libraries(oxbow_bench_peers PRIVATE oxbow_flags oxbow_core GTest::gtest XNNPACK "${PTHREADPOOL_LIBRARY}")
endif()

# Instructions of kernels, counted by a plugin of qemu, which is a library of the machine qemu runs on.
if(benches AND qemu AND NOT OXBOW_SANITIZE)
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
  execute_process(COMMAND ${qemu} --version OUTPUT_VARIABLE qemu_version ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9.]+" qemu_version "${qemu_version}")
  if(qemu_version VERSION_LESS 9)
    add_test(NAME InstructionCounts.StayWithinTheirBounds
             COMMAND "${PROJECT_SOURCE_DIR}/tests/bench/arm/check_counts" "${PROJECT_BINARY_DIR}" ${qemu})
  endif()
endif()

include("${PROJECT_SOURCE_DIR}/cmake/compat.cmake")

# The rest is for the native build without sanitizers: most looks at sources, so once is enough.
if(CMAKE_CROSSCOMPILING OR OXBOW_SANITIZE)
  return()
endif()

add_test(NAME Layering.IncludesPointOneWay COMMAND "${PROJECT_SOURCE_DIR}/tests/layering")
add_test(NAME Layering.CheckerSeesBadIncludes COMMAND "${PROJECT_SOURCE_DIR}/tests/layering" --self-test)
if(TARGET oxbow_cli)
  add_test(NAME Documents.ShowWhatTheProgramsDo COMMAND "${PROJECT_SOURCE_DIR}/tests/documents" $<TARGET_FILE_DIR:oxbow_convert>)
  add_test(NAME Budget.RowsAreWhatAConversionNeeds COMMAND "${PROJECT_SOURCE_DIR}/tests/budget" $<TARGET_FILE_DIR:oxbow_convert>)
endif()
add_test(NAME Documents.CheckerSeesDifferences COMMAND "${PROJECT_SOURCE_DIR}/tests/documents" --self-test)
add_test(NAME Links.LeadSomewhere COMMAND "${PROJECT_SOURCE_DIR}/tests/links")
add_test(NAME Links.CheckerSeesDeadOnes COMMAND "${PROJECT_SOURCE_DIR}/tests/links" --self-test)
add_test(NAME Readmes.ListWhatIsInTheirFolders COMMAND "${PROJECT_SOURCE_DIR}/tests/readmes")
add_test(NAME Readmes.CheckerSeesDifferences COMMAND "${PROJECT_SOURCE_DIR}/tests/readmes" --self-test)
# What a new op, backend, tokenizer kind, pattern or score term touches.
add_test(NAME Touched.NothingIsListedByHand COMMAND "${PROJECT_SOURCE_DIR}/tests/touched")
add_test(NAME Touched.CheckerSeesLists COMMAND "${PROJECT_SOURCE_DIR}/tests/touched" --self-test)
add_test(NAME Messages.HaveTheirSubjectFirst COMMAND "${PROJECT_SOURCE_DIR}/tests/messages")
add_test(NAME Messages.CheckerSeesOthers COMMAND "${PROJECT_SOURCE_DIR}/tests/messages" --self-test)

# A benchmark that nobody runs would not be missed when it breaks.
if(TARGET oxbow_bench_kernels)
  add_test(NAME KernelBenchmarks.AllRunOnce COMMAND oxbow_bench_kernels --benchmark_min_time=0)
endif()

# Every header compiles alone, and the C header as strict C99; built by scripts/test --thorough, for it is a tenth of all
# compiling. In runtime and ops a source proves it that includes its own
# header before any other; elsewhere a source may have precompiled headers.
set(unbuilt_headers "^runtime/device/vulkan/wrapper/(api|buffer|command|context|copies|device|instance|memory|pipeline|program|result)\\.h$")
if(OXBOW_WITH_VULKAN)
  set(unbuilt_headers "^$")
endif()
# Kernels' own headers compile with their instructions only.
list(APPEND unbuilt_headers "^ops/.*/(avx2.*|float_avx2|avx512|vnni)\\.h$")
oxbow_glob(headers RECURSE runtime/*.h runtime/*.hpp ops/*.h host/*.h converter/*.h tools/*.h EXCLUDE ${unbuilt_headers} "/testing/")
set(header_sources "")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
  if(name MATCHES "^(host|converter|tools)/" AND NOT TARGET oxbow_converter)
    continue()
  endif()
  cmake_path(REPLACE_EXTENSION header LAST_ONLY "cc" OUTPUT_VARIABLE own_source)
  if(name MATCHES "^(runtime|ops)/" AND EXISTS "${own_source}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${own_source}")
    file(STRINGS "${own_source}" first_include REGEX "^#include" LIMIT_COUNT 1)
    if(first_include STREQUAL "#include \"${name}\"")
      continue()
    endif()
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
  add_library(oxbow_header_check OBJECT EXCLUDE_FROM_ALL ${header_sources})
  target_link_libraries(oxbow_header_check PRIVATE oxbow_flags oxbow_core)
  if(TARGET oxbow_converter)
    target_link_libraries(oxbow_header_check PRIVATE oxbow_converter)
  endif()
  target_compile_options(oxbow_header_check PRIVATE -O0 -g0 -Wno-unused $<$<COMPILE_LANGUAGE:C>:-pedantic-errors>)
  set_target_properties(oxbow_header_check PROPERTIES C_EXTENSIONS OFF)
endif()
