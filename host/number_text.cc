#include "host/number_text.h"

#include <cstdio>
#include <iterator>

namespace oxbow {

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), value < 10 ? "%.2f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string size_text(uint64_t bytes) {
  const std::string all = count_text(bytes, "byte");
  return bytes < 1024 ? all : bytes_text(bytes) + " (" + all + ")";
}

std::string count_text(uint64_t count, const char* one) {
  return grouped_text(count) + " " + one + (count == 1 ? "" : "s");
}

std::string grouped_text(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

}  // namespace oxbow
