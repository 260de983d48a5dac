// A token for each byte.

#include <algorithm>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"

namespace oxbow {
namespace {

Status open(Tokenizer& tokenizer, Error*) {
  tokenizer.tokens = tokenizer.pieces = 256;
  tokenizer.longest_text = 1;
  return Status::kOk;
}

Status check(Tokenizer& tokenizer, Error* error) {
  if (tokenizer.vocabulary == 256) return Status::kOk;
  return fail(error, Status::kFileCorrupt, "tokenizer: 256 bytes for a vocabulary of %u tokens",
              static_cast<unsigned>(tokenizer.vocabulary));
}

Status encode(EncoderState& state, std::span<const char> text, bool, size_t* consumed, Error*) {
  *consumed = std::min(text.size(), state.pending.left());
  for (const char byte : text.first(*consumed)) state.pending.add(static_cast<uint8_t>(byte));
  return Status::kOk;
}

void decode(DecoderState& state, uint32_t token) { state.out.add(static_cast<char>(token)); }

std::span<const char> token_text(const Tokenizer&, uint32_t token, std::span<char> room) {
  room[0] = static_cast<char>(token);
  return room.first(1);
}

}  // namespace

extern const TokenizerDef byte_tokenizer;
const TokenizerDef byte_tokenizer = {
    .kind = schema::TokenizerKind::Byte,
    .public_kind = OXB_TOKENIZER_BYTE,
    .name = "byte",
    .open = open,
    .check = check,
    .encode = encode,
    .decode = decode,
    .token_text = token_text,
};

}  // namespace oxbow
