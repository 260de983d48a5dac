// Type a prompt, watch the text stream. Put a converted model at src/main/assets/model.oxb.
plugins { id("com.android.application") }

android {
    namespace = "dev.oxbow.sample"
    compileSdk = 36

    defaultConfig {
        applicationId = "dev.oxbow.sample"
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "0.1.0"
    }
    buildTypes { release { isMinifyEnabled = true } }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
    // A model is mapped where it lies in the APK, which a compressed one cannot be.
    androidResources { noCompress += "oxb" }
}

dependencies { implementation(project(":oxbow")) }
