#include "converter/text/tokenizer/char_map.h"

#include <cstring>
#include <vector>

#include "host/errors.h"
#include "runtime/text/tables/trie.h"

namespace oxbow::convert {
namespace {

// Many times those of SentencePiece's own tables.
constexpr size_t kMaxUnits = size_t{1} << 22;

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw InputError(name + ": the table of replacements (precompiled_charsmap) " + what);
}

/// Whether each sequence of the array has a string. Sequences share their ends in it, so a place is
/// looked at once, however many ways lead there.
bool names_strings_only(const std::vector<uint32_t>& units, size_t strings) {
  std::vector<bool> seen(units.size());
  std::vector<Trie::Walk> open = {Trie(units).walk()};
  while (!open.empty()) {
    const Trie::Walk walk = open.back();
    open.pop_back();
    for (int label = 1; label < 256; ++label) {
      Trie::Walk next = walk;
      if (!next.step(static_cast<char>(label))) continue;
      if (next.ends() && next.value() >= strings) return false;
      if (next.place() >= seen.size() || seen[next.place()]) continue;
      seen[next.place()] = true;
      open.push_back(next);
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<schema::CharMapT> split_char_map(const std::string& name,
                                                 const std::string& block) {
  if (block.empty()) return nullptr;
  uint32_t trie_bytes = 0;
  if (block.size() > sizeof(trie_bytes)) std::memcpy(&trie_bytes, block.data(), sizeof(trie_bytes));
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 ||
      trie_bytes >= block.size() - sizeof(trie_bytes) ||
      trie_bytes / sizeof(uint32_t) > kMaxUnits) {
    refuse(name, "has an array of " + std::to_string(trie_bytes) + " bytes in a block of " +
                     std::to_string(block.size()));
  }
  auto map = std::make_unique<schema::CharMapT>();
  map->trie.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map->trie.data(), block.data() + sizeof(trie_bytes), trie_bytes);
  map->strings.assign(block.begin() + static_cast<ptrdiff_t>(sizeof(trie_bytes) + trie_bytes),
                      block.end());
  if (map->strings.back() != 0) refuse(name, "has a string without an end");
  if (!names_strings_only(map->trie, map->strings.size())) {
    refuse(name, "names a string beyond its end");
  }
  return map;
}

}  // namespace oxbow::convert
