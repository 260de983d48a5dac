#pragma once

// What a terminal can do for people: colours, and a line that is edited while it is typed.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "host/row_text.h"

namespace oxbow::tools {

/// Colours on terminals only, and on none when NO_COLOR is set to anything or the terminal is dumb.
bool wants_colours(int descriptor);

/// Escape sequences, empty where there are no colours.
struct Colours {
  std::string prompt, note, echo, end;
  static Colours of(int descriptor);
};

/// What a model or a file says, as it comes, and what is told about it: on a terminal words stay whole and nothing is
/// obeyed (RowText), elsewhere the bytes are as they are.
class TextOutput {
 public:
  /// Standard output or standard error.
  explicit TextOutput(std::FILE* file);
  bool on_terminal() const { return terminal_; }
  /// False when nothing can be written any more.
  bool write(std::string_view text);
  /// Ends the line if anything is in it.
  void end_line();

 private:
  std::FILE* file_;
  const int descriptor_;
  const bool terminal_, moves_;
  RowText row_;
  bool line_open_ = false;
};

/// A line on standard error about what was done.
void print_note(std::string_view text);

/// Lines of a person: with arrow keys, Home, End and history where standard input and standard error are terminals, plain
/// lines otherwise. Ctrl-C empties the line, Ctrl-D on an empty one ends the input.
class LineEditor {
 public:
  /// False: there are no more lines.
  bool read(const std::string& prompt, std::string* line);

 private:
  bool edit(const std::string& prompt, std::string* line);

  std::vector<std::string> history_;
};

}  // namespace oxbow::tools
