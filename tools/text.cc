#include "tools/text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "host/characters.h"
#include "host/number_text.h"
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/terminal.h"

namespace oxbow::tools {
namespace {

/// Far more than an encoder must see at once, so that it seldom has to be moved.
constexpr size_t kBufferBytes = 65536;
constexpr int kWaitMilliseconds = 500;
constexpr size_t kLineBytes = size_t{16} << 20;

bool begins_character(char byte) { return (byte & 0xc0) != 0x80; }

/// Where the text ends when only its first `*left` characters are wanted; counts them down.
size_t end_of_characters(std::string_view text, uint64_t* left) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!begins_character(text[i])) continue;
    if (*left == 0) return i;
    --*left;
  }
  return text.size();
}

/// Opens a file that is read as it comes. A FIFO is waited for only where there is someone who writes: to open one, or to
/// read from it, blocks for ever otherwise.
std::FILE* open_source(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  struct stat status = {};
  int ends[2] = {-1, -1};
  bool nobody = false, known = ::fstat(fd, &status) == 0;
  if (known && S_ISFIFO(status.st_mode) && ::pipe2(ends, O_CLOEXEC) == 0) {
    nobody = ::tee(fd, ends[1], 1, SPLICE_F_NONBLOCK) == 0;
    ::close(ends[0]);
    ::close(ends[1]);
  }
  // What calls itself a regular file has no reason to wait; /proc/kmsg does.
  const bool may_wait = !(known && S_ISREG(status.st_mode));
  const int flags = ::fcntl(fd, F_GETFL);
  const bool ready = !may_wait || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
  std::FILE* const file = !nobody && ready ? ::fdopen(fd, "rb") : nullptr;
  if (file == nullptr) ::close(fd);
  if (nobody) throw InputError("cannot read " + path + ": a FIFO to which nobody writes");
  return file;
}

}  // namespace

void TextSource::Close::operator()(std::FILE* file) const {
  if (file != stdin) std::fclose(file);
}

TextSource TextSource::words(std::string name, std::string text) {
  TextSource source(std::move(name));
  source.size_ = text.size();
  source.parts_[1].text = std::move(text);
  return source;
}

TextSource TextSource::file(const std::string& path) {
  TextSource source(path == "-" ? "standard input" : path);
  source.file_.reset(path == "-" ? stdin : open_source(path));
  if (source.file_ == nullptr) {
    throw InputError("cannot open " + path + ": " + std::strerror(errno));
  }
  struct stat status = {};
  const bool known = ::fstat(::fileno(source.file_.get()), &status) == 0;
  if (known && S_ISREG(status.st_mode)) source.size_ = static_cast<uint64_t>(status.st_size);
  source.piped_ = known && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  return source;
}

void TextSource::surround(std::string before, std::string after) {
  parts_[0].text = std::move(before);
  parts_[2].text = std::move(after);
}

size_t TextSource::Part::read(std::span<char> room) {
  const size_t count = std::min(room.size(), text.size() - done);
  std::copy_n(text.data() + done, count, room.data());
  done += count;
  return count;
}

/// What a pipe has, piece by piece, so that a person is told how much has come while the next is waited for. There is no
/// rate: it would be that of who writes.
size_t TextSource::read_pipe(std::span<char> room) {
  const int fd = ::fileno(file_.get());
  Stopwatch since;
  Progress progress;
  size_t done = 0;
  while (done < room.size() && !stop_wanted()) {
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kWaitMilliseconds);
    if (since.seconds() * 1e3 >= kWaitMilliseconds && progress.due()) {
      progress.say(format("waiting for %s: %s so far", name_.c_str(),
                          bytes_text(bytes_read_ + done).c_str()));
    }
    if (ready <= 0) continue;
    const ssize_t count = ::read(fd, room.data() + done, room.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw InputError("cannot read " + name_ + ": " + std::strerror(errno));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes_read_ += done;
  return done;
}

size_t TextSource::read_file(std::span<char> room) {
  if (piped_) return read_pipe(room);
  const size_t count = std::fread(room.data(), 1, room.size(), file_.get());
  if (std::ferror(file_.get()) != 0) {
    throw InputError("cannot read " + name_ + ": " + std::strerror(errno));
  }
  return count;
}

size_t TextSource::read(std::span<char> room) {
  size_t done = 0;
  while (done < room.size() && part_ < std::size(parts_)) {
    const std::span<char> rest = room.subspan(done);
    size_t count = part_ == 1 && file_ ? read_file(rest) : parts_[part_].read(rest);
    if (part_ == 1 && characters_left_ != UINT64_MAX) {
      count = end_of_characters({rest.data(), count}, &characters_left_);
    }
    if (part_ == 1 && echo_ != nullptr) echo_->write({rest.data(), count});
    done += count;
    if (count < rest.size()) ++part_;
  }
  return done;
}

bool TextSource::read_line(std::string* line) {
  line->clear();
  const auto get = [&]() -> int {
    if (file_) return std::fgetc(file_.get());
    char byte = 0;
    return parts_[1].read({&byte, 1}) == 1 ? static_cast<unsigned char>(byte) : EOF;
  };
  int byte = EOF;
  while ((byte = get()) != EOF && byte != '\n') {
    line->push_back(static_cast<char>(byte));
    if (line->size() > kLineBytes) {
      throw InputError(format("%s: a line of more than %zu bytes", name_.c_str(), kLineBytes));
    }
  }
  if (file_ && std::ferror(file_.get()) != 0) {
    throw InputError("cannot read " + name_ + ": " + std::strerror(errno));
  }
  bytes_of_lines_ += line->size() + (byte == '\n');
  return byte != EOF || !line->empty();
}

void need_tokenizer(const oxb::Model& model, const std::string& path,
                    const std::string& otherwise) {
  if (model.info().tokenizer != OXB_TOKENIZER_NONE) return;
  throw InputError(path + ": the model has no tokenizer; convert with --tokenizer FILE" +
                   otherwise);
}

oxb::Encoder open_encoder(const oxb::Model& model, const oxb::EncoderOptions& options) {
  oxb::Expected<oxb::Encoder> encoder = oxb::Encoder::create(model, options);
  if (!encoder) throw InputError(encoder.status().text());
  return std::move(*encoder);
}

oxb::Decoder open_decoder(const oxb::Model& model, const oxb::DecoderOptions& options) {
  oxb::Expected<oxb::Decoder> decoder = oxb::Decoder::create(model, options);
  if (!decoder) throw InputError(decoder.status().text());
  return std::move(*decoder);
}

TextReader::TextReader(const oxb::Model& model, TextSource source,
                       const oxb::EncoderOptions& options)
    : encoder_(open_encoder(model, options)),
      source_(std::move(source)),
      buffer_(kBufferBytes),
      uncounted_(source_.bytes_before()) {}

void TextReader::refill() {
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  end_ += source_.read(std::span(buffer_).subspan(end_));
  source_over_ = end_ < buffer_.size();
}

size_t TextReader::read(std::span<int32_t> ids) {
  size_t total = 0;
  while (total < ids.size() && !over_) {
    if (!source_over_ && end_ - begin_ < buffer_.size() / 2) refill();
    oxb::Encoded encoded;
    const oxb::Status status = encoder_.run({buffer_.data() + begin_, end_ - begin_}, source_over_,
                                            ids.subspan(total), &encoded);
    if (!status.ok()) {
      // Line and column tell the place too, so the message's own is left out.
      advance(encoded.consumed);
      const std::string message = status.text();
      const size_t colon = message.find(": ");
      fail(colon == std::string::npos ? message : message.substr(colon + 2));
    }
    advance(encoded.consumed);
    total += encoded.count;
    over_ = source_over_ && begin_ == end_ && total < ids.size();
    if (encoded.count > 0 || encoded.consumed > 0 || over_) continue;
    // The encoder wants to see more than there is.
    if (source_over_ || (begin_ == 0 && end_ == buffer_.size())) {
      fail(format("a word of more than %zu bytes", end_ - begin_));
    }
    refill();
  }
  return total;
}

void TextReader::advance(size_t count) {
  const size_t skipped = std::min(count, uncounted_);
  uncounted_ -= skipped;
  const std::string_view taken(buffer_.data() + begin_ + skipped, count - skipped);
  begin_ += count;
  bytes_ += taken.size();
  const uint64_t characters = count_characters(taken);
  characters_ += characters;
  if (const size_t last = taken.rfind('\n'); last == taken.npos) {
    column_ += characters;
  } else {
    lines_ += static_cast<uint64_t>(std::count(taken.begin(), taken.end(), '\n'));
    column_ = count_characters(taken.substr(last + 1));
  }
}

void TextReader::fail(const std::string& message) const {
  throw InputError(format("%s, line %llu, column %llu (byte %llu): %s", source_.name().c_str(),
                          static_cast<unsigned long long>(lines_ + 1),
                          static_cast<unsigned long long>(column_ + 1),
                          static_cast<unsigned long long>(bytes_), message.c_str()));
}

Template template_of(const oxb::Model& model) {
  oxb::Encoder encoder = open_encoder(model);
  // Before a text that is still to come there is only what goes before it, and behind an empty one
  // only what goes behind it.
  const auto tokens = [&](bool last) {
    std::vector<int32_t> all, ids(64);
    oxb::Encoded encoded;
    do {
      check(encoder.run("", last, ids, &encoded), "the tokenizer");
      all.insert(all.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(encoded.count));
    } while (encoded.count == ids.size());
    return all;
  };
  Template around;
  around.before = tokens(false);
  around.after = tokens(true);
  return around;
}

std::vector<int32_t> parse_ids(const std::string& text, uint32_t limit, const std::string& what) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::optional<uint64_t> value = parse_integer(word);
    if (!value || *value >= limit) {
      throw UsageError(
          format("%s: '%s' is not a token; expected numbers from 0 to %u with commas between",
                 what.c_str(), printable(word, 40).c_str(), limit - 1));
    }
    ids.push_back(static_cast<int32_t>(*value));
    begin = end + 1;
  }
  return ids;
}

std::string token_bytes(const oxb::Model& model, int32_t token) {
  std::string bytes(64, '\0');
  for (;;) {
    const oxb::Expected<size_t> count = model.token_bytes(token, bytes);
    check(count.status(), "the tokenizer");
    const bool complete = *count <= bytes.size();
    bytes.resize(*count);
    if (complete) return bytes;
  }
}

std::string decode(oxb::Decoder& decoder, std::span<const int32_t> tokens) {
  std::string all;
  for (const int32_t token : tokens) {
    const oxb::Expected<std::string_view> text = decoder.run(token);
    check(text.status(), "the tokenizer");
    all += *text;
  }
  const oxb::Expected<std::string_view> rest = decoder.finish();
  check(rest.status(), "the tokenizer");
  return all += *rest;
}

std::string visible(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    size_t length = character_bytes(text);
    // Control characters of Latin-1 have two bytes, the first of which is 0xc2.
    const bool control =
        byte < 0x20 || byte == 0x7f ||
        (byte == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\\' || byte == '"') {
      out += {'\\', text[0]};
    } else if (length > 0 && !control) {
      out += text.substr(0, length);
    } else {
      length = std::max<size_t>(length, 1);
      for (const char c : text.substr(0, length)) {
        out += format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      }
    }
    text.remove_prefix(length);
  }
  return out;
}

uint64_t count_characters(std::string_view text) {
  return static_cast<uint64_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace oxbow::tools
