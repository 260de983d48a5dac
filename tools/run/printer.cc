// Pieces of text, or tokens, on standard output, as they come.

#include "tools/run/run.h"

namespace oxbow::tools {

bool Printer::add(const oxb::Piece& piece) {
  if (!request_.as_ids) return request_.out.write(piece.view());
  if (piece.token < 0) return true;
  return request_.out.write((count_++ > 0 ? " " : "") + std::to_string(piece.token));
}

void Printer::finish() {
  if (request_.as_ids || request_.out.on_terminal()) request_.out.end_line();
}

}  // namespace oxbow::tools
