#include "host/svg.h"

#include <cstdio>

namespace oxbow {

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters have no place in a page, not even escaped.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string coordinate(double value) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.2f", value);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string svg_rect(double x, double y, double width, double height, const std::string& css,
                     const std::string& tooltip) {
  return "<rect class=\"" + css + "\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) +
         "\" width=\"" + coordinate(width) + "\" height=\"" + coordinate(height) + "\"><title>" +
         escape(tooltip) + "</title></rect>\n";
}

std::string svg_text(double x, double y, const std::string& css, const std::string& text) {
  return "<text class=\"" + css + "\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\">" +
         escape(text) + "</text>\n";
}

std::string svg_element(double width, double height, const std::string& label,
                        const std::string& content) {
  const std::string w = coordinate(width), h = coordinate(height);
  return "<svg role=\"img\" aria-label=\"" + escape(label) + "\" viewBox=\"0 0 " + w + " " + h +
         "\" style=\"max-width:" + w + "px\">\n" + content + "</svg>\n";
}

}  // namespace oxbow
