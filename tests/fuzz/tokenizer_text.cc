// Any bytes as text, for a tokenizer of each kind: see check_text.h. The first bytes of an input choose
// the tokenizer and its options, the rest is text and, read as numbers, ids.

#include <cstring>

#include "converter/text/tokenizer/find.h"
#include "host/testing/paths.h"
#include "tests/fuzz/check_text.h"

namespace oxbow::testing {
namespace {

class Loaded {
 public:
  Loaded(const std::string& source, uint32_t vocabulary, bool same_text) : same_text_(same_text) {
    const convert::FoundTokenizer found = convert::read_tokenizer(source, {"", vocabulary});
    builder_.Finish(schema::CreateTokenizer(builder_, found.tokenizer.get()));
    Error error;
    if (open_tokenizer(flatbuffers::GetRoot<schema::Tokenizer>(builder_.GetBufferPointer()),
                       vocabulary, &tokenizer_, &error) != Status::kOk) {
      broken("a tokenizer of the tests opens:", error.text);
    }
  }
  ~Loaded() { close_tokenizer(&tokenizer_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  /// Text that was encoded is the same when it is decoded.
  bool same_text() const { return same_text_; }

 private:
  flatbuffers::FlatBufferBuilder builder_;
  Tokenizer tokenizer_;
  bool same_text_;
};

const std::vector<std::unique_ptr<Loaded>>& all_loaded() {
  static const std::vector<std::unique_ptr<Loaded>> all = [] {
    const std::string folder = testing::source_dir() + "/tests/tokenizers/";
    constexpr uint32_t kMany = 1u << 17;
    std::vector<std::unique_ptr<Loaded>> out;
    out.push_back(std::make_unique<Loaded>("byte", 256, true));
    out.push_back(
        std::make_unique<Loaded>(testing::source_dir() + "/tests/fuzz/characters.json", 32, true));
    for (const char* name : {"gpt2/latin", "gpt2/cjk", "llama3/latin", "llama3/indic_thai"}) {
      out.push_back(std::make_unique<Loaded>(folder + name, kMany, true));
    }
    for (const char* name :
         {"wordpiece/latin", "wordpiece/cjk", "wordpiece/latin-accents", "wordpiece/indic_thai",
          "unigram/latin", "unigram/cjk", "spbpe/latin", "spbpe/arabic_hebrew"}) {
      out.push_back(std::make_unique<Loaded>(folder + name, kMany, false));
    }
    return out;
  }();
  return all;
}

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  constexpr size_t kChoices = 3;
  constexpr size_t kMostText = 4096;
  if (size < kChoices) return 0;
  const auto& all = all_loaded();
  const Loaded& loaded = *all[data[0] % all.size()];
  const oxbow::Tokenizer& tokenizer = loaded.tokenizer();
  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  options.add_template = data[1] & 1;
  options.parse_special = data[1] >> 1 & 1;
  options.max_word_bytes = (data[1] & 4) != 0 ? 64 : 512;
  const std::span<const char> text(reinterpret_cast<const char*>(data) + kChoices,
                                   std::min(size - kChoices, kMostText));
  check_text(tokenizer, options, text, data[2]);

  options.add_template = options.parse_special = 0;
  const EncodedText encoded = encode_text(tokenizer, options, text, {}, 0);
  if (loaded.same_text() && encoded.good &&
      decode_text(tokenizer, encoded.ids) != repaired_text(text)) {
    broken("encoded text is decoded to what it was");
  }
  // Ids that no text becomes.
  std::vector<int32_t> ids;
  for (size_t at = 0; at + 2 <= text.size(); at += 2) {
    uint16_t number = 0;
    std::memcpy(&number, text.data() + at, sizeof(number));
    ids.push_back(static_cast<int32_t>(number % tokenizer.vocabulary));
  }
  decode_text(tokenizer, ids);
  return 0;
}
