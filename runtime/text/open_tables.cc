#include "runtime/text/open_tables.h"

#include <algorithm>

namespace oxbow {
namespace {

template <typename T>
std::span<const T> view(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::span<const T>() : std::span(vector->data(), vector->size());
}

Status corrupt(Error* error, const char* what) {
  return fail(error, Status::kFileCorrupt, "tokenizer: %s", what);
}

}  // namespace

bool strings_fit(const schema::CharMap* map, size_t limit) {
  if (map == nullptr) return true;
  const auto* strings = map->strings();
  if (strings == nullptr || strings->size() == 0) return false;
  size_t run = 0;
  for (const uint8_t byte : *strings) {
    run = byte == 0 ? 0 : run + 1;
    if (run > limit) return false;
  }
  return run == 0;
}

Status open_classes(const schema::CharClasses& table, CharClasses* classes, Error* error) {
  const std::span<const uint16_t> block_of = view(table.block_of());
  const std::span<const uint8_t> blocks = view(table.blocks());
  if (block_of.size() != CharClasses::kBlockCount ||
      std::any_of(block_of.begin(), block_of.end(), [&](uint16_t block) {
        return (size_t{block} + 1) * CharClasses::kBlock > blocks.size();
      })) {
    return corrupt(error, "the table of characters is incomplete");
  }
  *classes = CharClasses(block_of, blocks);
  return Status::kOk;
}

Status open_char_map(const schema::CharMap* table, CharMap* map, Error* error) {
  if (table == nullptr) return Status::kOk;
  const std::span<const uint8_t> strings = view(table->strings());
  if (strings.empty() || strings.back() != 0) {
    return corrupt(error, "the table of replacements is incomplete");
  }
  *map =
      CharMap(view(table->trie()), {reinterpret_cast<const char*>(strings.data()), strings.size()});
  return Status::kOk;
}

}  // namespace oxbow
