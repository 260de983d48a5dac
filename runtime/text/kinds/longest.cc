// RWKV's World vocabulary: the longest token that the text begins with, and again behind it. Every byte is a token,
// so there is always one.

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"

namespace oxbow {
namespace {

Status check(Tokenizer& tokenizer, Error* error) {
  const auto* bytes = tokenizer.table->byte_pieces();
  if (bytes == nullptr || bytes->size() != 256) {
    return fail(error, Status::kFileCorrupt, "tokenizer: not every byte has a token");
  }
  for (const uint32_t token : *bytes) {
    if (token >= tokenizer.tokens) {
      return fail(error, Status::kFileCorrupt, "tokenizer: the token of a byte is %u, of %u",
                  static_cast<unsigned>(token), static_cast<unsigned>(tokenizer.tokens));
    }
  }
  return Status::kOk;
}

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error*) {
  const Tokenizer& tokenizer = *state.tokenizer;
  while (*consumed < text.size() && state.pending.left() > 0) {
    const std::span<const char> rest = text.subspan(*consumed);
    uint32_t token = tokenizer.table->byte_pieces()->Get(static_cast<uint8_t>(rest[0]));
    size_t bytes = 1, seen = 0;
    Trie::Walk walk = tokenizer.trie.walk();
    for (; seen < rest.size() && walk.step(rest[seen]); ++seen) {
      // The number comes from the file.
      if (walk.ends() && walk.value() < tokenizer.tokens) {
        bytes = seen + 1;
        token = walk.value();
      }
    }
    // More text may make it longer.
    if (seen == rest.size() && seen < tokenizer.longest_text && !last) return Status::kOk;
    state.pending.add(static_cast<int32_t>(token));
    *consumed += bytes;
  }
  return Status::kOk;
}

void decode(DecoderState& state, uint32_t token) { state.out.add(state.tokenizer->text(token)); }

}  // namespace

extern const TokenizerDef longest_tokenizer;
const TokenizerDef longest_tokenizer = {
    .kind = schema::TokenizerKind::Longest,
    .public_kind = OXB_TOKENIZER_LONGEST,
    .name = "longest",
    .check = check,
    .encode = encode,
    .decode = decode,
};

}  // namespace oxbow
