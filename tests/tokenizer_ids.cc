// What a tokenizer makes of texts, for the script tests/real-tokenizers, which compares it with the original library.
//
//   oxbow_tokenizer_ids SOURCE VOCABULARY TEXTS OUTPUT [plain]
//
//   SOURCE       a tokenizer as `oxbow-convert --tokenizer` takes it, or a GGUF file
//   VOCABULARY   tokens of the model it would be for
//   TEXTS        u32 count; for each u32 size and the bytes, little-endian
//   OUTPUT       for each text u32 count and the ids as i32, u32 size and the bytes they decode to
//   plain        special tokens are not looked for in texts
//
// Writes nanoseconds for each byte of text, and the tokens put around a text, to standard output.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"
#include "converter/text/tokenizer/find.h"
#include "host/io_file.h"
#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"

namespace {

using oxbow::Encoded;
using oxbow::Error;
using oxbow::Status;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

void check(Status status, const Error& error) {
  if (status != Status::kOk) fail(error.text);
}

class Texts {
 public:
  explicit Texts(const char* path) : file_(path, std::ios::binary) {}

  uint32_t number() {
    uint32_t value = 0;
    file_.read(reinterpret_cast<char*>(&value), sizeof(value));
    if (!file_) fail("the texts are too short");
    return value;
  }
  std::string text() {
    std::string text(number(), '\0');
    file_.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file_) fail("the texts are too short");
    return text;
  }

 private:
  std::ifstream file_;
};

void write_number(std::ofstream& file, uint32_t value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

oxbow::convert::FoundTokenizer read(const std::string& source, uint32_t vocabulary) {
  const oxbow::convert::TokenizerModel model{"", vocabulary};
  if (!source.ends_with(".gguf")) return oxbow::convert::read_tokenizer(source, model);
  const oxbow::MappedFile file(source);
  return oxbow::convert::read_gguf_tokenizer(oxbow::convert::Gguf(source, file.bytes()), model);
}

int run(int count, char** arguments) {
  if (count != 5 && count != 6) fail("usage: SOURCE VOCABULARY TEXTS OUTPUT [plain]");
  const auto vocabulary = static_cast<uint32_t>(std::stoul(arguments[2]));
  const oxbow::convert::FoundTokenizer found = read(arguments[1], vocabulary);
  if (!found.tokenizer) fail("there is no tokenizer");
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(oxbow::schema::CreateTokenizer(builder, found.tokenizer.get()));
  oxbow::Tokenizer tokenizer;
  Error error;
  check(oxbow::open_tokenizer(
            flatbuffers::GetRoot<oxbow::schema::Tokenizer>(builder.GetBufferPointer()), vocabulary,
            &tokenizer, &error),
        error);

  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  options.add_template = 0;
  options.parse_special = count == 5;
  options.max_word_bytes = 1 << 16;
  size_t bytes = 0;
  check(oxb_encoder::measure(tokenizer, options, &bytes, &error), error);
  std::vector<std::byte> memory(bytes);
  oxb_encoder* encoder = nullptr;
  check(oxb_encoder::place(tokenizer, options, memory.data(), bytes, &encoder, &error), error);
  oxb_decoder_options shown = OXB_DECODER_OPTIONS_INIT;
  shown.skip_special = 0;
  std::vector<std::byte> decoder_memory(oxb_decoder::bytes() + 64);
  oxb_decoder* decoder = nullptr;
  check(oxb_decoder::place(tokenizer, shown, decoder_memory.data(), decoder_memory.size(), &decoder,
                           &error),
        error);

  Texts texts(arguments[3]);
  std::ofstream out(arguments[4], std::ios::binary);
  std::vector<char> room(oxb_decoder::most_text(tokenizer));
  double seconds = 0;
  size_t all = 0;
  for (uint32_t i = texts.number(); i > 0; --i) {
    const std::string text = texts.text();
    std::vector<int32_t> ids(4 * text.size() + 64);
    size_t made = 0;
    size_t taken = 0;
    const auto begin = std::chrono::steady_clock::now();
    // The text has ended when a call gives fewer ids than there is room for.
    for (;;) {
      Encoded encoded;
      const Status status = encoder->run(std::span(text).subspan(taken), true,
                                         std::span(ids).subspan(made), &encoded, &error);
      if (status != Status::kOk) {
        std::fprintf(stderr, "%s\n", error.text);
        encoder->reset();
        made = 0;
        break;
      }
      made += encoded.count;
      taken += encoded.consumed;
      if (taken == text.size() && made < ids.size()) break;
      if (made == ids.size()) ids.resize(2 * ids.size());
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    all += text.size();
    std::string decoded;
    size_t written = 0;
    for (size_t at = 0; at < made; ++at) {
      check(decoder->run(ids[at], room, &written, &error), error);
      decoded.append(room.data(), written);
    }
    check(decoder->finish(room, &written, &error), error);
    decoded.append(room.data(), written);
    write_number(out, static_cast<uint32_t>(made));
    out.write(reinterpret_cast<const char*>(ids.data()),
              static_cast<std::streamsize>(made * sizeof(int32_t)));
    write_number(out, static_cast<uint32_t>(decoded.size()));
    out.write(decoded.data(), static_cast<std::streamsize>(decoded.size()));
  }
  std::printf("%.1f", 1e9 * seconds / static_cast<double>(all));
  for (const std::vector<uint32_t>* ids : {&found.tokenizer->before, &found.tokenizer->after}) {
    std::printf(" |");
    for (const uint32_t id : *ids) std::printf(" %u", id);
  }
  std::printf("\n");
  oxbow::close_tokenizer(&tokenizer);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
