// Runs `oxbow bench` inside an app, with what only an app may ask the system: see docs/android.md.
plugins { id("com.android.application") }

android {
    namespace = "dev.oxbow.benchmark"
    compileSdk = 36
    ndkVersion = "28.2.13676358"

    defaultConfig {
        applicationId = "dev.oxbow.benchmark"
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "0.1.0"
        ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
        externalNativeBuild {
            cmake {
                targets += "oxbow_cli"
                arguments += listOf(
                    "-DANDROID_STL=c++_static",
                    "-DCMAKE_BUILD_TYPE=Release",
                    "-DFLATBUFFERS_INCLUDE_DIR=${providers.gradleProperty("oxbow.flatbuffersInclude").get()}",
                    "-DFLATC=${providers.gradleProperty("oxbow.flatc").get()}",
                    "-DOXBOW_JSON_INCLUDE=${providers.gradleProperty("oxbow.jsonInclude").get()}",
                )
            }
        }
    }
    buildTypes { release { isMinifyEnabled = false } }
    externalNativeBuild { cmake { path = file("src/main/cpp/CMakeLists.txt") } }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
    // Only a file that was unpacked at installation can be started as a program.
    packaging { jniLibs { useLegacyPackaging = true } }
}
