#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "host/errors.h"

namespace oxbow::tools {
namespace {

constexpr size_t kMostHistory = 1000;
constexpr size_t kMostBytes = size_t{16} << 20;

bool continues(char byte) { return (byte & 0xc0) == 0x80; }

/// The terminal gives keys as they are pressed, and is as it was at the end.
class RawMode {
 public:
  RawMode() : changed_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!changed_) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  ~RawMode() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

 private:
  termios before_ = {};
  bool changed_;
};

/// Keys that change more than they type.
enum class Key { kNone, kLeft, kRight, kUp, kDown, kHome, kEnd, kDelete };

int read_byte() {
  unsigned char byte = 0;
  return ::read(STDIN_FILENO, &byte, 1) == 1 ? byte : -1;
}

/// What follows an Escape: "[A", "OH", "[3~", "[1;5C".
Key read_key() {
  const int kind = read_byte();
  if (kind != '[' && kind != 'O') return Key::kNone;
  std::string numbers;
  int last = read_byte();
  for (; (last >= '0' && last <= '9') || last == ';'; last = read_byte()) {
    if (numbers.size() < 16) numbers += static_cast<char>(last);
  }
  switch (last) {
    case 'A':
      return Key::kUp;
    case 'B':
      return Key::kDown;
    case 'C':
      return Key::kRight;
    case 'D':
      return Key::kLeft;
    case 'H':
      return Key::kHome;
    case 'F':
      return Key::kEnd;
    case '~':
      if (numbers == "1" || numbers == "7") return Key::kHome;
      if (numbers == "4" || numbers == "8") return Key::kEnd;
      return numbers == "3" ? Key::kDelete : Key::kNone;
    default:
      return Key::kNone;
  }
}

/// A line and the place in it. Every character is taken to be one column wide.
struct Edited {
  std::string text;
  size_t place = 0;

  void left() {
    if (place > 0) --place;
    while (place > 0 && continues(text[place])) --place;
  }
  void right() {
    if (place < text.size()) ++place;
    while (place < text.size() && continues(text[place])) ++place;
  }
  void erase_before(size_t start) {
    text.erase(start, place - start);
    place = start;
  }
  void erase_left() {
    const size_t end = place;
    left();
    text.erase(place, end - place);
  }
  void erase_right() {
    const size_t start = place;
    right();
    erase_before(start);
  }
  void erase_word() {
    size_t start = place;
    while (start > 0 && text[start - 1] == ' ') --start;
    while (start > 0 && text[start - 1] != ' ') --start;
    erase_before(start);
  }
  void set(std::string other) {
    text = std::move(other);
    place = text.size();
  }
};

/// Where the character at `place` ends.
size_t behind(std::string_view text, size_t place) {
  for (++place; place < text.size() && continues(text[place]);) ++place;
  return place;
}

/// Of the terminal; what is most usual when it does not tell.
size_t terminal_columns(int descriptor) {
  winsize size = {};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 8 ? size.ws_col : 80;
}

/// The part of the line around the place that fits into one row of the terminal.
void draw(const std::string& prompt, const Edited& line) {
  const size_t room = terminal_columns(STDERR_FILENO) - 4;
  const std::string_view text = line.text;
  size_t before = columns_of(text.substr(0, line.place)), begin = 0;
  while (before > room) {
    const size_t next = behind(text, begin);
    before -= columns_of(text.substr(begin, next - begin));
    begin = next;
  }
  size_t end = line.place, back = 0;
  while (end < text.size()) {
    const size_t next = behind(text, end);
    const size_t columns = columns_of(text.substr(end, next - end));
    if (before + back + columns > room) break;
    back += columns;
    end = next;
  }
  std::string out = "\r\033[K" + prompt + line.text.substr(begin, end - begin);
  if (back > 0) {
    out += "\033[" + std::to_string(back) + "D";
  }
  std::fputs(out.c_str(), stderr);
  std::fflush(stderr);
}

/// A terminal that moves its cursor.
bool knows_escapes(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

bool wants_colours(int descriptor) {
  const char* off = std::getenv("NO_COLOR");
  return knows_escapes(descriptor) && (off == nullptr || *off == '\0');
}

Colours Colours::of(int descriptor) {
  if (!wants_colours(descriptor)) return {};
  return {"\033[1;36m", "\033[2m", "\033[1m", "\033[0m"};
}

TextOutput::TextOutput(std::FILE* file)
    : file_(file),
      descriptor_(::fileno(file)),
      terminal_(::isatty(descriptor_) == 1),
      moves_(knows_escapes(descriptor_)) {}

bool TextOutput::write(std::string_view text) {
  if (!text.empty()) line_open_ = text.back() != '\n';
  // Not up to the last column: where the cursor is behind that depends on the terminal.
  const size_t columns = moves_ ? terminal_columns(descriptor_) - 1 : 0;
  const std::string shown = terminal_ ? row_.next(text, columns) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), file_);
  return std::fflush(file_) == 0;
}

void TextOutput::end_line() {
  if (terminal_ ? row_.line_open() : line_open_) write("\n");
}

void print_note(std::string_view text) {
  const Colours colours = Colours::of(STDERR_FILENO);
  std::fputs(colours.note.c_str(), stderr);
  TextOutput(stderr).write(text);
  std::fprintf(stderr, "%s\n", colours.end.c_str());
}

bool LineEditor::read(const std::string& prompt, std::string* line) {
  line->clear();
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    const bool there = edit(prompt, line);
    std::fputs("\n", stderr);
    if (there && !line->empty() && (history_.empty() || history_.back() != *line)) {
      history_.push_back(*line);
      if (history_.size() > kMostHistory) history_.erase(history_.begin());
    }
    return there;
  }
  int byte = EOF;
  while ((byte = std::fgetc(stdin)) != EOF && byte != '\n') {
    line->push_back(static_cast<char>(byte));
    if (line->size() > kMostBytes) throw InputError("standard input: a line of more than 16 MiB");
  }
  return byte != EOF || !line->empty();
}

bool LineEditor::edit(const std::string& prompt, std::string* line) {
  const RawMode raw;
  Edited edited;
  std::string unfinished;
  size_t shown = history_.size();
  const auto recall = [&](size_t index) {
    if (shown == history_.size()) unfinished = edited.text;
    shown = index;
    edited.set(shown == history_.size() ? unfinished : history_[shown]);
  };
  for (;;) {
    draw(prompt, edited);
    const int byte = read_byte();
    switch (byte) {
      case -1:
        return false;
      case '\r':
      case '\n':
        *line = edited.text;
        return true;
      case 0x03:
        edited.set("");
        break;
      case 0x04:
        if (edited.text.empty()) return false;
        edited.erase_right();
        break;
      case 0x01:
        edited.place = 0;
        break;
      case 0x05:
        edited.place = edited.text.size();
        break;
      case 0x0b:
        edited.text.resize(edited.place);
        break;
      case 0x15:
        edited.erase_before(0);
        break;
      case 0x17:
        edited.erase_word();
        break;
      case 0x08:
      case 0x7f:
        edited.erase_left();
        break;
      case 0x1b:
        switch (read_key()) {
          case Key::kLeft:
            edited.left();
            break;
          case Key::kRight:
            edited.right();
            break;
          case Key::kHome:
            edited.place = 0;
            break;
          case Key::kEnd:
            edited.place = edited.text.size();
            break;
          case Key::kDelete:
            edited.erase_right();
            break;
          case Key::kUp:
            if (shown > 0) recall(shown - 1);
            break;
          case Key::kDown:
            if (shown < history_.size()) recall(shown + 1);
            break;
          case Key::kNone:
            break;
        }
        break;
      default:
        if (byte < 0x20 || edited.text.size() >= kMostBytes) break;
        edited.text.insert(edited.place++, 1, static_cast<char>(byte));
    }
  }
}

}  // namespace oxbow::tools
