#pragma once

// What the parts of the report share: sections, legends, and the colours of steps.

#include <string>
#include <utility>
#include <vector>

#include "host/describe.h"
#include "ops/traits.h"

namespace oxbow {

/// Of every picture.
inline constexpr double kReportWidth = 1180;

std::string section(const std::string& title, const std::string& note, const std::string& content);

/// Letters of colours, with words.
std::string legend(const std::vector<std::pair<std::string, std::string>>& entries);
std::string category_legend();
/// The colour of a step, and of what it makes.
std::string category_letter(OpCategory category);

/// The steps of every entry point (report_graph.cc).
std::string report_graph(const Description& description);

}  // namespace oxbow
