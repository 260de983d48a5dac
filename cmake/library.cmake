# The library users link, and what the rest of the repository links:
#   oxbow       runtime + ops, static or shared; exports only the C API; installed as oxbow::oxbow
#   oxbow_core  the same objects with every internal symbol reachable, for converter, tools and tests

set(objects $<TARGET_OBJECTS:oxbow_runtime> $<TARGET_OBJECTS:oxbow_ops>)

add_library(oxbow ${objects})
add_library(oxbow::oxbow ALIAS oxbow)
# The first version whose programs run with this library (tests/compat shows it). Before 1.0 the major number says nothing.
set(OXBOW_ABI_VERSION 0.1)
set_target_properties(oxbow PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${OXBOW_ABI_VERSION} LINKER_LANGUAGE CXX)
target_compile_features(oxbow INTERFACE cxx_std_20)  # For oxbow.hpp.
target_link_libraries(oxbow PUBLIC Threads::Threads PRIVATE ${backend_libraries})
target_include_directories(
  oxbow INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# <oxbow/oxbow.h> and <oxbow/oxbow.hpp> also work for a project that uses add_subdirectory().
foreach(header oxbow.h oxbow.hpp oxbow_index.h oxbow_npu.h)
  if(EXISTS "${PROJECT_SOURCE_DIR}/runtime/api/${header}")
    configure_file("${PROJECT_SOURCE_DIR}/runtime/api/${header}" "${PROJECT_BINARY_DIR}/include/oxbow/${header}" COPYONLY)
  endif()
endforeach()

if(BUILD_SHARED_LIBS)
  # What is exported, and under which version, is the reviewed list and nothing else.
  set(exports_file "${PROJECT_SOURCE_DIR}/android/native/exports-c.txt")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${exports_file}")
  file(STRINGS "${exports_file}" exports REGEX "^oxb_")
  set(map_versions "")
  foreach(export IN LISTS exports)
    separate_arguments(export UNIX_COMMAND "${export}")
    list(GET export 0 name)
    list(GET export 1 version)
    list(APPEND map_versions ${version})
    string(APPEND names_of_${version} "    ${name};\n")
  endforeach()
  list(REMOVE_DUPLICATES map_versions)
  list(SORT map_versions COMPARE NATURAL)
  set(map_text "")
  set(map_before "")
  foreach(version IN LISTS map_versions)
    string(APPEND map_text "${version} {\n  global:\n${names_of_${version}}")
    if(map_before STREQUAL "")
      string(APPEND map_text "  local: *;\n")
    endif()
    string(APPEND map_text "}${map_before};\n")
    set(map_before " ${version}")
  endforeach()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/oxbow.map" CONTENT "${map_text}" @ONLY)
  target_link_options(
    oxbow PRIVATE "LINKER:--version-script=${PROJECT_BINARY_DIR}/oxbow.map" LINKER:--gc-sections ${oxbow_small_link})
  set_property(TARGET oxbow APPEND PROPERTY LINK_DEPENDS "${PROJECT_BINARY_DIR}/oxbow.map")
  if(NOT OXBOW_SANITIZE)
    target_link_options(oxbow PRIVATE LINKER:--no-undefined)
  endif()
  add_library(oxbow_core STATIC EXCLUDE_FROM_ALL ${objects})
  set_target_properties(oxbow_core PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(oxbow_core PUBLIC oxbow_ops_config oxbow_schema_objects Threads::Threads ${backend_libraries})
else()
  add_library(oxbow_core INTERFACE)
  target_link_libraries(oxbow_core INTERFACE oxbow oxbow_ops_config oxbow_schema_objects)
endif()
