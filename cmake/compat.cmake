# What was promised to programs and files of earlier versions (tests/compat). Also in builds with sanitizers.

set(compat_dir "${PROJECT_SOURCE_DIR}/tests/compat")
set(compat_models "${compat_dir}/0.1/files/gpt2-g1_tied-int8.oxb" "${compat_dir}/0.1/files/distilbert-db1_cls-f32.oxb")
find_program(OXBOW_PYTHON python3)

# oxbow.h as it was, the library as it is.
add_executable(oxbow_compat_program "${compat_dir}/program.c")
target_include_directories(oxbow_compat_program BEFORE PRIVATE "${compat_dir}/0.1")
target_link_libraries(oxbow_compat_program PRIVATE oxbow m)
set_target_properties(oxbow_compat_program PROPERTIES LINKER_LANGUAGE CXX C_STANDARD 99)
add_test(NAME Compat.AProgramOfTheFirstHeaderRuns COMMAND oxbow_compat_program ${compat_models})

add_executable(oxbow_compat_structs "${compat_dir}/structs.cc")
target_link_libraries(oxbow_compat_structs PRIVATE oxbow_flags oxbow)
add_test(NAME Compat.StructsOfOtherSizesWork COMMAND oxbow_compat_structs ${compat_models})

if(OXBOW_PYTHON)
  set(null_test "${PROJECT_BINARY_DIR}/null_test.cc")
  set(compat_headers "${PROJECT_SOURCE_DIR}/runtime/api/oxbow.h" "${PROJECT_SOURCE_DIR}/runtime/api/oxbow_index.h")
  add_custom_command(
    OUTPUT "${null_test}"
    COMMAND "${OXBOW_PYTHON}" "${compat_dir}/make_null_test" ${compat_headers} "${null_test}"
    DEPENDS "${compat_dir}/make_null_test" "${compat_dir}/header.py" ${compat_headers}
    COMMENT "Calls with null for every function of the headers")
  add_executable(oxbow_compat_nulls "${null_test}")
  target_link_libraries(oxbow_compat_nulls PRIVATE oxbow_flags oxbow)
  list(GET compat_models 0 compat_generator)
  add_test(NAME Compat.NullIsAnErrorEverywhere COMMAND oxbow_compat_nulls "${compat_generator}")
endif()

# All of them, for builds that make only what they test.
add_custom_target(oxbow_compat_tests DEPENDS oxbow_compat_program oxbow_compat_structs $<TARGET_NAME_IF_EXISTS:oxbow_compat_nulls>)

if(CMAKE_CROSSCOMPILING OR OXBOW_SANITIZE)
  return()
endif()

if(TARGET oxbow_cli)
  add_test(NAME Compat.FilesOfEarlierVersionsGiveWhatTheyGave COMMAND "${compat_dir}/check_files" $<TARGET_FILE:oxbow_cli>)
endif()
add_test(NAME Compat.TheFormatOnlyGrows
         COMMAND "${FLATC}" --conform "${compat_dir}/0.1/model.fbs" "${PROJECT_SOURCE_DIR}/schema/model.fbs")
add_test(NAME Compat.TheHeaderOnlyGrowsAndAllOfItIsKnown COMMAND "${compat_dir}/check_header")
add_test(NAME Compat.CheckerSeesOtherHeaders COMMAND "${compat_dir}/check_header" --self-test)
add_test(NAME Compat.HeaderExportsAndJavaAgree COMMAND "${compat_dir}/check_exports")
add_test(NAME Compat.CheckerSeesDifferences COMMAND "${compat_dir}/check_exports" --self-test)
add_test(NAME Compat.EnumerationsAndTheirMirrorsAgree COMMAND "${compat_dir}/check_enums")
add_test(NAME Compat.CheckerSeesOtherEnumerations COMMAND "${compat_dir}/check_enums" --self-test)
