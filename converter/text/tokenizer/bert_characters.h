#pragma once

// What BERT makes of each character before it cuts text into words.

#include "schema/model_generated.h"

namespace oxbow::convert {

struct BertNormalizer {
  bool lower_case = true;
  /// Decomposes characters and leaves the accents out.
  bool strip_accents = true;
  /// Chinese characters are words of their own.
  bool split_chinese = true;
};

/// Sets the classes of characters, what they are replaced by, and what else depends on it.
/// `find_words`: kWordCharacter is wanted too, which makes the table larger.
void set_bert_characters(const BertNormalizer& normalizer, bool find_words,
                         schema::TokenizerT* tokenizer);

}  // namespace oxbow::convert
