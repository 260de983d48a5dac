// Not built where this was written: there is no NDK and no Gradle plugin for Android among Debian's packages. See
// docs/android.md for what was checked in its place.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}
dependencyResolutionManagement {
    repositoriesMode.set(RepositoriesMode.FAIL_ON_PROJECT_REPOS)
    repositories {
        google()
        mavenCentral()
    }
}

rootProject.name = "oxbow-android"
include(":oxbow", ":sample", ":benchmark")
