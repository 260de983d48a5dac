#include "converter/text/jinja/meter.h"

#include "host/errors.h"

namespace oxbow::convert::jinja {

void refuse(int line, const std::string& what) {
  throw InputError("chat template, line " + std::to_string(line) + ": " + what);
}

std::string quoted(const std::string& text) { return "\"" + printable(text, 60) + "\""; }

}  // namespace oxbow::convert::jinja
