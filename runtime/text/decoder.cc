#include "runtime/text/decoder.h"

#include <algorithm>
#include <new>

#include "runtime/text/utf8.h"

namespace oxbow {

void CharacterWriter::put(std::span<const char> bytes) {
  const size_t count = std::min(bytes.size(), room_.size() - written_);
  std::copy_n(bytes.data(), count, room_.data() + written_);
  written_ += count;
}

void CharacterWriter::add(char byte) {
  using Kind = Utf8Character::Kind;
  waiting_[held_++] = byte;
  // A byte that does not go on a character may begin another.
  while (held_ > 0) {
    const std::span<const char> held(waiting_, held_);
    const Utf8Character next = read_utf8(held);
    if (next.kind == Kind::kIncomplete) return;
    size_t used = next.bytes;
    if (next.kind == Kind::kCharacter) {
      put(held.first(used));
    } else {
      used = replace_each_byte_ ? 1 : malformed_bytes(held);
      put(std::span("\xef\xbf\xbd", 3));
    }
    std::copy(waiting_ + used, waiting_ + held_, waiting_);
    held_ -= used;
  }
}

void CharacterWriter::add(std::span<const char> bytes) {
  for (const char byte : bytes) add(byte);
}

void CharacterWriter::wait_for(std::span<const char> bytes) {
  held_ = std::min(bytes.size(), sizeof(waiting_));
  std::copy_n(bytes.data(), held_, waiting_);
}

void CharacterWriter::flush() {
  if (held_ > 0 && !replace_each_byte_) held_ = 1;
  for (; held_ > 0; --held_) put(std::span("\xef\xbf\xbd", 3));
}

}  // namespace oxbow

using oxbow::Error;
using oxbow::fail;
using oxbow::Status;

size_t oxb_decoder::bytes() { return sizeof(oxb_decoder) + alignof(oxb_decoder) - 1; }

size_t oxb_decoder::most_text(const oxbow::Tokenizer& tokenizer) {
  size_t longest = tokenizer.longest_text;
  if (tokenizer.table->unknown_text() != nullptr) {
    longest = std::max<size_t>(longest, tokenizer.table->unknown_text()->size());
  }
  // A kind may put a space before it.
  return oxbow::CharacterWriter::most(longest + 1);
}

namespace {

/// Adds the text of a token, as the kind does it or as the file says.
void decode(oxbow::DecoderState& state, uint32_t token) {
  const oxbow::Tokenizer& tokenizer = *state.tokenizer;
  if (tokenizer.table->decoding() == oxbow::schema::TokenDecoding::Kind) {
    // Which may have no texts at all, as bytes have none.
    tokenizer.def->decode(state, token);
    return;
  }
  const auto* suffix = tokenizer.table->word_suffix();
  std::span<const char> text = tokenizer.text(token);
  switch (tokenizer.table->decoding()) {
    case oxbow::schema::TokenDecoding::Kind:
      return;
    case oxbow::schema::TokenDecoding::Plain:
      state.out.add(text);
      return;
    case oxbow::schema::TokenDecoding::Spaced:
      if (!state.text_start) state.out.add(' ');
      state.out.add(text);
      return;
    case oxbow::schema::TokenDecoding::WordEnds:
      // Not leading: a word has ended.
      if (!state.leading) state.out.add(' ');
      state.leading = true;
      if (suffix != nullptr && text.size() >= suffix->size() && suffix->size() > 0 &&
          std::equal(suffix->begin(), suffix->end(), text.end() - suffix->size())) {
        text = text.first(text.size() - suffix->size());
        state.leading = false;
      }
      state.out.add(text);
      return;
  }
}

}  // namespace

Status oxb_decoder::place(const oxbow::Tokenizer& tokenizer, const oxb_decoder_options& options,
                          void* memory, size_t bytes, oxb_decoder** decoder, Error* error) {
  if (memory == nullptr || bytes < oxb_decoder::bytes()) {
    return fail(error, Status::kBufferTooSmall, "decoder: given %zu bytes; expected %zu",
                memory == nullptr ? 0 : bytes, oxb_decoder::bytes());
  }
  auto* base = static_cast<std::byte*>(memory);
  base += -reinterpret_cast<uintptr_t>(base) % alignof(oxb_decoder);
  auto* made = new (base) oxb_decoder();
  made->options_ = options;
  made->state_.tokenizer = &tokenizer;
  *decoder = made;
  return Status::kOk;
}

bool oxb_decoder::gives_text(uint32_t token) const {
  const oxbow::Tokenizer& tokenizer = *state_.tokenizer;
  // A model may have more tokens than its tokenizer, to round their number up.
  if (token >= tokenizer.tokens) return false;
  return options_.skip_special == 0 || tokenizer.roles.empty() ||
         tokenizer.role(token) != oxbow::schema::TokenRole::Special;
}

oxb_decoder::Preview oxb_decoder::preview(uint32_t token, std::span<char> text) const {
  Preview out;
  if (!gives_text(token)) return out;
  oxbow::DecoderState state = state_;
  state.out.start(text);
  decode(state, token);
  out.text = text.first(state.out.written());
  const std::span<const char> waiting = state.out.waiting();
  std::copy(waiting.begin(), waiting.end(), out.waiting);
  out.waiting_count = waiting.size();
  return out;
}

oxb_decoder::Saved oxb_decoder::save() const {
  Saved saved;
  const std::span<const char> waiting = state_.out.waiting();
  std::copy(waiting.begin(), waiting.end(), saved.waiting);
  saved.waiting_count = static_cast<uint8_t>(waiting.size());
  saved.replace_each_byte = state_.out.replaces_each_byte();
  saved.text_start = state_.text_start;
  saved.leading = state_.leading;
  return saved;
}

Status oxb_decoder::load(const Saved& saved, Error* error) {
  const size_t count = saved.waiting_count;
  using Kind = oxbow::Utf8Character::Kind;
  if (count >= sizeof(saved.waiting) ||
      (count > 0 && oxbow::read_utf8({saved.waiting, count}).kind != Kind::kIncomplete)) {
    return fail(error, Status::kStateCorrupt, "decoder state: no part of a character waits");
  }
  state_.out = {};
  state_.out.wait_for({saved.waiting, count});
  if (saved.replace_each_byte != 0) state_.out.replace_each_byte();
  state_.text_start = saved.text_start != 0;
  state_.leading = saved.leading != 0;
  return Status::kOk;
}

Status oxb_decoder::run(int32_t id, std::span<char> text, size_t* count, Error* error) {
  const oxbow::Tokenizer& tokenizer = *state_.tokenizer;
  *count = 0;
  if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.vocabulary) {
    return fail(error, Status::kInvalidArgument, "token %d is not in the vocabulary of %u", id,
                static_cast<unsigned>(tokenizer.vocabulary));
  }
  if (text.size() < most_text()) {
    return fail(error, Status::kBufferTooSmall, "decoder: room for %zu bytes; a token can have %zu",
                text.size(), most_text());
  }
  const auto token = static_cast<uint32_t>(id);
  if (!gives_text(token)) return Status::kOk;
  state_.out.start(text);
  decode(state_, token);
  state_.text_start = false;
  *count = state_.out.written();
  return Status::kOk;
}

Status oxb_decoder::finish(std::span<char> text, size_t* count, Error* error) {
  *count = 0;
  if (text.size() < oxbow::CharacterWriter::most(0)) {
    return fail(error, Status::kBufferTooSmall,
                "decoder: room for %zu bytes; the end of a text can have %zu", text.size(),
                oxbow::CharacterWriter::most(0));
  }
  state_.out.start(text);
  state_.out.flush();
  *count = state_.out.written();
  state_.text_start = state_.leading = true;
  return Status::kOk;
}
