#include "runtime/text/normalizer.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

using Kind = Utf8Character::Kind;

// What one character becomes is never longer, in bytes: the longest that Unicode has is 33.
constexpr size_t kMaxDecomposition = 72;
constexpr size_t kMaxReplacement = 24;

constexpr uint32_t kSyllables = 0xac00;
constexpr uint32_t kSyllableCount = 11172;
constexpr uint32_t kLeads = 0x1100;
constexpr uint32_t kVowels = 0x1161;
constexpr uint32_t kTrails = 0x11a7;
constexpr uint32_t kLeadCount = 19;
constexpr uint32_t kVowelCount = 21;
constexpr uint32_t kTrailCount = 28;

/// Two jamo, or a syllable and the jamo that ends it.
bool join_hangul(uint32_t first, uint32_t second, uint32_t* joined) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount) {
    *joined = kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTrailCount;
    return true;
  }
  const uint32_t syllable = first - kSyllables;
  const uint32_t trail = second - kTrails;
  if (syllable >= kSyllableCount || syllable % kTrailCount != 0 || trail == 0 ||
      trail >= kTrailCount) {
    return false;
  }
  *joined = first + trail;
  return true;
}

/// Whether no string of a table is longer.
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

}  // namespace

void TextNormalizer::begin() {
  filled_ = count_ = 0;
  begun_ = complete_ = false;
}

void TextNormalizer::put(std::span<const char> bytes) {
  std::copy(bytes.begin(), bytes.end(), buffer_.data() + filled_);
  filled_ += bytes.size();
}

void TextNormalizer::drop(size_t bytes) {
  std::memmove(buffer_.data(), buffer_.data() + bytes, filled_ - bytes);
  filled_ -= bytes;
}

uint8_t TextNormalizer::order_of(uint32_t code_point) const {
  const auto* marks = table().marks();
  if (marks == nullptr || marks->size() == 0 || code_point < marks->Get(0) >> 8) return 0;
  const uint32_t* end = marks->data() + marks->size();
  const uint32_t* found = std::lower_bound(marks->data(), end, code_point << 8);
  return found != end && *found >> 8 == code_point ? static_cast<uint8_t>(*found) : 0;
}

bool TextNormalizer::compose(uint32_t first, uint32_t second, uint32_t* joined) const {
  if (table().join_hangul() && join_hangul(first, second, joined)) return true;
  char both[2 * kMaxCharacterBytes];
  size_t bytes = write_utf8(first, both);
  bytes += write_utf8(second, both + bytes);
  const CharMap::Replacement found = tokenizer_->compose.find({both, bytes});
  if (found.bytes != bytes) return false;
  const Utf8Character character = read_utf8(found.text);
  *joined = character.code_point;
  return character.kind == Kind::kCharacter;
}

/// Joins what the marks of the segment compose to with its first character.
void TextNormalizer::compose_segment() {
  if (count_ < 2 || table().compose() == nullptr || orders_[0] != 0) return;
  size_t kept = 1;
  for (size_t i = 1; i < count_; ++i) {
    uint32_t joined = 0;
    const bool blocked = kept > 1 && orders_[kept - 1] >= orders_[i];
    if (!blocked && compose(segment_[0], segment_[i], &joined)) {
      segment_[0] = joined;
      continue;
    }
    segment_[kept] = segment_[i];
    orders_[kept] = orders_[i];
    ++kept;
  }
  count_ = kept;
}

void TextNormalizer::flush() {
  compose_segment();
  for (size_t i = 0; i < count_; ++i) {
    char bytes[kMaxCharacterBytes];
    const std::span<const char> character(bytes, write_utf8(segment_[i], bytes));
    const CharMap::Replacement found = tokenizer_->replace.find(character);
    put(found.bytes == character.size() ? found.text : character);
  }
  count_ = 0;
}

void TextNormalizer::add(uint32_t code_point) {
  const uint8_t order = order_of(code_point);
  if (count_ == kMaxSegment) flush();
  if (order == 0 && count_ > 0) {
    compose_segment();
    uint32_t joined = 0;
    if (count_ == 1 && orders_[0] == 0 && table().compose() != nullptr &&
        compose(segment_[0], code_point, &joined)) {
      segment_[0] = joined;
      return;
    }
    flush();
  }
  size_t place = count_;
  while (place > 0 && orders_[place - 1] > order) {
    segment_[place] = segment_[place - 1];
    orders_[place] = orders_[place - 1];
    --place;
  }
  segment_[place] = code_point;
  orders_[place] = order;
  ++count_;
}

void TextNormalizer::add_decomposed(uint32_t code_point, std::span<const char> character) {
  if (table().split_hangul() && code_point - kSyllables < kSyllableCount) {
    const uint32_t syllable = code_point - kSyllables;
    add(kLeads + syllable / (kVowelCount * kTrailCount));
    add(kVowels + syllable / kTrailCount % kVowelCount);
    if (syllable % kTrailCount != 0) add(kTrails + syllable % kTrailCount);
    return;
  }
  const CharMap::Replacement found = tokenizer_->decompose.find(character);
  if (found.bytes != character.size()) {
    add(code_point);
    return;
  }
  std::span<const char> text = found.text;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    // The file's strings are bytes of any kind.
    const bool good = next.kind == Kind::kCharacter;
    add(good ? next.code_point : kReplacementCharacter);
    text = text.subspan(good ? next.bytes : 1);
  }
}

size_t TextNormalizer::take(std::span<const char> text, bool last) {
  size_t at = 0;
  while (at < text.size() && !full()) {
    const auto byte = static_cast<uint8_t>(text[at]);
    Utf8Character next = {Kind::kCharacter, byte, 1};
    if (byte >= 0x80) {
      next = read_utf8(text.subspan(at));
      if (next.kind == Kind::kIncomplete && !last) return at;
    }
    std::span<const char> character = text.subspan(at, next.bytes);
    if (next.kind != Kind::kCharacter) {
      next = {Kind::kCharacter, kReplacementCharacter, malformed_bytes(text.subspan(at))};
      character = std::span("\xef\xbf\xbd", 3);
    }
    const uint8_t bits = tokenizer_->classes.of(next.code_point);
    if (!begun_) {
      begun_ = true;
      const auto* prefix = table().prefix();
      if (prefix != nullptr && !(table().prefix_unless_space() && (bits & kSpace) != 0)) {
        put({prefix->data(), prefix->size()});
      }
    }
    at += next.bytes;
    if ((bits & kChanged) != 0) {
      add_decomposed(next.code_point, character);
      continue;
    }
    // Nothing joins with what is before it.
    if (count_ > 0) flush();
    if (byte < 0x80 && at < text.size() && static_cast<uint8_t>(text[at]) < 0x80 &&
        (tokenizer_->classes.of(static_cast<uint8_t>(text[at])) & kChanged) == 0 &&
        tokenizer_->replace.plain_ascii(static_cast<char>(byte))) {
      put(character);
      continue;
    }
    segment_[0] = next.code_point;
    orders_[0] = 0;
    count_ = 1;
  }
  if (last && at == text.size() && !full()) {
    flush();
    complete_ = true;
  }
  return at;
}

Status check_normalization(const Tokenizer& tokenizer, Error* error) {
  const schema::Normalization& table = *tokenizer.table->normalization();
  if (tokenizer.classes.empty() || !strings_fit(table.decompose(), kMaxDecomposition) ||
      !strings_fit(table.compose(), kMaxCharacterBytes) ||
      !strings_fit(table.replace(), kMaxReplacement) ||
      (table.prefix() != nullptr && table.prefix()->size() > kMaxReplacement)) {
    return fail(error, Status::kFileCorrupt,
                "tokenizer: the tables of normalization are incomplete");
  }
  return Status::kOk;
}

}  // namespace oxbow
