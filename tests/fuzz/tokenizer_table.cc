// A tokenizer's tables in a model file, changed: refused, or used without harm. An input is a list of
// changes of eight bytes: which tokenizer and how, then place and value.

#include <cstring>

#include "converter/text/tokenizer/find.h"
#include "host/testing/paths.h"
#include "tests/fuzz/check_text.h"

namespace oxbow::testing {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr const char* kText =
    "Where does the Old River end? caf\xc3\xa9 12,345 don't \xe4\xb8\xad\xe6\x96\x87 "
    "\xed\x95\x9c\xea\xb8\x80 e\xcc\x81\xcc\xa7 <s>[MASK]<|endoftext|>\n\n  x\xff\xe2\x96\x81 "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.";

Bytes table_of(const std::string& source, uint32_t vocabulary) {
  const convert::FoundTokenizer found = convert::read_tokenizer(source, {"", vocabulary});
  flatbuffers::FlatBufferBuilder builder;
  // What is not there could not be changed.
  builder.ForceDefaults(true);
  builder.Finish(schema::CreateTokenizer(builder, found.tokenizer.get()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

struct Base {
  Bytes bytes;
  uint32_t vocabulary;
};

const std::vector<Base>& all_bases() {
  static const std::vector<Base> all = [] {
    const std::string folder = testing::source_dir() + "/tests/";
    constexpr uint32_t kMany = 4096;
    std::vector<Base> out = {{table_of("byte", 256), 256},
                             {table_of(folder + "fuzz/characters.json", 32), 32}};
    for (const char* name : {"gpt2/latin", "llama3/latin", "wordpiece/latin",
                             "wordpiece/indic_thai", "unigram/latin", "spbpe/latin"}) {
      out.push_back({table_of(folder + "tokenizers/" + name, kMany), kMany});
    }
    return out;
  }();
  return all;
}

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  if (size == 0) return 0;
  const auto& all = all_bases();
  const Base& base = all[data[0] % all.size()];
  // Of the alignment that a file has in memory.
  const auto room = std::make_unique<uint64_t[]>((base.bytes.size() + 7) / 8);
  auto* const bytes = reinterpret_cast<uint8_t*>(room.get());
  std::memcpy(bytes, base.bytes.data(), base.bytes.size());
  constexpr size_t kMostChanges = 64;
  for (size_t at = 0, changes = 0; at + 8 <= size && changes < kMostChanges; at += 8, ++changes) {
    uint32_t place = 0, value = 0;
    std::memcpy(&place, data + at + 1, 3);
    std::memcpy(&value, data + at + 4, 4);
    // What chooses one of a few, or is so or not, is small.
    if ((data[at] & 0x10) != 0) value %= 8;
    // The small tables and the offsets to all of them are at the beginning.
    const size_t where = (data[at] & 0x80) != 0 ? place % 512 : place % base.bytes.size();
    const size_t width = std::min<size_t>(size_t{1} << (data[at] >> 5 & 3), 4);
    if (where + width <= base.bytes.size()) std::memcpy(bytes + where, &value, width);
  }
  flatbuffers::Verifier verifier(bytes, base.bytes.size());
  if (!verifier.VerifyBuffer<oxbow::schema::Tokenizer>()) return 0;
  oxbow::Tokenizer tokenizer;
  oxbow::Error error;
  if (oxbow::open_tokenizer(flatbuffers::GetRoot<oxbow::schema::Tokenizer>(bytes), base.vocabulary,
                            &tokenizer, &error) != oxbow::Status::kOk) {
    if (error.text[0] == '\0') broken("a refusal has words");
    return 0;
  }
  if (tokenizer.table != nullptr) {
    oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
    options.max_word_bytes = 64;
    const EncodedText encoded =
        encode_text(tokenizer, options, {kText, std::strlen(kText)}, {200, 9}, data[0]);
    decode_text(tokenizer, encoded.ids);
    std::vector<int32_t> ids;
    for (uint32_t id = 0; id < std::min(base.vocabulary, 400u); ++id) {
      ids.push_back(static_cast<int32_t>(id));
    }
    decode_text(tokenizer, ids);
  }
  oxbow::close_tokenizer(&tokenizer);
  return 0;
}
