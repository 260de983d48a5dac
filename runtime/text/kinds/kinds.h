#pragma once

// The kinds of tokenizers there are, each defined in the file of its name.

#include "runtime/text/tokenizer.h"

namespace oxbow {

extern const TokenizerDef kByteTokenizer;
extern const TokenizerDef kCharTokenizer;
extern const TokenizerDef kByteBpeTokenizer;
extern const TokenizerDef kWordPieceTokenizer;
extern const TokenizerDef kUnigramTokenizer;
extern const TokenizerDef kBpeTokenizer;
extern const TokenizerDef kLongestTokenizer;

}  // namespace oxbow
