// A token for each character.

#include <algorithm>
#include <new>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

using Kind = Utf8Character::Kind;

std::span<const uint32_t> code_points(const Tokenizer& tokenizer) {
  return {tokenizer.table->code_points()->data(), tokenizer.tokens};
}

/// Ids sorted by code point.
std::span<uint32_t> order(const Tokenizer& tokenizer) { return tokenizer.numbers; }

Status open(Tokenizer& tokenizer, Error* error) {
  const auto* characters = tokenizer.table->code_points();
  tokenizer.tokens = tokenizer.pieces = characters == nullptr ? 0 : characters->size();
  tokenizer.longest_text = kMaxCharacterBytes;
  tokenizer.numbers = {new (std::nothrow) uint32_t[tokenizer.tokens], tokenizer.tokens};
  if (tokenizer.numbers.data() != nullptr) return Status::kOk;
  return fail(error, Status::kOutOfMemory, "no memory for the vocabulary");
}

Status check(Tokenizer& tokenizer, Error* error) {
  if (tokenizer.tokens != tokenizer.vocabulary) {
    return fail(
        error, Status::kFileCorrupt, "tokenizer: %u characters for a vocabulary of %u tokens",
        static_cast<unsigned>(tokenizer.tokens), static_cast<unsigned>(tokenizer.vocabulary));
  }
  // A character that is not there could not be told with its place.
  if (tokenizer.step_count > 0) {
    return fail(error, Status::kFileCorrupt, "tokenizer: characters are taken as they are");
  }
  const std::span<const uint32_t> characters = code_points(tokenizer);
  for (size_t id = 0; id < characters.size(); ++id) {
    if (!is_code_point(characters[id])) {
      return fail(error, Status::kFileCorrupt,
                  "tokenizer: token %zu stands for 0x%x, no Unicode character", id,
                  static_cast<unsigned>(characters[id]));
    }
    order(tokenizer)[id] = static_cast<uint32_t>(id);
  }
  // When two ids have the same code point, text becomes the lower one.
  std::sort(order(tokenizer).begin(), order(tokenizer).end(), [&](uint32_t a, uint32_t b) {
    return characters[a] != characters[b] ? characters[a] < characters[b] : a < b;
  });
  return Status::kOk;
}

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error* error) {
  const std::span<const uint32_t> characters = code_points(*state.tokenizer);
  const std::span<const uint32_t> ids = order(*state.tokenizer);
  while (state.pending.left() > 0 && *consumed < text.size()) {
    const Utf8Character next = read_utf8(text.subspan(*consumed));
    if (next.kind == Kind::kIncomplete && !last) return Status::kOk;
    if (next.kind != Kind::kCharacter) {
      return fail(error, Status::kTextStopped, "0x%02x does not begin a character in UTF-8",
                  static_cast<unsigned>(static_cast<uint8_t>(text[*consumed])));
    }
    const auto found = std::lower_bound(
        ids.begin(), ids.end(), next.code_point,
        [&](uint32_t id, uint32_t code_point) { return characters[id] < code_point; });
    if (found == ids.end() || characters[*found] != next.code_point) {
      return fail(error, Status::kTextStopped,
                  "U+%04X '%.*s' is not in the vocabulary of %zu characters",
                  static_cast<unsigned>(next.code_point),
                  // A control character in a message helps nobody.
                  next.code_point < 0x20 ? 0 : static_cast<int>(next.bytes),
                  text.data() + *consumed, characters.size());
    }
    state.pending.add(static_cast<int32_t>(*found));
    *consumed += next.bytes;
  }
  return Status::kOk;
}

std::span<const char> token_text(const Tokenizer& tokenizer, uint32_t token, std::span<char> room) {
  return room.first(write_utf8(code_points(tokenizer)[token], room.data()));
}

void decode(DecoderState& state, uint32_t token) {
  char bytes[kMaxCharacterBytes];
  state.out.add(token_text(*state.tokenizer, token, bytes));
}

}  // namespace

extern const TokenizerDef char_tokenizer;
const TokenizerDef char_tokenizer = {
    .kind = schema::TokenizerKind::Char,
    .public_kind = OXB_TOKENIZER_CHAR,
    .name = "char",
    .open = open,
    .check = check,
    .encode = encode,
    .decode = decode,
    .token_text = token_text,
};

}  // namespace oxbow
