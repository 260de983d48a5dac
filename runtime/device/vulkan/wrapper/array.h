#pragma once

// A list that grows while a session is made and says so when memory runs out, instead of throwing.

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>

namespace oxbow::vulkan {

template <typename T>
class Array {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { std::free(data_); }

  [[nodiscard]] bool push(const T& value) {
    if (size_ == capacity_) {
      const size_t capacity = capacity_ == 0 ? 16 : 2 * capacity_;
      void* grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
      if (grown == nullptr) return false;
      data_ = static_cast<T*>(grown);
      capacity_ = capacity;
    }
    new (data_ + size_++) T(value);
    return true;
  }
  void clear() { size_ = 0; }
  /// To the first `size`.
  void shrink(size_t size) { size_ = size; }
  size_t size() const { return size_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace oxbow::vulkan
