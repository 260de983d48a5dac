#pragma once

// Just enough SVG and HTML for the report: text that is safe to embed, and shapes with tooltips.

#include <string>

namespace oxbow {

/// Any text as HTML or an attribute's value.
std::string escape(const std::string& text);

/// A number with at most two decimals.
std::string coordinate(double value);

/// A rectangle of CSS class `css` that tells `tooltip` when pointed at.
std::string svg_rect(double x, double y, double width, double height, const std::string& css,
                     const std::string& tooltip);

/// Text whose baseline starts at (x, y).
std::string svg_text(double x, double y, const std::string& css, const std::string& text);

/// An <svg> element of this size that shrinks with the page.
std::string svg_element(double width, double height, const std::string& label,
                        const std::string& content);

}  // namespace oxbow
