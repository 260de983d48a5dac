// The steps that are no normal form: patterns and sequences that are replaced, and white space at the ends.

#include <algorithm>

#include "runtime/text/normalizer.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

// Longer ones are not looked up at once; as in the original.
constexpr size_t kMaxClusterBytes = 5;

}  // namespace

size_t TextStep::take_pattern(std::span<const char> text, bool last) {
  size_t at = 0;
  while (!full() && !complete_) {
    PatternCutter cutter(tables_->pattern, cutting_, text.subspan(at), last);
    const PatternWord part = cutter.next(kSlack);
    const bool held = cutting_.parts[0].mode == PatternPart::Mode::kHeld;
    if (part.bytes == 0 && part.open) {
      complete_ = last && at == text.size();
      return at;
    }
    // A part of what is kept that is more than there is room for is taken in parts.
    size_t bytes = part.bytes;
    const size_t room = buffer_.size() - filled_;
    if (!held && bytes > room) {
      bytes = room;
      while (bytes > 0 && (text[at + bytes] & 0xc0) == 0x80) --bytes;
      if (bytes == 0) return at;
    }
    if (!held) put(text.subspan(at, bytes));
    if (held && !part.open) put(tables_->content);
    if (bytes == 0) {
      cutter.end_word();
    } else {
      cutter.take(bytes);
    }
    at += bytes;
  }
  return at;
}

/// Bytes of the cluster that the text begins with; 0: more must be seen.
size_t TextStep::cluster_bytes(std::span<const char> text, bool last) const {
  const Character first = read(text, last);
  if (first.bytes == 0 || (tables_->classes.of(first.code_point) & kIsolated) != 0) {
    if (first.code_point != '\r') return first.bytes;
    if (text.size() == 1) return last ? 1 : 0;
    return text[1] == '\n' ? 2 : 1;
  }
  size_t bytes = first.bytes;
  while (bytes <= kMaxClusterBytes) {
    if (bytes == text.size()) return last ? bytes : 0;
    const Character next = read(text.subspan(bytes), last);
    if (next.bytes == 0) return 0;
    if ((tables_->classes.of(next.code_point) & kWordCharacter) == 0) break;
    bytes += next.bytes;
  }
  return bytes;
}

size_t TextStep::take_map(std::span<const char> text, bool last) {
  size_t at = 0;
  while (at < text.size() && !full()) {
    const std::span<const char> rest = text.subspan(at);
    const Character next = read(rest, last);
    if (next.bytes == 0) return at;
    if (!tables_->clusters && (tables_->classes.of(next.code_point) & kRemoved) != 0) {
      at += next.bytes;
      continue;
    }
    if (tables_->clusters) {
      const bool mark = (tables_->classes.of(next.code_point) & kWordCharacter) != 0;
      if (!mark) long_cluster_ = false;
      if (!long_cluster_) {
        const size_t bytes = cluster_bytes(rest, last);
        if (bytes == 0) return at;
        long_cluster_ = bytes > kMaxClusterBytes;
        const CharMap::Replacement found = tables_->map.shortest(rest.first(bytes));
        if (!long_cluster_ && bytes > next.bytes && found.bytes > 0) {
          put(found.text);
          at += bytes;
          continue;
        }
        // The marks of a cluster that is not replaced are looked up alone, and not as another cluster.
        long_cluster_ = long_cluster_ || bytes > next.bytes;
      }
    }
    const CharMap::Replacement found = tables_->map.shortest(next.text);
    put(found.bytes == next.text.size() ? found.text : next.text);
    at += next.bytes;
  }
  complete_ = last && at == text.size() && !full();
  return at;
}

size_t TextStep::take_strip(std::span<const char> text, bool last) {
  size_t at = 0;
  while (at < text.size() && !full()) {
    // White space, and the character behind it.
    size_t spaces = at;
    Character next;
    while (spaces < text.size()) {
      next = read(text.subspan(spaces), last);
      if (next.bytes == 0 || (tables_->classes.of(next.code_point) & kSpace) == 0) break;
      spaces += next.bytes;
    }
    const bool known = spaces < text.size() && next.bytes > 0;
    if (!begun_ && tables_->strip_left) {
      at = spaces;
    } else if (!known && tables_->strip_right) {
      if (last) at = text.size();
      if (at < text.size()) return at;
      break;
    }
    const std::span<const char> run = text.subspan(at, spaces - at);
    const size_t room = buffer_.size() - filled_ - kMaxCharacterBytes;
    if (run.size() > room) {
      put(run.first(room));
      at += room;
      begun_ = true;
      continue;
    }
    put(run);
    at = spaces;
    if (!known) break;
    put(next.text);
    begun_ = true;
    at += next.bytes;
  }
  complete_ = last && at == text.size() && !full();
  return at;
}

}  // namespace oxbow
