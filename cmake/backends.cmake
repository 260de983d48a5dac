# Optional libraries that serve dense layers (docs/backends.md), and Vulkan (docs/vulkan.md). Each option is ON, OFF or AUTO: ON when it is found.
# A library whose interface is another one, which a small program finds out, counts as not found.
# Sets OXBOW_WITH_<NAME> to true or false and the list backend_libraries to what the library links then. Which there are is
# told by runtime/device/backends.inc: the list optional_backends, and OXB_BUILD_<NAME>=0|1 of the target oxbow_backends.

include(CheckCXXSourceCompiles)

# oxbow_backend(<NAME> <packages> <header> <program> <library>...)
macro(oxbow_backend name packages header program)
  set(OXBOW_WITH_${name} OFF CACHE STRING "Build the backend ${name}: ON, OFF or AUTO")
  set_property(CACHE OXBOW_WITH_${name} PROPERTY STRINGS ON OFF AUTO)
  string(TOUPPER "${OXBOW_WITH_${name}}" wanted)
  set(OXBOW_WITH_${name} FALSE)
  if(wanted STREQUAL "AUTO" OR wanted)
    find_path(OXBOW_${name}_INCLUDE ${header})
    mark_as_advanced(OXBOW_${name}_INCLUDE)
    set(found ${OXBOW_${name}_INCLUDE})
    foreach(library ${ARGN})
      find_library(OXBOW_${name}_${library} ${library})
      mark_as_advanced(OXBOW_${name}_${library})
      if(NOT OXBOW_${name}_${library})
        set(found FALSE)
      endif()
    endforeach()
    if(found AND NOT "${program}" STREQUAL "")
      set(CMAKE_REQUIRED_INCLUDES "${OXBOW_${name}_INCLUDE}")
      set(CMAKE_REQUIRED_LIBRARIES ${ARGN})
      check_cxx_source_compiles("${program}" OXBOW_${name}_FITS)
      unset(CMAKE_REQUIRED_INCLUDES)
      unset(CMAKE_REQUIRED_LIBRARIES)
      set(found ${OXBOW_${name}_FITS})
    endif()
    if(found)
      set(OXBOW_WITH_${name} TRUE)
      # By name, so that an installed package does not hold the path of this machine.
      list(APPEND backend_libraries ${ARGN})
    elseif(NOT wanted STREQUAL "AUTO")
      message(FATAL_ERROR "OXBOW_WITH_${name} is ON, but ${header} or its library is not there, or of another version (Debian 12: ${packages}).")
    endif()
    message(STATUS "Backend ${name}: ${OXBOW_WITH_${name}}")
  endif()
endmacro()

set(backend_libraries "")
oxbow_backend(
  XNNPACK "libxnnpack-dev libpthreadpool-dev" xnnpack.h
  "#include <xnnpack.h>
int main() { return xnn_setup_fully_connected_nc_f32(nullptr, 1, nullptr, nullptr, nullptr); }" XNNPACK)
oxbow_backend(ACL "libarm-compute-dev" arm_compute/runtime/NEON/NEFunctions.h "" arm_compute arm_compute_core)

# Vulkan: headers and a shader compiler to build with. The library itself is opened at run time, if it is there.
oxbow_backend(VULKAN "libvulkan-dev glslc" vulkan/vulkan_core.h "")
if(OXBOW_WITH_VULKAN)
  find_program(OXBOW_GLSLC glslc)
  mark_as_advanced(OXBOW_GLSLC)
  if(OXBOW_GLSLC)
    list(APPEND backend_libraries ${CMAKE_DL_LIBS})
  elseif(wanted STREQUAL "AUTO")
    set(OXBOW_WITH_VULKAN FALSE)
    message(STATUS "Backend VULKAN: FALSE, there is no glslc")
  else()
    message(FATAL_ERROR "OXBOW_WITH_VULKAN is ON, but glslc is not there (Debian 12: glslc).")
  endif()
endif()

# NPUs: plug-ins that are opened at run time need nothing but the system's loader.
option(OXBOW_WITH_NPU "Build the backend NPU, which runs plug-ins for accelerators" OFF)
if(OXBOW_WITH_NPU)
  list(APPEND backend_libraries ${CMAKE_DL_LIBS})
endif()

set(optional_backends "")
add_library(oxbow_backends INTERFACE)
set(table "${PROJECT_SOURCE_DIR}/runtime/device/backends.inc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
file(STRINGS "${table}" rows REGEX "^OXB_(LIBRARY|DEVICE) *\\([A-Z]")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^[A-Z_]+ *\\(([A-Z0-9_]+),.*" "\\1" name "${row}")
  list(APPEND optional_backends ${name})
  target_compile_definitions(oxbow_backends INTERFACE "OXB_BUILD_${name}=$<BOOL:${OXBOW_WITH_${name}}>")
endforeach()
