#include "tools/bench/chart.h"

#include <algorithm>
#include <cmath>

#include "host/describe.h"
#include "host/escape.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

constexpr double kWidth = 860, kHeight = 300, kLeft = 70, kRight = 56, kTop = 34, kBottom = 45;

constexpr const char* kStyle =
    "<style>svg{background:#fff}text{font:12px system-ui,sans-serif;fill:#333}"
    ".title{font-weight:600;font-size:14px}.grid{stroke:#8884}polyline{fill:none;stroke-width:2}"
    ".median{stroke:#2a6fb0}.cache{stroke:#c4456b}"
    "@media(prefers-color-scheme:dark){svg{background:#12161c}text{fill:#ddd}"
    ".median{stroke:#6b98ec}.cache{stroke:#ea7d9d}}</style>\n";

/// A number that is 1, 2 or 5 times a power of ten and at least `value`.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * 0.999) return factor * power;
  }
  return 10.0 * power;
}

}  // namespace

std::string to_svg(const Chart& chart) {
  double most = 1e-9;
  for (const Series& series : chart.series) {
    for (const auto& [token, value] : series.points) most = std::max(most, value);
  }
  const double step = round_step(most / 4.0), top = step * std::ceil(most * 1.05 / step);
  const double tokens = std::max(chart.tokens, 1.0);
  const auto x = [&](double token) { return kLeft + (kWidth - kLeft - kRight) * token / tokens; };
  const auto y = [&](double value) {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * value / top;
  };
  std::string svg = format(
      "<svg xmlns=\"%s://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" "
      "aria-label=\"%s\">\n",
      "http", kWidth, kHeight, escape(chart.title).c_str());
  svg += kStyle;
  svg += format("<text class=\"title\" x=\"%g\" y=\"18\">%s</text>\n", kLeft,
                escape(chart.title).c_str());
  for (double level = 0.0; level <= top * 1.001; level += step) {
    svg += format("<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft,
                  kWidth - kRight, y(level), y(level));
    svg += format("<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", kLeft - 8,
                  y(level) + 4, level);
  }
  const double tick = round_step(tokens / 5.0);
  for (double token = 0.0; token <= tokens * 1.001; token += tick) {
    svg += format("<text class=\"tick\" x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                  x(token), kHeight - kBottom + 18,
                  grouped_text(static_cast<uint64_t>(token)).c_str());
  }
  svg += format("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">tokens of the stream</text>\n",
                (kLeft + kWidth - kRight) / 2, kHeight - 6);
  svg +=
      format("<text transform=\"translate(16 %g) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
             (kTop + kHeight - kBottom) / 2, escape(chart.unit).c_str());
  for (const Series& series : chart.series) {
    svg += format("<polyline class=\"%s\" points=\"", series.css.c_str());
    for (const auto& [token, value] : series.points)
      svg += format("%.1f,%.1f ", x(token), y(value));
    svg += "\"/>\n";
    if (series.label.empty() || series.points.empty()) continue;
    const auto& [token, value] = series.points.back();
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", x(token) - 6,
                  std::max(y(value) - 8, kTop - 4), escape(series.label).c_str());
  }
  return svg + "</svg>\n";
}

}  // namespace oxbow::tools
