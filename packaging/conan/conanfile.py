"""`conan create packaging/conan`, from a whole source tree."""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Oxbow(ConanFile):
    name = "oxbow"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Long-context transformers over endless streams, in a memory fixed before the first token"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tools": [True, False]}
    default_options = {"shared": False, "tools": False}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "NOTICE", "cmake/*", "schema/*", "runtime/*", "ops/*", "host/*", "converter/*",
                        "tools/*", "android/native/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("flatbuffers/[>=2.0]")
        if self.options.tools:
            for package in ("nlohmann_json/[>=3.9]", "libpng/[>=1.6]", "libjpeg-turbo/[>=2.0]"):
                self.requires(package)

    def build_requirements(self):
        self.tool_requires("flatbuffers/[>=2.0]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.variables["BUILD_SHARED_LIBS"] = bool(self.options.shared)
        toolchain.variables["OXBOW_BUILD_TOOLS"] = bool(self.options.tools)
        for name in ("OXBOW_BUILD_TESTS", "OXBOW_WITH_XNNPACK", "OXBOW_WITH_ACL", "OXBOW_WITH_JNI", "OXBOW_WITH_VULKAN"):
            toolchain.variables[name] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["oxbow"]
        self.cpp_info.set_property("cmake_file_name", "oxbow")
        self.cpp_info.set_property("cmake_target_name", "oxbow::oxbow")
        if not self.options.shared:
            self.cpp_info.system_libs = ["m", "pthread", "stdc++", "dl"]
