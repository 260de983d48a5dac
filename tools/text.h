#pragma once

// Text as the commands read it, of any length in a fixed memory, and tokens as people read them.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace oxbow::tools {

class TextOutput;

/// Where a text comes from: given words, or a file that is read as it is needed.
class TextSource {
 public:
  /// `name` is what messages call the text.
  static TextSource words(std::string name, std::string text);
  /// "-" is standard input.
  static TextSource file(const std::string& path);

  /// Ends the text behind its first `characters`.
  void limit(uint64_t characters) { characters_left_ = characters; }
  /// Puts something before and behind the text.
  void surround(std::string before, std::string after);

  /// Writes the text there as well while it is read.
  void echo(TextOutput* out) { echo_ = out; }

  /// Fills `room` as far as the text goes; less than that: it is over.
  size_t read(std::span<char> room);
  /// The next line without its end; false: there is none. Throws InputError when it is endless.
  bool read_line(std::string* line);

  const std::string& name() const { return name_; }
  /// Bytes of the text if they can be told beforehand, else 0.
  uint64_t size() const { return size_; }
  /// Of what read_line() gave.
  uint64_t bytes_of_lines() const { return bytes_of_lines_; }
  /// Bytes that were put before the text.
  size_t bytes_before() const { return parts_[0].text.size(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  /// Words, of which some were read.
  struct Part {
    std::string text;
    size_t done = 0;

    size_t read(std::span<char> room);
  };

  explicit TextSource(std::string name) : name_(std::move(name)) {}
  size_t read_file(std::span<char> room);
  size_t read_pipe(std::span<char> room);

  std::string name_;
  uint64_t size_ = 0;
  uint64_t characters_left_ = UINT64_MAX;
  /// Before the text, the text if it is no file, behind it.
  Part parts_[3];
  size_t part_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
  /// No plain file: what is to come may take its time.
  bool piped_ = false;
  uint64_t bytes_read_ = 0;
  uint64_t bytes_of_lines_ = 0;
  TextOutput* echo_ = nullptr;
};

/// Throws InputError when the model has no tokenizer.
void need_tokenizer(const oxb::Model& model, const std::string& path, const std::string& otherwise);

/// Throws InputError when the model has no tokenizer.
oxb::Encoder open_encoder(const oxb::Model& model, const oxb::EncoderOptions& options = {});
oxb::Decoder open_decoder(const oxb::Model& model, const oxb::DecoderOptions& options = {});

/// Turns a text into ids piece by piece. A character the vocabulary lacks is an InputError with its
/// line and column.
class TextReader {
 public:
  /// The model outlives the reader.
  TextReader(const oxb::Model& model, TextSource source, const oxb::EncoderOptions& options = {});

  /// Fills `ids` as far as the text goes and returns how many ids there are; 0 at the end.
  size_t read(std::span<int32_t> ids);
  /// The text ends where its tokens were taken until now; those that are still held back come.
  void stop() {
    end_ = begin_;
    source_over_ = true;
  }
  /// Of the text read so far.
  uint64_t bytes() const { return bytes_; }
  uint64_t characters() const { return characters_; }
  /// Bytes of the whole text if they can be told, else 0.
  uint64_t size() const { return source_.size(); }

 private:
  void refill();
  void advance(size_t count);
  [[noreturn]] void fail(const std::string& message) const;

  oxb::Encoder encoder_;
  TextSource source_;
  std::vector<char> buffer_;
  /// What of the buffer is still to be taken.
  size_t begin_ = 0, end_ = 0;
  bool source_over_ = false;
  bool over_ = false;
  /// What was put before the text counts for nothing.
  size_t uncounted_ = 0;
  uint64_t bytes_ = 0, characters_ = 0;
  /// Line breaks, and characters behind the last of them.
  uint64_t lines_ = 0, column_ = 0;
};

/// What a tokenizer puts around every text.
struct Template {
  std::vector<int32_t> before, after;
};
Template template_of(const oxb::Model& model);

/// The numbers of "1,2,3", each below `limit`; `what` is what a message calls the text. Throws
/// UsageError.
std::vector<int32_t> parse_ids(const std::string& text, uint32_t limit, const std::string& what);

/// As the vocabulary has them, which need not be whole characters.
std::string token_bytes(const oxb::Model& model, int32_t token);
/// The text of tokens, without that of special ones.
std::string decode(oxb::Decoder& decoder, std::span<const int32_t> tokens);
/// Text as it stands between quotes in C: control characters and bytes that are no character are
/// written \n, \x1b.
std::string visible(std::string_view text);
/// Bytes that begin a character.
uint64_t count_characters(std::string_view text);

}  // namespace oxbow::tools
