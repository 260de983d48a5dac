#include "runtime/api/metadata.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// Calls visit(group, key, value) for each; the first have no group.
template <typename Visit>
void visit_all(const schema::Metadata& from, Visit&& visit) {
  const auto one = [&](const char* key, const flatbuffers::String* value) {
    if (value != nullptr) visit("", key, value->c_str());
  };
  one("architecture", from.architecture());
  one("licence", from.licence());
  one("source_hash", from.source_hash());
  one("converter", from.converter());
  const auto group = [&](const char* name, const auto* pairs) {
    if (pairs == nullptr) return;
    for (const schema::KeyValue* pair : *pairs) {
      visit(name, pair->key()->string_view(), pair->value()->c_str());
    }
  };
  group("settings.", from.settings());
  group("sizes.", from.sizes());
  group("quality.", from.quality());
}

}  // namespace

Status Metadata::read(const schema::Metadata& from, Error* error) {
  size_t count = 0, bytes = 0;
  visit_all(from, [&](std::string_view group, std::string_view key, const char*) {
    ++count;
    bytes += group.size() + key.size() + 1;
  });
  entries_.reset(new (std::nothrow) Entry[count]);
  keys_.reset(new (std::nothrow) char[bytes]);
  if (entries_ == nullptr || keys_ == nullptr) {
    return fail(error, Status::kOutOfMemory, "no memory for the metadata");
  }
  char* to = keys_.get();
  visit_all(from, [&](std::string_view group, std::string_view key, const char* value) {
    entries_[count_++] = {to, value};
    to = std::copy(group.begin(), group.end(), to);
    to = std::copy(key.begin(), key.end(), to);
    *to++ = '\0';
  });
  return Status::kOk;
}

const char* Metadata::find(const char* key) const {
  for (const Entry& entry : entries()) {
    if (std::strcmp(entry.key, key) == 0) return entry.value;
  }
  return nullptr;
}

}  // namespace oxbow
