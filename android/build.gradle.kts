plugins {
    id("com.android.library") version "9.1.1" apply false
    id("com.android.application") version "9.1.1" apply false
}
