# `cmake --install`: headers, library, CMake package, pkg-config file and the programs.

include(CMakePackageConfigHelpers)

install(TARGETS oxbow EXPORT oxbowTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES runtime/api/oxbow.h runtime/api/oxbow.hpp runtime/api/oxbow_index.h runtime/api/oxbow_npu.h
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/oxbow")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/oxbow")

# For Java: the library with its interface, and the classes.
if(TARGET oxbow_jni)
  install(TARGETS oxbow_jni LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  find_program(OXBOW_JAVAC javac)
  find_program(OXBOW_JAR jar)
  if(OXBOW_JAVAC AND OXBOW_JAR AND NOT ANDROID)
    file(GLOB java_sources CONFIGURE_DEPENDS android/oxbow/src/main/java/dev/oxbow/*.java)
    set(java_jar "${PROJECT_BINARY_DIR}/oxbow.jar")
    add_custom_command(
      OUTPUT "${java_jar}"
      COMMAND "${CMAKE_COMMAND}" -E rm -rf "${PROJECT_BINARY_DIR}/jar-classes"
      COMMAND "${OXBOW_JAVAC}" --release 8 -Xlint:-options -encoding UTF-8 -d "${PROJECT_BINARY_DIR}/jar-classes"
              ${java_sources}
      COMMAND "${OXBOW_JAR}" --create --file "${java_jar}" -C "${PROJECT_BINARY_DIR}/jar-classes" .
      DEPENDS ${java_sources}
      COMMENT "oxbow.jar")
    add_custom_target(oxbow_jar ALL DEPENDS "${java_jar}")
    install(FILES "${java_jar}" DESTINATION "${CMAKE_INSTALL_DATADIR}/java")
  endif()
endif()

foreach(program oxbow_convert oxbow_cli)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endforeach()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/oxbow")
install(EXPORT oxbowTargets NAMESPACE oxbow:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/oxbowConfig.cmake.in "${PROJECT_BINARY_DIR}/oxbowConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
# As the soname says: every version from OXBOW_ABI_VERSION on is served by this one, none that is newer.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/oxbowConfigVersion.cmake" COMPATIBILITY AnyNewerVersion)
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
