# Included by ctest for each test program (cmake/tests.cmake), which sets
#   program     its path
#   emulator    what runs it, a list; may be empty
#   list_file   where the list of its tests is kept
# and makes a test of ctest of each suite: starting a program and setting up a suite cost more than most tests. The output
# of one that fails names the test.

cmake_policy(VERSION 3.25)
if(NOT EXISTS "${program}")
  return()  # Not part of this build so far: scripts/test asks for the programs it needs.
endif()

# Suites whose tests take seconds each, or look at their own process: a process for each test.
set(single "^(CliTokens|EndlessLine|Vulkan|HostileTorch|HostileFormats|HostileTokenizerFiles|HostileTables|LongText|SessionTest|Backends|StaticScales)$")
# Every pack of tests/golden, new folders without anything being built anew: a process for each kind of test.
set(packs "^(CliGolden|AllVulkanGolden|VulkanGolden|SameBitsOfAll)$")

if(NOT EXISTS "${list_file}" OR "${program}" IS_NEWER_THAN "${list_file}" OR program MATCHES "/oxbow_(model_)?tests$")
  execute_process(
    COMMAND ${emulator} "${program}" --gtest_list_tests
    OUTPUT_VARIABLE listed
    RESULT_VARIABLE failure
    TIMEOUT 120)
  if(failure)
    message(FATAL_ERROR "${program} --gtest_list_tests: ${failure}")
  endif()
  file(WRITE "${list_file}" "${listed}")
endif()

get_filename_component(label "${program}" NAME)  # ctest -L oxbow_tests
file(STRINGS "${list_file}" lines)
set(suite "")
set(kinds "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_]+/)?([A-Za-z0-9_]+)\\.")
    set(suite "${CMAKE_MATCH_0}")
    set(name "${CMAKE_MATCH_2}")
    set(kinds "")
    if(NOT name MATCHES "${single}" AND NOT name MATCHES "${packs}")
      string(REGEX REPLACE "\\.$" "" test "${suite}")
      add_test("${test}" ${emulator} "${program}" "--gtest_filter=${suite}*")
      set_tests_properties("${test}" PROPERTIES TIMEOUT 3600 LABELS "${label}")
    endif()
  elseif(line MATCHES "^  ([^ ]+)" AND suite)
    set(test "${suite}${CMAKE_MATCH_1}")
    set(filter "${test}")
    if(name MATCHES "${packs}")
      string(REGEX REPLACE "/[^/]*$" "" test "${test}")
      set(filter "${test}/*")
      if(test IN_LIST kinds)
        continue()
      endif()
      list(APPEND kinds "${test}")
    elseif(NOT name MATCHES "${single}")
      continue()
    endif()
    add_test("${test}" ${emulator} "${program}" "--gtest_filter=${filter}")
    set_tests_properties("${test}" PROPERTIES TIMEOUT 3600 LABELS "${label}")
  endif()
endforeach()
