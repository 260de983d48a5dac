// Native methods with any arguments: what a program in Java can make them be, and what a mistake of ours could. Handles
// of other objects, of none and of closed ones, arrays of any length, parts that they do not have. An exception of Java
// or a result, never a crash. An input is a list of choices: which methods are called, with what.
//
// The virtual machine is made of a few functions; methods are called by what they were registered with. Arguments go to
// registers and to the stack as the two 64-bit conventions of Linux have them.

#include <jni.h>

#include <bit>
#include <cstdarg>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/base_models.h"
#include "tests/fuzz/broken.h"
#include "tests/fuzz/choices.h"

extern "C" jint JNI_OnLoad(JavaVM* machine, void*);
// What is too large is no memory, not the end.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace oxbow::testing {
namespace {

/// Whatever a reference can refer to.
struct Thing {
  /// Elements of an array, or a direct buffer; exact, so that a sanitizer sees its end.
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;
  size_t element = 1;
  bool direct = false;
  std::vector<jobject> objects;

  jsize length() const {
    return static_cast<jsize>(objects.empty() ? size / element : objects.size());
  }
};

struct Native {
  std::string name;
  std::string signature;
  void* function = nullptr;
};

std::vector<Native> natives;
std::deque<Thing> things;
Thing anything;
bool pending = false;

Thing& thing(jobject object) { return *reinterpret_cast<Thing*>(object); }
jobject reference(Thing& thing) { return reinterpret_cast<jobject>(&thing); }

Thing& new_array(size_t count, size_t element) {
  Thing& made = things.emplace_back();
  made.bytes = std::make_unique<uint8_t[]>(count * element);
  made.size = count * element;
  made.element = element;
  return made;
}

/// The part of an array, or null and an exception.
uint8_t* part(jobject array, jsize start, jsize count) {
  Thing& from = thing(array);
  if (start < 0 || count < 0 || start > from.length() - count) {
    pending = true;
    return nullptr;
  }
  return from.bytes.get() + static_cast<size_t>(start) * from.element;
}
template <typename Array, typename T>
void get_region(JNIEnv*, Array array, jsize start, jsize count, T* out) {
  const uint8_t* from = part(array, start, count);
  if (from != nullptr && count > 0) std::memcpy(out, from, static_cast<size_t>(count) * sizeof(T));
}
template <typename Array, typename T>
void set_region(JNIEnv*, Array array, jsize start, jsize count, const T* values) {
  uint8_t* to = part(array, start, count);
  if (to != nullptr && count > 0) std::memcpy(to, values, static_cast<size_t>(count) * sizeof(T));
}

JavaVM* machine_pointer();

JNINativeInterface_ make_functions() {
  JNINativeInterface_ f = {};
  f.FindClass = [](JNIEnv*, const char*) { return static_cast<jclass>(reference(anything)); };
  f.GetMethodID = [](JNIEnv*, jclass, const char*, const char*) {
    return reinterpret_cast<jmethodID>(&anything);
  };
  f.NewGlobalRef = [](JNIEnv*, jobject object) { return object; };
  f.DeleteGlobalRef = [](JNIEnv*, jobject) {};
  f.DeleteLocalRef = [](JNIEnv*, jobject) {};
  f.ExceptionCheck = [](JNIEnv*) -> jboolean { return pending ? JNI_TRUE : JNI_FALSE; };
  f.ExceptionClear = [](JNIEnv*) { pending = false; };
  f.ExceptionOccurred = [](JNIEnv*) {
    return pending ? static_cast<jthrowable>(reference(anything)) : nullptr;
  };
  f.Throw = [](JNIEnv*, jthrowable) -> jint {
    pending = true;
    return 0;
  };
  f.NewObjectV = [](JNIEnv*, jclass, jmethodID, va_list) { return reference(anything); };
  f.CallVoidMethodV = [](JNIEnv*, jobject, jmethodID, va_list) {};
  f.CallBooleanMethodV = [](JNIEnv*, jobject, jmethodID, va_list) -> jboolean { return JNI_TRUE; };
  f.GetJavaVM = [](JNIEnv*, JavaVM** machine) -> jint {
    *machine = machine_pointer();
    return JNI_OK;
  };
  f.RegisterNatives = [](JNIEnv*, jclass, const JNINativeMethod* methods, jint count) -> jint {
    for (jint i = 0; i < count; ++i) {
      natives.push_back({methods[i].name, methods[i].signature, methods[i].fnPtr});
    }
    return JNI_OK;
  };
  f.GetArrayLength = [](JNIEnv*, jarray array) { return thing(array).length(); };
  f.GetObjectArrayElement = [](JNIEnv*, jobjectArray array, jsize index) -> jobject {
    Thing& from = thing(array);
    if (index >= 0 && static_cast<size_t>(index) < from.objects.size()) {
      return from.objects[static_cast<size_t>(index)];
    }
    pending = true;
    return nullptr;
  };
  f.NewByteArray = [](JNIEnv*, jsize count) {
    return static_cast<jbyteArray>(reference(new_array(static_cast<size_t>(count), 1)));
  };
  f.NewIntArray = [](JNIEnv*, jsize count) {
    return static_cast<jintArray>(reference(new_array(static_cast<size_t>(count), 4)));
  };
  f.GetByteArrayRegion = get_region<jbyteArray, jbyte>;
  f.GetIntArrayRegion = get_region<jintArray, jint>;
  f.GetFloatArrayRegion = get_region<jfloatArray, jfloat>;
  f.SetByteArrayRegion = set_region<jbyteArray, jbyte>;
  f.SetIntArrayRegion = set_region<jintArray, jint>;
  f.SetFloatArrayRegion = set_region<jfloatArray, jfloat>;
  f.SetLongArrayRegion = set_region<jlongArray, jlong>;
  f.SetDoubleArrayRegion = set_region<jdoubleArray, jdouble>;
  f.GetDirectBufferAddress = [](JNIEnv*, jobject buffer) -> void* {
    return buffer != nullptr && thing(buffer).direct ? thing(buffer).bytes.get() : nullptr;
  };
  f.GetDirectBufferCapacity = [](JNIEnv*, jobject buffer) -> jlong {
    return buffer != nullptr && thing(buffer).direct ? static_cast<jlong>(thing(buffer).size) : -1;
  };
  return f;
}

const JNINativeInterface_ functions = make_functions();
JNIEnv environment = {&functions};

JavaVM* machine_pointer() {
  static const JNIInvokeInterface_ invoke = [] {
    JNIInvokeInterface_ f = {};
    f.GetEnv = [](JavaVM*, void** env, jint) -> jint {
      *env = &environment;
      return JNI_OK;
    };
    return f;
  }();
  static JavaVM machine = {&invoke};
  return &machine;
}

#if defined(__aarch64__)
constexpr size_t kRegisters = 8;
#else
constexpr size_t kRegisters = 6;
#endif
constexpr size_t kFloatRegisters = 8;
constexpr size_t kOnStack = 12;

/// Arguments in the order in which a call takes them.
struct Arguments {
  std::vector<int64_t> integers;
  std::vector<double> floats;
};

#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int64_t
call(void* function, const Arguments& arguments) {
  int64_t r[kRegisters + kOnStack] = {};
  double f[kFloatRegisters] = {};
  if (arguments.integers.size() > std::size(r) || arguments.floats.size() > std::size(f)) {
    broken("a method has few arguments");
  }
  std::copy(arguments.integers.begin(), arguments.integers.end(), r);
  std::copy(arguments.floats.begin(), arguments.floats.end(), f);
  const int64_t* s = r + kRegisters;
#if defined(__aarch64__)
  using I = int64_t;
  using D = double;
  using Function = int64_t (*)(I, I, I, I, I, I, I, I, D, D, D, D, D, D, D, D, I, I, I, I, I, I, I,
                               I, I, I, I, I);
  return reinterpret_cast<Function>(function)(
      r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], f[0], f[1], f[2], f[3], f[4], f[5], f[6],
      f[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11]);
#else
  using I = int64_t;
  using D = double;
  using Function =
      int64_t (*)(I, I, I, I, I, I, D, D, D, D, D, D, D, D, I, I, I, I, I, I, I, I, I, I, I, I);
  return reinterpret_cast<Function>(function)(r[0], r[1], r[2], r[3], r[4], r[5], f[0], f[1], f[2],
                                              f[3], f[4], f[5], f[6], f[7], s[0], s[1], s[2], s[3],
                                              s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11]);
#endif
}

class JavaProgram {
 public:
  explicit JavaProgram(Choices& choices) : choices_(choices) {}

  void run(const BaseGraph& base) {
    things.clear();
    pending = false;
    const FileBytes file = frame(base.graph, base.weights);
    Thing& buffer = new_array(file.size() + 64, 1);
    buffer.direct = true;
    // Java slices a buffer to where it is aligned.
    const size_t shift = (64 - reinterpret_cast<uintptr_t>(buffer.bytes.get()) % 64) % 64;
    std::memcpy(buffer.bytes.get() + shift, file.data(), file.size());
    Arguments open = begin();
    open.integers.insert(open.integers.end(), {address(buffer), static_cast<int64_t>(shift),
                                               static_cast<int64_t>(file.size()), 0, 0});
    handles_ = {call(native("openMemory").function, open)};
    if (handles_[0] == 0) broken("a model of the tests opens");
    for (size_t calls = 2 + choices_.below(12); calls > 0; --calls) one_call();
    for (size_t i = handles_.size(); i > 0; --i) release(handles_[i - 1]);
    if (call(native("livingObjects").function, begin()) != 0) broken("nothing is left");
  }

 private:
  static const Native& native(const std::string& name) {
    for (const Native& one : natives) {
      if (one.name == name) return one;
    }
    broken("there is a method", name);
  }
  static int64_t address(Thing& object) { return reinterpret_cast<int64_t>(&object); }
  static Arguments begin() {
    return {{reinterpret_cast<int64_t>(&environment), address(anything)}, {}};
  }
  static void release(int64_t handle) {
    Arguments arguments = begin();
    arguments.integers.push_back(handle);
    call(native("release").function, arguments);
    pending = false;
  }

  int64_t any_long() {
    if (choices_.below(4) != 0) return handles_[choices_.below(handles_.size())];
    if (choices_.one_in(2)) return any_int();
    return static_cast<int64_t>(choices_.word());
  }
  int64_t any_int() {
    switch (choices_.below(8)) {
      case 0:
        return -1;
      case 1:
        return INT32_MAX;
      case 2:
        return INT32_MIN;
      case 3:
        return static_cast<int64_t>(choices_.below(70000));
      default:
        return static_cast<int64_t>(choices_.below(6));
    }
  }

  Thing& any_array(char type) {
    const size_t element = type == 'B' ? 1 : type == 'J' || type == 'D' ? 8 : 4;
    const size_t count = choices_.one_in(4) ? choices_.below(3) : choices_.below(64);
    Thing& made = new_array(count, element);
    for (size_t i = 0; i < made.size; i += element) {
      // Small numbers, letters, and a few that are neither.
      made.bytes[i] = static_cast<uint8_t>(
          type == 'B' && choices_.below(4) != 0 ? 'a' + choices_.below(26) : choices_.below(8));
      if (choices_.one_in(32)) made.bytes[i + element - 1] = 0xff;
    }
    return made;
  }
  Thing& any_buffer() {
    Thing& made = any_array('B');
    made.direct = !choices_.one_in(8);
    if (!choices_.one_in(3)) return made;
    made = Thing();
    made.size = 4096 + choices_.below(100000);
    made.bytes = std::make_unique<uint8_t[]>(made.size);
    made.direct = true;
    return made;
  }

  void one_call() {
    const Native& method = natives[choices_.below(natives.size())];
    if (method.name == "livingObjects" || method.name == "openFile" ||
        method.name == "openDescriptor" || method.name == "bytesToAlignment") {
      return;
    }
    Arguments arguments = begin();
    const std::string& text = method.signature;
    for (size_t i = 1; text[i] != ')'; ++i) {
      switch (text[i]) {
        case 'J':
          arguments.integers.push_back(any_long());
          break;
        case 'I':
          arguments.integers.push_back(any_int());
          break;
        case 'Z':
          arguments.integers.push_back(static_cast<int64_t>(choices_.below(2)));
          break;
        case 'F':
          arguments.floats.push_back(
              std::bit_cast<double>(uint64_t{std::bit_cast<uint32_t>(choices_.number())}));
          break;
        case 'D':
          arguments.floats.push_back(static_cast<double>(choices_.number()));
          break;
        case 'L': {
          const std::string name = text.substr(i + 1, text.find(';', i) - i - 1);
          i += name.size() + 1;
          const bool null =
              choices_.one_in(4) && (method.name == "create" || name.ends_with("Sink"));
          if (name.ends_with("ByteBuffer")) {
            arguments.integers.push_back(null ? 0 : address(any_buffer()));
          } else {
            arguments.integers.push_back(name.ends_with("Sink") ? 0 : address(anything));
          }
          break;
        }
        default: {  // An array.
          const char element = text[++i];
          if (element != '[' && element != 'L') {
            arguments.integers.push_back(address(any_array(element)));
            break;
          }
          const bool of_arrays = element == '[';
          if (of_arrays) {
            ++i;
          } else {
            i = text.find(';', i);
          }
          std::vector<jobject> elements;
          for (size_t count = 1 + choices_.below(4); count > 0; --count) {
            elements.push_back(reference(of_arrays ? any_array('B') : any_buffer()));
          }
          Thing& list = things.emplace_back();
          list.objects = std::move(elements);
          arguments.integers.push_back(address(list));
        }
      }
    }
    pending = false;
    const int64_t result = call(method.function, arguments);
    if (text.ends_with(")J") && method.name.starts_with("create") && !pending && result != 0) {
      handles_.push_back(result);
    }
    pending = false;
  }

  Choices& choices_;
  std::vector<int64_t> handles_;
};

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  static BaseModels models;
  if (natives.empty()) {
    // No device: its driver is not what is looked at.
    ::setenv("VK_DRIVER_FILES", "/dev/null", 1);
    if (JNI_OnLoad(machine_pointer(), nullptr) < 0) broken("the library loads");
  }
  Choices choices({data, size});
  const BaseGraph& base = models.get(choices.below(models.size()));
  broken_subject = base.name;
  JavaProgram(choices).run(base);
  return 0;
}
