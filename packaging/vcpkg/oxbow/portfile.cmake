# An overlay port: it takes the source tree it lies in. `vcpkg install oxbow --overlay-ports=packaging/vcpkg`.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES tools OXBOW_BUILD_TOOLS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DOXBOW_BUILD_TESTS=OFF -DOXBOW_WITH_XNNPACK=OFF -DOXBOW_WITH_ACL=OFF -DOXBOW_WITH_JNI=OFF
          -DOXBOW_WITH_VULKAN=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME oxbow CONFIG_PATH lib/cmake/oxbow)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES oxbow oxbow-convert AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/NOTICE")
