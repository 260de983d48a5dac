// A native method that does what -Xcheck:jni must warn of: it goes on after a call that may have thrown. Shows that a
// warning would be seen.

#include <jni.h>

extern "C" JNIEXPORT void JNICALL Java_dev_oxbow_Careless_call(JNIEnv* env, jclass self) {
  const jmethodID method = env->GetStaticMethodID(self, "harmless", "()V");
  env->CallStaticVoidMethod(self, method);
  env->FindClass("java/lang/String");
}
