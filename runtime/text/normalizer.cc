#include "runtime/text/normalizer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/text/open_tables.h"
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

}  // namespace

void TextStep::begin() {
  filled_ = dropped_ = count_ = 0;
  begun_ = complete_ = long_cluster_ = false;
  cutting_ = {};
}

void TextStep::put(std::span<const char> bytes) {
  std::copy(bytes.begin(), bytes.end(), buffer_.data() + filled_);
  filled_ += bytes.size();
}

void TextStep::drop(size_t bytes) { dropped_ += bytes; }

/// Moves what is there to the front of the buffer, when that is worth its time.
void TextStep::make_room() {
  if (dropped_ == 0 || (dropped_ < kSlack && dropped_ < filled_ - dropped_)) return;
  std::memmove(buffer_.data(), buffer_.data() + dropped_, filled_ - dropped_);
  filled_ -= dropped_;
  dropped_ = 0;
}

uint8_t TextStep::order_of(uint32_t code_point) const {
  const auto* marks = tables_->form->marks();
  if (marks == nullptr || marks->size() == 0 || code_point < marks->Get(0) >> 8) return 0;
  const uint32_t* end = marks->data() + marks->size();
  const uint32_t* found = std::lower_bound(marks->data(), end, code_point << 8);
  return found != end && *found >> 8 == code_point ? static_cast<uint8_t>(*found) : 0;
}

bool TextStep::compose(uint32_t first, uint32_t second, uint32_t* joined) const {
  if (tables_->form->join_hangul() && join_hangul(first, second, joined)) return true;
  char both[2 * kMaxCharacterBytes];
  size_t bytes = write_utf8(first, both);
  bytes += write_utf8(second, both + bytes);
  const CharMap::Replacement found = tables_->compose.find({both, bytes});
  if (found.bytes != bytes) return false;
  const Utf8Character character = read_utf8(found.text);
  *joined = character.code_point;
  return character.kind == Kind::kCharacter;
}

/// Joins what the marks of the segment compose to with its first character.
void TextStep::compose_segment() {
  if (count_ < 2 || tables_->form->compose() == nullptr || orders_[0] != 0) return;
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

void TextStep::flush() {
  compose_segment();
  for (size_t i = 0; i < count_; ++i) {
    char bytes[kMaxCharacterBytes];
    const std::span<const char> character(bytes, write_utf8(segment_[i], bytes));
    const CharMap::Replacement found = tables_->replace.find(character);
    put(found.bytes == character.size() ? found.text : character);
  }
  count_ = 0;
}

void TextStep::add(uint32_t code_point) {
  const uint8_t order = order_of(code_point);
  if (count_ == kMaxSegment) flush();
  if (order == 0 && count_ > 0) {
    compose_segment();
    uint32_t joined = 0;
    if (count_ == 1 && orders_[0] == 0 && tables_->form->compose() != nullptr &&
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

void TextStep::add_decomposed(uint32_t code_point, std::span<const char> character) {
  if (tables_->form->split_hangul() && code_point - kSyllables < kSyllableCount) {
    const uint32_t syllable = code_point - kSyllables;
    add(kLeads + syllable / (kVowelCount * kTrailCount));
    add(kVowels + syllable / kTrailCount % kVowelCount);
    if (syllable % kTrailCount != 0) add(kTrails + syllable % kTrailCount);
    return;
  }
  const CharMap::Replacement found = tables_->decompose.find(character);
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

TextStep::Character TextStep::read(std::span<const char> text, bool last) {
  const auto byte = static_cast<uint8_t>(text[0]);
  if (byte < 0x80) return {byte, 1, text.first(1)};
  const Utf8Character next = read_utf8(text);
  if (next.kind == Kind::kCharacter) return {next.code_point, next.bytes, text.first(next.bytes)};
  if (next.kind == Kind::kIncomplete && !last) return {};
  return {kReplacementCharacter, malformed_bytes(text), std::span("\xef\xbf\xbd", 3)};
}

size_t TextStep::take_form(std::span<const char> text, bool last) {
  size_t at = 0;
  while (at < text.size() && !full()) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const Character next = read(text.subspan(at), last);
    if (next.bytes == 0) return at;
    const std::span<const char> character = next.text;
    const uint8_t bits = tables_->classes.of(next.code_point);
    if (!begun_) {
      begun_ = true;
      const auto* prefix = tables_->form->prefix();
      const bool there = prefix != nullptr &&
                         (next.code_point == ' ' || std::equal(character.begin(), character.end(),
                                                               prefix->begin(), prefix->end()));
      if (prefix != nullptr && !(tables_->form->prefix_unless_space() && there)) {
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
        (tables_->classes.of(static_cast<uint8_t>(text[at])) & kChanged) == 0 &&
        tables_->replace.plain_ascii(static_cast<char>(byte))) {
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

size_t TextStep::take(std::span<const char> text, bool last) {
  make_room();
  switch (tables_->kind) {
    case NormalTables::Kind::kForm:
      return take_form(text, last);
    case NormalTables::Kind::kPattern:
      return take_pattern(text, last);
    case NormalTables::Kind::kMap:
      return take_map(text, last);
    case NormalTables::Kind::kStrip:
      return take_strip(text, last);
  }
  return 0;
}

size_t TextNormalizer::memory_bytes(size_t steps, size_t bytes) {
  if (steps == 0) return 0;
  return round_up(steps * sizeof(TextStep), alignof(std::max_align_t)) + bytes +
         (3 * steps - 1) * TextStep::kSlack;
}

void TextNormalizer::place(std::span<const NormalTables> tables, std::byte* memory, size_t bytes) {
  if (tables.empty()) return;
  steps_ = {new (memory) TextStep[tables.size()], tables.size()};
  auto* buffer = reinterpret_cast<char*>(
      memory + round_up(tables.size() * sizeof(TextStep), alignof(std::max_align_t)));
  for (size_t i = 0; i < tables.size(); ++i) {
    const bool is_last = i + 1 == tables.size();
    const size_t size = is_last ? bytes + 2 * TextStep::kSlack : 3 * TextStep::kSlack;
    steps_[i].place(tables[i], {buffer, size});
    buffer += size;
  }
}

void TextNormalizer::begin() {
  for (TextStep& step : steps_) step.begin();
}

size_t TextNormalizer::take(std::span<const char> text, bool last) {
  size_t taken = 0;
  for (bool moved = true; moved;) {
    moved = false;
    if (!steps_[0].complete()) {
      const size_t bytes = steps_[0].take(text.subspan(taken), last);
      taken += bytes;
      moved = bytes > 0;
    }
    for (size_t i = 1; i < steps_.size(); ++i) {
      TextStep& from = steps_[i - 1];
      if (steps_[i].complete()) continue;
      const size_t bytes = steps_[i].take(from.text(), from.complete());
      from.drop(bytes);
      moved |= bytes > 0;
    }
    if (steps_.size() == 1) break;
  }
  return taken;
}

Status open_form(const schema::Normalization& form, const CharClasses& classes,
                 NormalTables* tables, Error* error) {
  tables->kind = NormalTables::Kind::kForm;
  tables->form = &form;
  tables->classes = classes;
  OXB_TRY(open_char_map(form.decompose(), &tables->decompose, error));
  OXB_TRY(open_char_map(form.compose(), &tables->compose, error));
  OXB_TRY(open_char_map(form.replace(), &tables->replace, error));
  if (classes.empty() || !strings_fit(form.decompose(), kMaxDecomposition) ||
      !strings_fit(form.compose(), kMaxCharacterBytes) ||
      !strings_fit(form.replace(), kMaxReplacement) ||
      (form.prefix() != nullptr && form.prefix()->size() > kMaxReplacement)) {
    return fail(error, Status::kFileCorrupt,
                "tokenizer: the tables of normalization are incomplete");
  }
  return Status::kOk;
}

Status open_step(const schema::NormalStep& step, NormalTables* tables, Error* error) {
  if (step.classes() != nullptr) {
    OXB_TRY(open_classes(*step.classes(), &tables->classes, error));
  }
  if (step.form() != nullptr) return open_form(*step.form(), tables->classes, tables, error);
  if (step.pattern() != nullptr) {
    tables->kind = NormalTables::Kind::kPattern;
    OXB_TRY(tables->pattern.set_classes(tables->classes, step.class_count(), error));
    OXB_TRY(tables->pattern.add(*step.pattern(), error));
    if (step.content() != nullptr)
      tables->content = {step.content()->data(), step.content()->size()};
    if (tables->content.size() > kMaxContent || step.pattern()->of_bytes() ||
        step.pattern()->behaviour() != schema::SplitBehaviour::Isolated) {
      return fail(error, Status::kFileCorrupt, "tokenizer: a replacement is not as it must be");
    }
    return Status::kOk;
  }
  if (step.map() != nullptr) {
    tables->kind = NormalTables::Kind::kMap;
    tables->clusters = step.clusters();
    if (!strings_fit(step.map(), kMaxContent)) {
      return fail(error, Status::kFileCorrupt, "tokenizer: a replacement is too long");
    }
    return open_char_map(step.map(), &tables->map, error);
  }
  tables->kind = NormalTables::Kind::kStrip;
  tables->strip_left = step.strip_left();
  tables->strip_right = step.strip_right();
  return Status::kOk;
}

}  // namespace oxbow
