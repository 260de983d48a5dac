// Any bytes as JSON: read or refused with an InputError; and the grammar that texts are written by agrees with the
// reader: what it calls complete is read, and what is read is complete, but for its limits of depth and of spaces.

#include <string>

#include "host/errors.h"
#include "host/json_file.h"
#include "runtime/generate/json_grammar.h"
#include "tests/fuzz/broken.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow;
  const std::string text(data, data + size);
  bool read = false;
  try {
    const nlohmann::json value = parse_json("input", text);
    read = true;
    // What was read can be written, and read again as the same.
    if (parse_json("output", value.dump()) != value) testing::broken("JSON stays what it is");
  } catch (const InputError&) {
  }
  JsonGrammar grammar;
  grammar.start(false);
  bool begins = true;
  for (size_t i = 0; begins && i < text.size(); ++i) {
    begins = grammar.step(text[i]);
    if (begins && !grammar.sound()) testing::broken("the grammar can be saved at every byte");
  }
  // The reader also wants characters to be whole, and numbers to be of a size.
  bool plain = true;
  size_t depth = 0, deepest = 0, spaces = 0, most_spaces = 0;
  bool space_at_end = false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80 || c == '\\' || c == 'e' || c == 'E') plain = false;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') depth -= std::min<size_t>(depth, 1);
    space_at_end = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    spaces = space_at_end ? spaces + 1 : 0;
    most_spaces = std::max(most_spaces, spaces);
  }
  if (!plain || size > 300) return 0;
  if (begins && grammar.complete() && !read) testing::broken("a complete text is JSON:", text);
  if (read && !space_at_end && deepest <= JsonGrammar::kMaxDepth &&
      most_spaces <= JsonGrammar::kMaxSpaces && !(begins && grammar.complete())) {
    testing::broken("JSON is a complete text:", text);
  }
  return 0;
}
