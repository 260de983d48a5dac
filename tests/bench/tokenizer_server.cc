// Encodes and decodes texts for the script `tokenizers`, which measures it beside the original
// libraries: a process that waits for commands on standard input and answers each with one line of
// JSON. tokenizer_server.py knows the same commands.
//
//   oxbow_bench_tokenizer MODEL [MAX_WORD_BYTES]
//
//   texts FILE   reads texts: u32 count; for each u32 size and the bytes, little-endian; "bytes" of text
//   encode       all of them, each on its own; "seconds", "processor", "tokens"
//   ids FILE     writes what became of them: for each u32 count and the ids as i32
//   decode       these ids again, token by token; "bytes" of text
//   quit

#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "oxbow_bench_tokenizer: %s\n", what.c_str());
  std::exit(3);
}

double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Times a command and answers it.
class Answer {
 public:
  void give(const char* what, size_t count) const {
    const double processor = processor_seconds() - processor_;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::printf("{\"seconds\": %.9f, \"processor\": %.9f, \"%s\": %zu}\n", seconds, processor, what,
                count);
  }

 private:
  double processor_ = processor_seconds();
  Clock::time_point start_ = Clock::now();
};

std::vector<std::string> read_texts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto number = [&] {
    uint32_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  };
  std::vector<std::string> texts(number());
  for (std::string& text : texts) {
    text.resize(number());
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  }
  if (!file) fail("cannot read " + path);
  return texts;
}

class Tokenizer {
 public:
  Tokenizer(const oxb::Model& model, uint32_t max_word_bytes) {
    oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
    options.add_template = 0;
    options.max_word_bytes = max_word_bytes;
    check(oxb_encoder_bytes(model.get(), &options, &encoder_bytes_, &error_));
    encoder_memory_.resize(encoder_bytes_);
    check(oxb_encoder_create(model.get(), &options, encoder_memory_.data(), encoder_bytes_,
                             &encoder_, &error_));
    size_t bytes = 0;
    check(oxb_decoder_bytes(model.get(), nullptr, &bytes, &error_));
    decoder_memory_.resize(bytes);
    check(oxb_decoder_create(model.get(), nullptr, decoder_memory_.data(), bytes, &decoder_,
                             &error_));
    text_.resize(oxb_decoder_most_text(decoder_));
  }

  size_t encoder_bytes() const { return encoder_bytes_; }

  size_t read(const std::string& path) {
    texts_ = read_texts(path);
    size_t bytes = 0;
    for (const std::string& text : texts_) bytes += text.size();
    // More than text becomes, but for rare characters that are replaced by many.
    ids_.resize(2 * bytes + 16 * texts_.size() + 1);
    ends_.resize(texts_.size());
    return bytes;
  }

  size_t encode() {
    size_t at = 0;
    for (size_t i = 0; i < texts_.size(); ++i) {
      size_t count = 0;
      size_t consumed = 0;
      check(oxb_encoder_run(encoder_, texts_[i].data(), texts_[i].size(), 1, ids_.data() + at,
                            ids_.size() - at, &count, &consumed, &error_));
      if (consumed < texts_[i].size() || at + count == ids_.size()) {
        fail("a text was not taken at once");
      }
      ends_[i] = at += count;
    }
    return at;
  }

  size_t decode() {
    size_t at = 0;
    size_t bytes = 0;
    size_t count = 0;
    for (const size_t end : ends_) {
      for (; at < end; ++at, bytes += count) {
        check(oxb_decoder_run(decoder_, ids_[at], text_.data(), text_.size(), &count, &error_));
      }
      check(oxb_decoder_finish(decoder_, text_.data(), text_.size(), &count, &error_));
      bytes += count;
    }
    return bytes;
  }

  void write_ids(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    size_t begin = 0;
    for (const size_t end : ends_) {
      const auto count = static_cast<uint32_t>(end - begin);
      file.write(reinterpret_cast<const char*>(&count), sizeof(count));
      file.write(reinterpret_cast<const char*>(ids_.data() + begin),
                 static_cast<std::streamsize>((end - begin) * sizeof(int32_t)));
      begin = end;
    }
    if (!file.flush()) fail("cannot write " + path);
  }

 private:
  void check(oxb_status status) const {
    if (status != OXB_OK) fail(error_.text);
  }

  oxb_error error_ = OXB_ERROR_INIT;
  size_t encoder_bytes_ = 0;
  std::vector<std::byte> encoder_memory_;
  std::vector<std::byte> decoder_memory_;
  oxb_encoder* encoder_ = nullptr;
  oxb_decoder* decoder_ = nullptr;
  std::vector<std::string> texts_;
  std::vector<int32_t> ids_;
  std::vector<size_t> ends_;
  std::vector<char> text_;
};

void answer(Tokenizer& tokenizer, const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string command = line.substr(0, space);
  const std::string path = space < line.size() ? line.substr(space + 1) : "";
  const Answer timed;
  if (command == "encode") {
    timed.give("tokens", tokenizer.encode());
  } else if (command == "decode") {
    timed.give("bytes", tokenizer.decode());
  } else if (command == "texts") {
    timed.give("bytes", tokenizer.read(path));
  } else if (command == "ids") {
    tokenizer.write_ids(path);
    std::puts("{}");
  } else {
    fail("unknown command '" + command + "'");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: oxbow_bench_tokenizer MODEL [MAX_WORD_BYTES]\n");
    return 2;
  }
  auto model = oxb::Model::open(argv[1]);
  if (!model) fail(model.status().text());
  Tokenizer tokenizer(*model, argc > 2 ? static_cast<uint32_t>(std::stoul(argv[2])) : 4096);
  std::printf("{\"name\": \"Oxbow\", \"version\": \"%d.%d.%d\", \"memory\": %zu}\n",
              OXB_VERSION_MAJOR, OXB_VERSION_MINOR, OXB_VERSION_PATCH, tokenizer.encoder_bytes());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) answer(tokenizer, line);
  return 0;
}
