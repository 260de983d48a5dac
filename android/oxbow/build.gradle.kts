// The library: Java classes, liboxbow_jni.so for them, and liboxbow.so with its headers for native code (prefab).
plugins { id("com.android.library") }

val oxbowRoot = rootDir.parentFile!!

android {
    namespace = "dev.oxbow"
    compileSdk = 36
    ndkVersion = "28.2.13676358"

    defaultConfig {
        minSdk = 24
        consumerProguardFiles("consumer-rules.pro")
        ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
        externalNativeBuild {
            cmake {
                targets += listOf("oxbow", "oxbow_jni")
                arguments += listOf(
                    "-DANDROID_STL=c++_static",
                    "-DBUILD_SHARED_LIBS=ON",
                    "-DOXBOW_WITH_JNI=ON",
                    "-DOXBOW_SMALL=ON",
                    "-DOXBOW_BUILD_TESTS=OFF",
                    "-DOXBOW_BUILD_TOOLS=OFF",
                    "-DCMAKE_BUILD_TYPE=Release",
                    // The NDK's toolchain looks in its own folders only.
                    "-DFLATBUFFERS_INCLUDE_DIR=${providers.gradleProperty("oxbow.flatbuffersInclude").get()}",
                    "-DFLATC=${providers.gradleProperty("oxbow.flatc").get()}",
                )
            }
        }
    }

    externalNativeBuild {
        cmake {
            path = oxbowRoot.resolve("CMakeLists.txt")
            version = "3.31.6"
        }
    }

    buildFeatures { prefabPublishing = true }
    prefab { create("oxbow") { headers = layout.buildDirectory.dir("prefab-headers").get().asFile.path } }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    publishing { singleVariant("release") }
}

// <oxbow/oxbow.h> and <oxbow/oxbow.hpp>, as an installed Oxbow has them.
val prefabHeaders by tasks.registering(Copy::class) {
    from(oxbowRoot.resolve("runtime/api")) { include("oxbow.h", "oxbow.hpp", "oxbow_index.h", "oxbow_npu.h") }
    into(layout.buildDirectory.dir("prefab-headers/oxbow"))
}
tasks.named("preBuild") { dependsOn(prefabHeaders) }

dependencies {
    // For the Kotlin extension only: an app that calls it brings the library, all others need none.
    compileOnly("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.10.2")
    // For compilers and lint: nothing looks for them when the app runs.
    compileOnly("org.jspecify:jspecify:1.0.0")
    compileOnly("androidx.annotation:annotation:1.9.1")
}
