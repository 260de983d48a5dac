// A token for each byte.

#include <algorithm>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/kinds/kinds.h"

namespace oxbow {
namespace {

Status check(const Tokenizer& tokenizer, Error* error) {
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

}  // namespace

const TokenizerDef kByteTokenizer = {
    schema::TokenizerKind::Byte, "byte", check, nullptr, encode, decode};

}  // namespace oxbow
