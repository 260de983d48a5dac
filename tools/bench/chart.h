#pragma once

// Lines over the tokens of a stream, as an SVG that needs nothing from elsewhere.

#include <string>
#include <utility>
#include <vector>

namespace oxbow::tools {

struct Series {
  /// Of the line: "median", "cache".
  std::string css;
  /// At its end; empty: none.
  std::string label;
  /// Tokens and values.
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title;
  /// Beside the axis.
  std::string unit;
  double tokens = 0.0;
  std::vector<Series> series;
};

/// Every value has its place: the axis goes up to the largest.
std::string to_svg(const Chart& chart);

}  // namespace oxbow::tools
