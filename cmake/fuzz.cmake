# Fuzz targets, found by name: tests/fuzz/<name>.cc becomes fuzz_<name>, run on tests/fuzz/seeds/<name>/. Where sanitizers
# watch they run for a minute all together; elsewhere it is shown that they run. ctest -L fuzz runs them alone,
# scripts/test --thorough a minute each, scripts/fuzz with libFuzzer as long as one likes.

oxbow_glob(fuzz_targets tests/fuzz/*.cc EXCLUDE "/driver\\.cc$")
# What runs models takes the whole library, and files that the converter made of tests/golden.
set(fuzz_of_models "^(model_graph|state_blob|jni_arguments)$")
if(NOT TARGET oxbow_jni)
  list(FILTER fuzz_targets EXCLUDE REGEX "/jni_arguments\\.cc$")
endif()
set(fuzz_seconds 1)
set(fuzz_models_seconds 2)
if(OXBOW_SANITIZE MATCHES "address")
  set(fuzz_seconds 3)
  set(fuzz_models_seconds 5)
endif()

# Readers of foreign files alone, so that their targets do not wait for kernels and importers.
if(OXBOW_LIBFUZZER)
  find_package(nlohmann_json REQUIRED)
  oxbow_glob(reader_sources RECURSE converter/formats/*.cc converter/text/*.cc runtime/text/*.cc runtime/base/*.cc
             runtime/generate/json_grammar.cc converter/blocks/rope.cc EXCLUDE "_test\\.cc$")
  foreach(name base64 errors folder ggml_blocks ggml_codebooks image io_file json_file npy number_text safetensors sha256 temporary_file tensor_file wav)
    list(APPEND reader_sources "${PROJECT_SOURCE_DIR}/host/${name}.cc")
  endforeach()
  add_library(oxbow_fuzz_readers STATIC ${reader_sources})
  target_link_libraries(oxbow_fuzz_readers PRIVATE oxbow_flags PUBLIC oxbow_schema_objects nlohmann_json::nlohmann_json Threads::Threads)
  target_include_directories(oxbow_fuzz_readers PRIVATE "${PROJECT_BINARY_DIR}/generated" "${PROJECT_BINARY_DIR}/runtime/generated")
  # They walk through all of Unicode, whatever the input is: to tell their comparisons to libFuzzer took most of the time.
  set(of_unicode "/tokenizer/(bert_characters|normal_form|unicode)\\.cc$")
  foreach(source IN LISTS reader_sources)
    if(source MATCHES "${of_unicode}")
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
    endif()
  endforeach()
  oxbow_precompile(oxbow_fuzz_readers SKIP "/(formats|jinja|runtime)/|${of_unicode}" HEADERS ${oxbow_json_headers})
  foreach(library PNG JPEG)
    find_package(${library} QUIET)
    if(${library}_FOUND)
      target_link_libraries(oxbow_fuzz_readers PRIVATE ${library}::${library})
    endif()
  endforeach()
  set_property(
    SOURCE host/image.cc APPEND PROPERTY COMPILE_DEFINITIONS OXB_HOST_PNG=$<BOOL:${PNG_FOUND}> OXB_HOST_JPEG=$<BOOL:${JPEG_FOUND}>)
else()
  add_library(oxbow_fuzz_driver OBJECT tests/fuzz/driver.cc)
  target_link_libraries(oxbow_fuzz_driver PRIVATE oxbow_flags)
endif()

# What the schema says of itself, for fuzzers that change every field there is.
set(schema_bytes "${PROJECT_BINARY_DIR}/generated/schema/model_bfbs_generated.h")
add_custom_command(
  OUTPUT "${schema_bytes}"
  COMMAND "${FLATC}" --cpp --bfbs-gen-embed -o "${PROJECT_BINARY_DIR}/generated/bfbs" "${PROJECT_SOURCE_DIR}/schema/model.fbs"
  COMMAND "${CMAKE_COMMAND}" -E copy "${PROJECT_BINARY_DIR}/generated/bfbs/model_bfbs_generated.h" "${schema_bytes}"
  DEPENDS "${PROJECT_SOURCE_DIR}/schema/model.fbs"
  VERBATIM)

# All of them, for builds that make only what they test.
add_custom_target(oxbow_fuzz)
foreach(source IN LISTS fuzz_targets)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} "${source}" $<TARGET_OBJECTS:oxbow_test_paths>)
  target_link_libraries(fuzz_${name} PRIVATE oxbow_flags)
  add_dependencies(oxbow_fuzz fuzz_${name})
  set(seconds ${fuzz_seconds})
  if(name MATCHES "${fuzz_of_models}")
    target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:oxbow_model_support> "${schema_bytes}")
    target_include_directories(fuzz_${name} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/generated")
    target_link_libraries(fuzz_${name} PRIVATE oxbow_core GTest::gtest)
    if(NOT OXBOW_SANITIZE)  # There another build's converter serves.
      add_dependencies(fuzz_${name} oxbow_convert)
    endif()
    set(seconds ${fuzz_models_seconds})
    if(name STREQUAL "jni_arguments")
      target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:oxbow_jni>)
      target_include_directories(fuzz_${name} SYSTEM PRIVATE "${OXBOW_JNI_INCLUDE}" "${OXBOW_JNI_INCLUDE}/linux")
    endif()
  elseif(name STREQUAL "index_table")
    target_link_libraries(fuzz_${name} PRIVATE oxbow_core)
  elseif(OXBOW_LIBFUZZER)
    target_link_libraries(fuzz_${name} PRIVATE oxbow_fuzz_readers)
  else()
    target_link_libraries(fuzz_${name} PRIVATE oxbow_converter_base oxbow_core)
  endif()
  if(OXBOW_LIBFUZZER)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    continue()
  endif()
  target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:oxbow_fuzz_driver>)
  add_test(NAME Fuzz.${name} COMMAND fuzz_${name} --seconds ${seconds} "${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name}")
  set_tests_properties(Fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endforeach()
