// Tokens as text on standard output, as they come.

#include <unistd.h>

#include <cstdio>

#include "tools/run/run.h"

namespace oxbow::tools {

Printer::Printer(const Request& request) : request_(request), stop_(request.args.texts("stop")) {
  if (!request.as_ids) decoder_.emplace(open_decoder(request.model));
}

void Printer::write(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  line_open_ = text.back() != '\n';
}

bool Printer::add(int32_t token) {
  if (request_.as_ids) {
    write((count_ > 0 ? " " : "") + std::to_string(token));
  } else {
    const oxb::Expected<std::string_view> text = decoder_->run(token);
    check(text.status(), request_.path);
    write(stop_.add(*text));
  }
  ++count_;
  return std::fflush(stdout) == 0 && !stop_.reached();
}

void Printer::end_text() {
  if (decoder_ && !stop_.reached()) {
    const oxb::Expected<std::string_view> text = decoder_->finish();
    check(text.status(), request_.path);
    write(stop_.add(*text));
    write(stop_.finish());
  }
  std::fflush(stdout);
}

void Printer::finish() {
  end_text();
  if (line_open_ && (request_.as_ids || ::isatty(STDOUT_FILENO) == 1)) std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace oxbow::tools
