# NPUs: plug-ins that are opened at run time need nothing but the system's loader.
option(OXBOW_WITH_NPU "Build the backend NPU, which runs plug-ins for accelerators" OFF)
if(OXBOW_WITH_NPU)
  list(APPEND backend_libraries ${CMAKE_DL_LIBS})
endif()
