# oxbow_glob(<out> [RECURSE] PATTERN... [EXCLUDE REGEX...])
#
# Files below the current source directory that match a pattern and no regex (matched against the path relative to that
# directory), sorted. The build notices new files by itself.
function(oxbow_glob out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RECURSE" "" "EXCLUDE")
  set(mode GLOB)
  if(arg_RECURSE)
    set(mode GLOB_RECURSE)
  endif()
  list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(${mode} files RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS ${arg_UNPARSED_ARGUMENTS})
  foreach(regex IN LISTS arg_EXCLUDE)
    list(FILTER files EXCLUDE REGEX "${regex}")
  endforeach()
  list(TRANSFORM files PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(SORT files)
  set(${out} "${files}" PARENT_SCOPE)
endfunction()
