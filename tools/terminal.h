#pragma once

// What a terminal can do for people: colours, and a line that is edited while it is typed.

#include <string>
#include <vector>

namespace oxbow::tools {

/// Colours on terminals only, and on none when NO_COLOR is set to anything or the terminal is dumb.
bool wants_colours(int descriptor);

/// Escape sequences, empty where there are no colours.
struct Colours {
  std::string prompt, note, echo, end;
  static Colours of(int descriptor);
};

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
