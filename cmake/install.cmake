# `cmake --install`: headers, library, CMake package, pkg-config file and the programs.

include(CMakePackageConfigHelpers)

# Components are the packages of cmake/package.cmake: what a program needs to run, what it is built with, the programs.
install(TARGETS oxbow EXPORT oxbowTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(FILES runtime/api/oxbow.h runtime/api/oxbow.hpp runtime/api/oxbow_index.h runtime/api/oxbow_npu.h
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/oxbow" COMPONENT dev)
foreach(component library dev tools)
  # Two packages may not bring the same file.
  set(doc_dir "${CMAKE_INSTALL_DATADIR}/doc/oxbow")
  if(NOT component STREQUAL "library")
    string(APPEND doc_dir "-${component}")
  endif()
  if(NOT component STREQUAL "tools" OR TARGET oxbow_cli)
    install(FILES LICENSE NOTICE DESTINATION "${doc_dir}" COMPONENT ${component})
  endif()
endforeach()

# For Java: the library with its interface, and the classes.
if(TARGET oxbow_jni)
  install(TARGETS oxbow_jni LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT java)
  find_program(OXBOW_JAVAC javac)
  find_program(OXBOW_JAR jar)
  if(OXBOW_JAVAC AND OXBOW_JAR AND NOT ANDROID)
    file(GLOB java_sources CONFIGURE_DEPENDS android/oxbow/src/main/java/dev/oxbow/*.java)
    set(java_jar "${PROJECT_BINARY_DIR}/oxbow.jar")
    add_custom_command(
      OUTPUT "${java_jar}"
      COMMAND "${CMAKE_COMMAND}" -E rm -rf "${PROJECT_BINARY_DIR}/jar-classes"
      COMMAND "${OXBOW_JAVAC}" --release 8 -Xlint:-options -encoding UTF-8 -sourcepath "${PROJECT_SOURCE_DIR}/android/stubs" -implicit:none
              -d "${PROJECT_BINARY_DIR}/jar-classes" ${java_sources}
      COMMAND "${OXBOW_JAR}" --create --file "${java_jar}" -C "${PROJECT_BINARY_DIR}/jar-classes" .
      DEPENDS ${java_sources}
      COMMENT "oxbow.jar")
    add_custom_target(oxbow_jar ALL DEPENDS "${java_jar}")
    install(FILES "${java_jar}" DESTINATION "${CMAKE_INSTALL_DATADIR}/java" COMPONENT java)
  endif()
endif()

foreach(program oxbow_convert oxbow_cli)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
  endif()
endforeach()

# Manual pages and completion come from the programs' own tables of options; a build for another machine cannot ask them.
if(TARGET oxbow_cli AND TARGET oxbow_convert AND NOT CMAKE_CROSSCOMPILING AND NOT OXBOW_SANITIZE)
  set(manual_dir "${PROJECT_BINARY_DIR}/manual")
  add_custom_command(
    OUTPUT "${manual_dir}/done"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${manual_dir}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${manual_dir}/man1" "${manual_dir}/bash" "${manual_dir}/zsh"
    COMMAND oxbow_cli man --all "${manual_dir}/man1"
    COMMAND oxbow_convert --man > "${manual_dir}/man1/oxbow-convert.1"
    COMMAND oxbow_cli completion bash > "${manual_dir}/bash/oxbow"
    COMMAND oxbow_convert --completion bash > "${manual_dir}/bash/oxbow-convert"
    COMMAND oxbow_cli completion zsh > "${manual_dir}/zsh/_oxbow"
    COMMAND oxbow_convert --completion zsh > "${manual_dir}/zsh/_oxbow-convert"
    COMMAND "${CMAKE_COMMAND}" -E touch "${manual_dir}/done"
    DEPENDS oxbow_cli oxbow_convert
    COMMENT "Manual pages and completion" VERBATIM)
  add_custom_target(oxbow_manual ALL DEPENDS "${manual_dir}/done")
  install(DIRECTORY "${manual_dir}/man1/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
  install(DIRECTORY "${manual_dir}/bash/" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT tools)
  install(DIRECTORY "${manual_dir}/zsh/" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT tools)
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/oxbow")
install(EXPORT oxbowTargets NAMESPACE oxbow:: DESTINATION "${package_dir}" COMPONENT dev)
configure_package_config_file(cmake/oxbowConfig.cmake.in "${PROJECT_BINARY_DIR}/oxbowConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
# As the soname says: every version from OXBOW_ABI_VERSION on is served by this one, none that is newer.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/oxbowConfigVersion.cmake" COMPATIBILITY AnyNewerVersion)
install(FILES "${PROJECT_BINARY_DIR}/oxbowConfig.cmake" "${PROJECT_BINARY_DIR}/oxbowConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT dev)

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
install(FILES "${PROJECT_BINARY_DIR}/oxbow.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
