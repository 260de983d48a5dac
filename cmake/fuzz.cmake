# Fuzz targets, found by name: tests/fuzz/<name>.cc becomes fuzz_<name>, run on tests/fuzz/seeds/<name>/. Long enough to
# find something only where sanitizers watch; elsewhere it is shown that they run. ctest -L fuzz runs them alone,
# scripts/test --thorough a minute each.

oxbow_glob(fuzz_targets tests/fuzz/*.cc EXCLUDE "/driver\\.cc$")
set(fuzz_seconds 1)
if(OXBOW_SANITIZE MATCHES "address")
  set(fuzz_seconds 5)
endif()
add_library(oxbow_fuzz_driver OBJECT tests/fuzz/driver.cc)
target_link_libraries(oxbow_fuzz_driver PRIVATE oxbow_flags)
foreach(source IN LISTS fuzz_targets)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} "${source}" $<TARGET_OBJECTS:oxbow_fuzz_driver> $<TARGET_OBJECTS:oxbow_test_paths>)
  target_link_libraries(fuzz_${name} PRIVATE oxbow_flags oxbow_converter oxbow_core)
  add_test(NAME Fuzz.${name} COMMAND fuzz_${name} --seconds ${fuzz_seconds} "${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name}")
  set_tests_properties(Fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endforeach()
