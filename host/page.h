#pragma once

// The page that oxbow-convert --report, oxbow inspect --html and oxbow bench --html write: one file that needs no other,
// with sections for what its data has. Drawn in the reader's browser by page/*.js from the same JSON as --json prints.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace oxbow {

/// What made something: the words of the command, the date, the version of this library.
nlohmann::json made_by(const std::string& program, const std::vector<std::string>& words);

/// `models` as of to_json(Description) with their paths in "path", `benches` as oxbow bench --json prints them. Any may be
/// empty.
nlohmann::json page_data(nlohmann::json made, const std::vector<nlohmann::json>& models,
                         const std::vector<nlohmann::json>& benches);

/// The page over that data.
std::string to_html(const nlohmann::json& data, const std::string& title);

}  // namespace oxbow
