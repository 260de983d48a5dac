/* Stands in for the NDK's, which FlatBuffers asks for; the compiler itself says __ANDROID_API__. */
