# The library users link, and what the rest of the repository links:
#   oxbow       runtime + ops, static or shared; exports only the C API; installed as oxbow::oxbow
#   oxbow_core  the same objects with every internal symbol reachable, for converter, tools and tests

set(objects $<TARGET_OBJECTS:oxbow_runtime> $<TARGET_OBJECTS:oxbow_ops>)

add_library(oxbow ${objects})
add_library(oxbow::oxbow ALIAS oxbow)
set_target_properties(oxbow PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX)
target_link_libraries(oxbow PUBLIC Threads::Threads PRIVATE ${backend_libraries})
target_include_directories(
  oxbow INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# <oxbow/oxbow.h> and <oxbow/oxbow.hpp> also work for a project that uses add_subdirectory().
foreach(header oxbow.h oxbow.hpp oxbow_index.h)
  if(EXISTS "${PROJECT_SOURCE_DIR}/runtime/api/${header}")
    configure_file("${PROJECT_SOURCE_DIR}/runtime/api/${header}" "${PROJECT_BINARY_DIR}/include/oxbow/${header}" COPYONLY)
  endif()
endforeach()

if(BUILD_SHARED_LIBS)
  target_link_options(oxbow PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/oxbow.map" LINKER:--gc-sections)
  set_property(TARGET oxbow APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/oxbow.map")
  if(NOT OXBOW_SANITIZE)
    target_link_options(oxbow PRIVATE LINKER:--no-undefined)
  endif()
  add_library(oxbow_core STATIC EXCLUDE_FROM_ALL ${objects})
  set_target_properties(oxbow_core PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(oxbow_core PUBLIC oxbow_ops_config oxbow_schema Threads::Threads ${backend_libraries})
else()
  add_library(oxbow_core INTERFACE)
  target_link_libraries(oxbow_core INTERFACE oxbow oxbow_ops_config oxbow_schema)
endif()
