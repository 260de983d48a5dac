#pragma once

// As much of a Java virtual machine as native methods see: arrays, direct buffers, exceptions, and the methods that were
// registered, which are called by what their signatures say. It is stricter than a machine: what may not be done while an
// exception is pending, or with null, ends the program.

#include <jni.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/broken.h"

namespace oxbow::testing {

/// Whatever a reference can refer to.
struct Thing {
  /// Elements of an array, or a direct buffer; of its exact size, so that a sanitizer sees its end.
  std::unique_ptr<uint8_t[]> owned;
  uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t element = 1;
  bool direct = false;
  std::vector<jobject> objects;

  jsize length() const {
    return static_cast<jsize>(objects.empty() ? size / element : objects.size());
  }
};

class FakeJava {
 public:
  struct Native {
    std::string name;
    std::string signature;
    void* function = nullptr;
  };

  static FakeJava& get() {
    static FakeJava java;
    return java;
  }
  FakeJava(const FakeJava&) = delete;
  FakeJava& operator=(const FakeJava&) = delete;

  JavaVM* machine() { return &machine_; }
  const std::vector<Native>& natives() const { return natives_; }
  const Native& native(const std::string& name) const {
    for (const Native& one : natives_) {
      if (one.name == name) return one;
    }
    broken("there is a method", name);
  }
  /// All that references refer to is gone, and no exception is pending.
  void restart() {
    things_.clear();
    pending_ = false;
    asked_ = 0;
  }
  bool pending() const { return pending_; }
  void clear() { pending_ = false; }

  Thing& new_array(size_t count, size_t element) {
    Thing& made = things_.emplace_back();
    made.owned = std::make_unique<uint8_t[]>(count * element);
    made.bytes = made.owned.get();
    made.size = count * element;
    made.element = element;
    return made;
  }
  Thing& new_list(std::vector<jobject> objects) {
    Thing& made = things_.emplace_back();
    made.objects = std::move(objects);
    return made;
  }
  static jobject reference(Thing& thing) { return reinterpret_cast<jobject>(&thing); }
  static int64_t address(Thing& thing) { return reinterpret_cast<int64_t>(&thing); }
  /// An object of which nothing is asked.
  Thing& anything() { return anything_; }

  /// Arguments behind the first two, in the order in which a call takes them.
  struct Arguments {
    std::vector<int64_t> integers;
    std::vector<double> floats;
  };
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  int64_t
  call(const Native& native, const Arguments& arguments) {
    // Registers, then the stack, as the 64-bit conventions of Linux have them.
#if defined(__aarch64__)
    constexpr size_t kRegisters = 8;
#else
    constexpr size_t kRegisters = 6;
#endif
    std::array<int64_t, kRegisters + 12> r = {reinterpret_cast<int64_t>(&environment_),
                                              address(anything_)};
    std::array<double, 8> f = {};
    if (arguments.integers.size() + 2 > r.size() || arguments.floats.size() > f.size()) {
      broken("a method has few arguments");
    }
    std::copy(arguments.integers.begin(), arguments.integers.end(), r.begin() + 2);
    std::copy(arguments.floats.begin(), arguments.floats.end(), f.begin());
    const int64_t* s = r.data() + kRegisters;
    using I = int64_t;
    using D = double;
#if defined(__aarch64__)
    using Function =
        I (*)(I, I, I, I, I, I, I, I, D, D, D, D, D, D, D, D, I, I, I, I, I, I, I, I, I, I, I, I);
    return reinterpret_cast<Function>(native.function)(
        r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], f[0], f[1], f[2], f[3], f[4], f[5], f[6],
        f[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11]);
#else
    using Function =
        I (*)(I, I, I, I, I, I, D, D, D, D, D, D, D, D, I, I, I, I, I, I, I, I, I, I, I, I);
    return reinterpret_cast<Function>(native.function)(
        r[0], r[1], r[2], r[3], r[4], r[5], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], s[0],
        s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11]);
#endif
  }

 private:
  FakeJava() {
    fill(functions_);
    environment_.functions = &functions_;
    invoke_.GetEnv = [](JavaVM*, void** env, jint) -> jint {
      *env = &get().environment_;
      return JNI_OK;
    };
    machine_.functions = &invoke_;
  }

  /// An object that may be used now.
  Thing& used(jobject object) {
    calm();
    if (object == nullptr) broken("null is not used");
    return *reinterpret_cast<Thing*>(object);
  }
  void calm() const {
    if (pending_) broken("nothing is asked while an exception is pending");
  }
  /// A part of an array, or null and an exception.
  uint8_t* part(jobject array, jsize start, jsize count, size_t element) {
    Thing& from = used(array);
    if (from.element != element || !from.objects.empty()) broken("an array is what it is");
    pending_ = start < 0 || count < 0 || start > from.length() - count;
    return pending_ ? nullptr : from.bytes + static_cast<size_t>(start) * element;
  }
  template <typename Array, typename T>
  static void get_region(JNIEnv*, Array array, jsize start, jsize count, T* out) {
    const uint8_t* from = get().part(array, start, count, sizeof(T));
    if (from != nullptr && count > 0)
      std::memcpy(out, from, static_cast<size_t>(count) * sizeof(T));
  }
  template <typename Array, typename T>
  static void set_region(JNIEnv*, Array array, jsize start, jsize count, const T* values) {
    uint8_t* to = get().part(array, start, count, sizeof(T));
    if (to != nullptr && count > 0) std::memcpy(to, values, static_cast<size_t>(count) * sizeof(T));
  }
  template <typename Array, size_t kElement>
  static Array make_array(JNIEnv*, jsize count) {
    get().calm();
    if (count < 0) broken("an array has a length");
    return static_cast<Array>(reference(get().new_array(static_cast<size_t>(count), kElement)));
  }

  static void fill(JNINativeInterface_& f) {
    f.FindClass = [](JNIEnv*, const char*) {
      get().calm();
      return static_cast<jclass>(reference(get().anything_));
    };
    f.GetMethodID = [](JNIEnv*, jclass, const char*, const char*) {
      get().calm();
      return reinterpret_cast<jmethodID>(&get().anything_);
    };
    f.GetStaticMethodID = f.GetMethodID;
    f.NewGlobalRef = [](JNIEnv*, jobject object) { return object; };
    f.DeleteGlobalRef = [](JNIEnv*, jobject) {};
    f.DeleteLocalRef = [](JNIEnv*, jobject) {};
    f.ExceptionCheck = [](JNIEnv*) -> jboolean { return get().pending_ ? JNI_TRUE : JNI_FALSE; };
    f.ExceptionClear = [](JNIEnv*) { get().pending_ = false; };
    f.ExceptionOccurred = [](JNIEnv*) {
      return get().pending_ ? static_cast<jthrowable>(reference(get().anything_)) : nullptr;
    };
    f.Throw = [](JNIEnv*, jthrowable) -> jint {
      get().calm();
      get().pending_ = true;
      return 0;
    };
    f.CallStaticObjectMethodV = [](JNIEnv*, jclass, jmethodID, va_list) {
      get().calm();
      return reference(get().anything_);
    };
    f.CallVoidMethodV = [](JNIEnv*, jobject, jmethodID, va_list) { get().calm(); };
    // A listener has enough of a text after a while, or throws.
    f.CallBooleanMethodV = [](JNIEnv*, jobject, jmethodID, va_list) -> jboolean {
      get().calm();
      constexpr uint32_t kEnough = 40, kTooMuch = 100;
      get().pending_ = ++get().asked_ > kTooMuch;
      return get().asked_ % kEnough == 0 ? JNI_FALSE : JNI_TRUE;
    };
    f.GetJavaVM = [](JNIEnv*, JavaVM** machine) -> jint {
      *machine = get().machine();
      return JNI_OK;
    };
    f.RegisterNatives = [](JNIEnv*, jclass, const JNINativeMethod* methods, jint count) -> jint {
      for (jint i = 0; i < count; ++i) {
        get().natives_.push_back({methods[i].name, methods[i].signature, methods[i].fnPtr});
      }
      return JNI_OK;
    };
    f.GetArrayLength = [](JNIEnv*, jarray array) { return get().used(array).length(); };
    f.GetObjectArrayElement = [](JNIEnv*, jobjectArray array, jsize index) -> jobject {
      const Thing& from = get().used(array);
      get().pending_ = index < 0 || static_cast<size_t>(index) >= from.objects.size();
      return get().pending_ ? nullptr : from.objects[static_cast<size_t>(index)];
    };
    f.NewByteArray = make_array<jbyteArray, sizeof(jbyte)>;
    f.NewIntArray = make_array<jintArray, sizeof(jint)>;
    f.GetByteArrayRegion = get_region<jbyteArray, jbyte>;
    f.GetIntArrayRegion = get_region<jintArray, jint>;
    f.GetFloatArrayRegion = get_region<jfloatArray, jfloat>;
    f.SetByteArrayRegion = set_region<jbyteArray, jbyte>;
    f.SetIntArrayRegion = set_region<jintArray, jint>;
    f.SetFloatArrayRegion = set_region<jfloatArray, jfloat>;
    f.GetLongArrayRegion = get_region<jlongArray, jlong>;
    f.SetLongArrayRegion = set_region<jlongArray, jlong>;
    f.SetDoubleArrayRegion = set_region<jdoubleArray, jdouble>;
    f.GetDirectBufferAddress = [](JNIEnv*, jobject buffer) -> void* {
      const Thing& from = get().used(buffer);
      return from.direct ? from.bytes : nullptr;
    };
    f.GetDirectBufferCapacity = [](JNIEnv*, jobject buffer) -> jlong {
      const Thing& from = get().used(buffer);
      return from.direct ? static_cast<jlong>(from.size) : -1;
    };
  }

  JNINativeInterface_ functions_ = {};
  JNIInvokeInterface_ invoke_ = {};
  JNIEnv environment_ = {};
  JavaVM machine_ = {};
  std::vector<Native> natives_;
  std::deque<Thing> things_;
  Thing anything_;
  bool pending_ = false;
  uint32_t asked_ = 0;
};

}  // namespace oxbow::testing
