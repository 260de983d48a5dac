#pragma once

// Patterns that cut text, made automata of for the runtime (runtime/text/pattern.h).

#include <memory>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

struct SplitPattern {
  /// A regular expression, or the text itself.
  std::string text;
  bool literal = false;
  schema::SplitBehaviour behaviour = schema::SplitBehaviour::Isolated;
  /// See the schema.
  bool of_bytes = false;
};

struct CompiledPatterns {
  std::unique_ptr<schema::CharClassesT> classes;
  uint32_t class_count = 0;
  std::vector<std::unique_ptr<schema::WordPatternT>> patterns;
};

/// What `tokenizers` takes for punctuation, which is not \p{P}: its data is older, and it has the symbols of ASCII.
std::string punctuation_pattern();

/// Throws InputError for what is not supported: see pattern_syntax.h, and patterns that match nothing at all or need too
/// many states.
CompiledPatterns compile_patterns(const std::string& source,
                                  const std::vector<SplitPattern>& patterns);

/// Fills `patterns` and the classes of characters they need. Throws InputError.
void write_patterns(const std::string& source, const std::vector<SplitPattern>& patterns,
                    schema::TokenizerT& tokenizer);

}  // namespace oxbow::convert
