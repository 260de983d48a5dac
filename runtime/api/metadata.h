#pragma once

// What a file says of itself, as a list of keys and values: oxb_model_metadata. Made when a model is opened.

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/base/status.h"

namespace oxbow::schema {
struct Metadata;
}  // namespace oxbow::schema

namespace oxbow {

class Metadata {
 public:
  struct Entry {
    const char* key;
    const char* value;
  };

  /// The values stay where they are, in the file.
  Status read(const schema::Metadata& from, Error* error);
  std::span<const Entry> entries() const { return {entries_.get(), count_}; }
  /// Null: there is none.
  const char* find(const char* key) const;

 private:
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<char[]> keys_;
  size_t count_ = 0;
};

}  // namespace oxbow
