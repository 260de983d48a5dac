#include "host/report_parts.h"

#include <iterator>

#include "host/svg.h"

namespace oxbow {
namespace {

/// Letter of the colour and name of each OpCategory, in its order.
struct Category {
  const char* letter;
  const char* name;
};
constexpr Category kCategories[] = {{"a", "matrices"}, {"b", "attention"}, {"c", "norms"},
                                    {"d", "memories"}, {"e", "embedding"}, {"f", "other"}};
static_assert(std::size(kCategories) == static_cast<size_t>(OpCategory::kOther) + 1);

}  // namespace

std::string section(const std::string& title, const std::string& note, const std::string& content) {
  return "<section><h2>" + escape(title) + "</h2>" +
         (note.empty() ? "" : "<p class=\"note\">" + escape(note) + "</p>") + content +
         "</section>\n";
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "<div class=\"legend\">";
  for (const auto& [letter, text] : entries) {
    out += "<span><i class=\"b" + letter + "\"></i>" + escape(text) + "</span>";
  }
  return out + "</div>\n";
}

std::string category_legend() {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Category& c : kCategories) entries.emplace_back(c.letter, c.name);
  return legend(entries);
}

std::string category_letter(OpCategory category) {
  return kCategories[static_cast<size_t>(category)].letter;
}

}  // namespace oxbow
