// Pieces of text, or tokens, on standard output, as they come.

#include <unistd.h>

#include <cstdio>

#include "tools/run/run.h"

namespace oxbow::tools {

void Printer::write(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  line_open_ = text.back() != '\n';
}

bool Printer::add(const oxb::Piece& piece) {
  if (!request_.as_ids) {
    write(piece.view());
  } else if (piece.token >= 0) {
    write((count_++ > 0 ? " " : "") + std::to_string(piece.token));
  }
  return std::fflush(stdout) == 0;
}

void Printer::finish() {
  if (line_open_ && (request_.as_ids || ::isatty(STDOUT_FILENO) == 1)) std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace oxbow::tools
