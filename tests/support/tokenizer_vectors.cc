#include "tests/support/tokenizer_vectors.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "host/testing/paths.h"
#include "runtime/testing/tokenizer.h"
#include "tests/support/files.h"

namespace oxbow::testing {
namespace {

constexpr uint32_t kSameAsLine = 0xffffffff;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), bytes_(read_bytes(path)) {}

  template <typename T>
  T number() {
    T value = 0;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text(size_t size) { return {reinterpret_cast<const char*>(take(size)), size}; }

 private:
  const std::byte* take(size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error(path_.string() + " is too short");
    at_ += size;
    return bytes_.data() + at_ - size;
  }

  std::filesystem::path path_;
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

std::filesystem::path root() {
  return std::filesystem::path(testing::source_dir()) / "tests/tokenizers";
}

}  // namespace

std::filesystem::path tokenizer_folder(const std::string& vocabulary) {
  return root() / vocabulary;
}

std::vector<std::string> tokenizer_vocabularies(const std::string& kind) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(root() / kind)) {
    out.push_back(kind + "/" + entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TokenizerVectors read_tokenizer_vectors(const std::string& vocabulary) {
  const std::filesystem::path folder = tokenizer_folder(vocabulary);
  // "cjk-whole" is another vocabulary for the lines of "cjk".
  const std::string name = folder.filename().string();
  Reader lines(root() / "lines" / (name.substr(0, name.find('-')) + ".bin"));
  Reader expected(folder / "expected.bin");
  TokenizerVectors out;
  const auto count = lines.number<uint32_t>();
  if (expected.number<uint32_t>() != count) {
    throw std::runtime_error(folder.string() + " has not as many lines as expected");
  }
  for (uint32_t i = 0; i < count; ++i) {
    out.lines.push_back(lines.text(lines.number<uint32_t>()));
    out.ids.emplace_back(expected.number<uint32_t>());
    for (int32_t& id : out.ids.back()) id = expected.number<uint16_t>();
    const auto size = expected.number<uint32_t>();
    out.texts.push_back(size == kSameAsLine ? out.lines.back() : expected.text(size));
  }
  return out;
}

void expect_vectors(const Tokenizer& tokenizer, const TokenizerVectors& vectors,
                    bool parse_special) {
  struct Pieces {
    size_t chunk;
    size_t room;
  };
  for (size_t i = 0; i < vectors.lines.size() && !::testing::Test::HasFailure(); ++i) {
    for (const Pieces& pieces : {Pieces{0, 0}, Pieces{1, 0}, Pieces{7, 5}, Pieces{0, 1}}) {
      EncodeOptions options;
      options.chunk = pieces.chunk;
      options.room = pieces.room;
      options.parse_special = parse_special ? 1 : 0;
      EXPECT_EQ(encode_all(tokenizer, vectors.lines[i], options), vectors.ids[i])
          << "line " << i << ", chunk " << pieces.chunk << ", room " << pieces.room << ": "
          << ::testing::PrintToString(vectors.lines[i]);
    }
    EXPECT_EQ(decode_all(tokenizer, vectors.ids[i]), vectors.texts[i]) << "line " << i;
  }
}

}  // namespace oxbow::testing
