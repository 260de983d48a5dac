#pragma once

// What Java knows of a native object is a number. A table tells whether the number names an object, so a
// wrong or stale one is refused instead of dereferenced, and counts who still needs the object.

#include <jni.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace oxbow::jni {

enum class Kind : uint8_t {
  kModel,
  kSession,
  kSampler,
  kTokenizer,
  kGenerator,
  kBeamSearch,
  kLogMel,
  kNpu
};

/// Whether several calls may use an object at once.
enum class Sharing : uint8_t { kOneCall, kAnyCalls };

/// What every native object begins with.
class Object {
 public:
  Object(Kind kind, Sharing sharing) : kind_(kind), sharing_(sharing) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// True from the moment Java closed it, also while a call is still running.
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// Memory that it took from the system, once it is complete.
  virtual size_t bytes() const = 0;

 protected:
  /// `destroy` has freed everything before.
  virtual ~Object() = default;
  /// Frees what the object holds. The environment is for references to Java objects only: an
  /// exception may be pending.
  virtual void destroy(JNIEnv* env) = 0;
  /// Shares memory with another object, which must outlive it: from now on both serve one call at a time together. For an
  /// object that has no handle yet.
  void join(Object* other) { group_ = other->group_; }

 private:
  friend class Handles;

  const Kind kind_;
  const Sharing sharing_;
  std::atomic<bool> closed_ = false;
  // The rest belongs to the table and is used under its lock.
  Object* group_ = this;
  /// Calls that use it, counted by the first of its group.
  uint32_t calls_ = 0;
  /// Its handle, the calls that run and the objects made from it. The last one frees it.
  uint32_t references_ = 1;
};

/// Memory of the application that native code uses for longer than a call.
struct Claim {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  bool written = false;
  Claim* next = nullptr;
};

class Handles {
 public:
  /// Gives the object a handle, or destroys it and returns 0 when there is no memory for one.
  static jlong add(JNIEnv* env, Object* object);
  /// Destroys an object that got no handle.
  static void discard(JNIEnv* env, Object* object);
  /// An object for a call, to be released after it. Null, with a Java exception, when the handle names none of this
  /// kind, or one that another call uses.
  static Object* acquire(JNIEnv* env, jlong handle, Kind kind);
  /// The same for several at once, which may share their memory: all of them, or none.
  static bool acquire(JNIEnv* env, const jlong* handles, size_t count, Kind kind, Object** objects);
  static void release(JNIEnv* env, Object* object);
  /// Calls `use` with an object that another call may be using, and which is not destroyed meanwhile. It must be short.
  static void reach(JNIEnv* env, jlong handle, Kind kind, void (*use)(Object* object));
  /// The handle names nothing any more. Nothing happens when it did not before.
  static void close(JNIEnv* env, jlong handle);

  /// Keeps an object until `drop`, whether it is closed or not.
  static void keep(Object* object);
  static void drop(JNIEnv* env, Object* object);

  /// Memory that an object took from the system; 0 when the handle names none.
  static size_t bytes(jlong handle);
  /// Objects that are not destroyed yet.
  static uint32_t living();

  /// False when the memory overlaps a claim and one of the two is written.
  static bool add_claim(Claim* claim);
  static void remove_claim(Claim* claim);
  static bool may_use(const std::byte* begin, size_t bytes, bool written);

 private:
  static void forget_reference(JNIEnv* env, Object* object, bool ends_call);
};

/// An object for the length of a native call. False, with a Java exception, when it is refused.
template <typename T>
class Use {
 public:
  Use(JNIEnv* env, jlong handle)
      : env_(env), object_(static_cast<T*>(Handles::acquire(env, handle, T::kKind))) {}
  ~Use() {
    if (object_ != nullptr) Handles::release(env_, object_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  explicit operator bool() const { return object_ != nullptr; }
  T* get() const { return object_; }
  T* operator->() const { return object_; }

 private:
  JNIEnv* env_;
  T* object_;
};

/// Several objects of one kind for the length of a native call. False, with a Java exception, when one is refused.
template <typename T, size_t kMost>
class UseAll {
 public:
  /// Of the first `count` handles, at most kMost.
  UseAll(JNIEnv* env, const jlong* handles, size_t count)
      : env_(env), count_(Handles::acquire(env, handles, count, T::kKind, objects_) ? count : 0) {}
  ~UseAll() {
    for (size_t i = 0; i < count_; ++i) Handles::release(env_, objects_[i]);
  }
  UseAll(const UseAll&) = delete;
  UseAll& operator=(const UseAll&) = delete;

  explicit operator bool() const { return count_ > 0; }
  T& operator[](size_t i) const { return *static_cast<T*>(objects_[i]); }

 private:
  JNIEnv* env_;
  Object* objects_[kMost];
  size_t count_;
};

}  // namespace oxbow::jni
