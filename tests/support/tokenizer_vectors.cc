#include "tests/support/tokenizer_vectors.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace oxbow::testing {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (!file) throw std::runtime_error("cannot read " + path);
  }
  std::string take(size_t count) {
    if (count > bytes_.size() - at_) throw std::runtime_error("a file of vectors ends too early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <typename T>
  T number() {
    const std::string bytes = take(sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string tokenizer_folder(const std::string& name) {
  return std::string(OXB_SOURCE_DIR) + "/tests/tokenizers/" + name;
}

std::vector<TokenizerVector> read_tokenizer_vectors(const std::string& name) {
  const std::string group = name.substr(name.find('/') + 1);
  Reader lines(tokenizer_folder("lines/" + group.substr(0, group.find('-')) + ".bin"));
  Reader expected(tokenizer_folder(name) + "/expected.bin");
  const auto count = lines.number<uint32_t>();
  if (expected.number<uint32_t>() != count) throw std::runtime_error(name + ": counts differ");
  std::vector<TokenizerVector> vectors(count);
  for (TokenizerVector& vector : vectors) {
    vector.line = lines.take(lines.number<uint32_t>());
    for (auto left = expected.number<uint32_t>(); left > 0; --left) {
      vector.ids.push_back(expected.number<uint16_t>());
    }
    const auto size = expected.number<uint32_t>();
    vector.text = size == 0xffffffff ? vector.line : expected.take(size);
  }
  return vectors;
}

}  // namespace oxbow::testing
