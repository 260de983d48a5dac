# `cmake --install`: headers, library, CMake package, pkg-config file and the programs.

include(CMakePackageConfigHelpers)

install(TARGETS oxbow EXPORT oxbowTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES runtime/api/oxbow.h runtime/api/oxbow.hpp runtime/api/oxbow_index.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/oxbow")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/oxbow")

foreach(program oxbow_convert oxbow_cli)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endforeach()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/oxbow")
install(EXPORT oxbowTargets NAMESPACE oxbow:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/oxbowConfig.cmake.in "${PROJECT_BINARY_DIR}/oxbowConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/oxbowConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/oxbowConfig.cmake" "${PROJECT_BINARY_DIR}/oxbowConfigVersion.cmake"
        DESTINATION "${package_dir}")

# A static library hands its own needs to the user's link line; a shared one has them inside.
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  list(TRANSFORM backend_libraries PREPEND "-l" OUTPUT_VARIABLE pc_backends)
  list(JOIN pc_backends " " pc_backends)
  string(STRIP "${pc_backends} -lstdc++ -lm -pthread" pc_libs)
endif()
# The .pc file finds its prefix from where it lies, so a staged or moved install works.
file(RELATIVE_PATH pc_prefix "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
configure_file(cmake/oxbow.pc.in "${PROJECT_BINARY_DIR}/oxbow.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/oxbow.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
