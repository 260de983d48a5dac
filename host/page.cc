#include "host/page.h"

#include <ctime>
#include <string_view>

#include "host/escape.h"
#include "runtime/api/oxbow.h"

namespace oxbow {

// page/page.html with style and script in it, by CMakeLists.txt.
extern const char kPageTemplate[];

namespace {

/// As a shell would have to be given it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Markup inside JSON is never markup of the page.
std::string json_in_html(const nlohmann::json& data) {
  std::string out;
  for (const char c : data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return out;
}

void replace(std::string& text, std::string_view mark, const std::string& by) {
  text.replace(text.find(mark), mark.size(), by);
}

}  // namespace

nlohmann::json made_by(const std::string& program, const std::vector<std::string>& words) {
  std::string command = program;
  for (const std::string& word : words) command += " " + quoted(word);
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  char date[32] = "";
  if (gmtime_r(&now, &utc) != nullptr) {
    std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
  }
  const uint32_t version = oxb_version();
  return {{"command", command},
          {"date", date},
          {"version", std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                          "." + std::to_string(version % 100)}};
}

nlohmann::json page_data(nlohmann::json made, const std::vector<nlohmann::json>& models,
                         const std::vector<nlohmann::json>& benches) {
  return {{"format", 1}, {"made", std::move(made)}, {"models", models}, {"bench", benches}};
}

std::string to_html(const nlohmann::json& data, const std::string& title) {
  std::string page = kPageTemplate;
  // The data may hold anything, also the other mark; but behind that.
  replace(page, "%data%", json_in_html(data));
  replace(page, "%title%", escape(title.substr(title.rfind('/') + 1)));
  return page;
}

}  // namespace oxbow
