#include "host/report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "host/args.h"
#include "host/macs.h"
#include "host/report_parts.h"
#include "host/report_style.h"
#include "host/state_roles.h"
#include "host/svg.h"
#include "ops/traits.h"

namespace oxbow {
namespace {

std::string card(const std::string& value, const std::string& label) {
  return "<div class=\"card\"><b>" + escape(value) + "</b><span>" + escape(label) +
         "</span></div>\n";
}

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string out = "<table>";
  for (const auto& [left, right] : rows) {
    out += "<tr><td>" + escape(left) + "</td><td>" + escape(right) + "</td></tr>";
  }
  return out + "</table>\n";
}

std::string cards(const Description& d) {
  const schema::MetadataT& metadata = *d.model.metadata;
  const uint64_t before = parse_integer(find_value(metadata.sizes, "checkpoint_bytes")).value_or(0);
  std::string out = "<div class=\"cards\">" +
                    card(grouped_text(metadata.parameters), "parameters") +
                    card(bytes_text(d.file_bytes),
                         before > 0 ? "file, from " + bytes_text(before) : std::string("file")) +
                    card(bytes_text(d.memory.arena_bytes), "arena of one session") +
                    card(std::to_string(d.max_segment), "most tokens per run");
  for (const auto& entry : d.model.entry_points) {
    out += card(grouped_text(macs_per_token(d.model, *entry)),
                d.model.entry_points.size() == 1 ? std::string("MACs per token")
                                                 : "MACs per token, " + entry->name);
  }
  for (const std::string output : {"logits", "output"}) {
    const std::string cosine = find_value(metadata.quality, output + "_cosine");
    if (!cosine.empty()) out += card(cosine, output + " cosine against f32");
  }
  return out + "</div>\n";
}

std::string tables(const Description& d) {
  const schema::MetadataT& metadata = *d.model.metadata;
  std::vector<std::pair<std::string, std::string>> settings, sizes, quality;
  for (const auto& pair : metadata.settings) settings.emplace_back(pair->key, pair->value);
  settings.emplace_back("tokenizer", d.model.tokenizer
                                         ? schema::EnumNameTokenizerKind(d.model.tokenizer->kind)
                                         : "None");
  settings.emplace_back("converter", metadata.converter);
  if (!metadata.licence.empty()) settings.emplace_back("licence", metadata.licence);
  settings.emplace_back("source SHA-256", metadata.source_hash);
  for (const auto& pair : metadata.sizes) sizes.emplace_back(pair->key, pair->value);
  for (const auto& pair : metadata.quality) {
    if (!pair->key.starts_with(kWeightErrorKey)) quality.emplace_back(pair->key, pair->value);
  }
  std::string out = "<div class=\"columns\">" + section("Settings", "", table(settings)) +
                    section("Sizes", "", table(sizes));
  if (!quality.empty()) out += section("Quality", "Compared with the float model.", table(quality));
  return out + "</div>\n";
}

std::string worst_weights(const Description& d) {
  if (d.worst_weights.empty()) return "";
  const double largest = std::max(d.worst_weights.front().error, 1e-9);
  std::string content;
  double y = 0;
  for (const WeightError& weight : d.worst_weights) {
    char error[32];
    std::snprintf(error, sizeof(error), "%.3f %%", weight.error * 100);
    const double length = std::max(2.0, 420 * weight.error / largest);
    content += svg_text(0, y + 15, "mono", weight.name) +
               svg_rect(620, y + 4, length, 14, "block fa", weight.name + ": " + error) +
               svg_text(628 + length, y + 15, "", error);
    y += 24;
  }
  return section("Worst weights", "Relative RMS error after rounding to int8.",
                 svg_element(kReportWidth, y, "errors of weights", content));
}

std::string arena(const Description& d) {
  const std::vector<std::pair<const char*, size_t>> parts = {
      {"states", d.memory.state_bytes},
      {"activations", d.memory.activation_bytes},
      {"scratch", d.memory.scratch_bytes},
      {"session", d.memory.session_bytes}};
  const char* letters[] = {"d", "a", "c", "f"};
  std::string content;
  std::vector<std::pair<std::string, std::string>> entries;
  double x = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, bytes] = parts[i];
    const double width = kReportWidth * static_cast<double>(bytes) /
                         static_cast<double>(std::max<size_t>(d.memory.arena_bytes, 1));
    const std::string text = std::string(name) + " " + bytes_text(bytes);
    content += svg_rect(x, 0, width, 34, std::string("block f") + letters[i], text);
    if (width > 130) content += svg_text(x + 10, 22, "light", text);
    entries.emplace_back(letters[i], text);
    x += width;
  }
  return section("Arena", "What one session needs, known before the first token.",
                 svg_element(kReportWidth, 34, "arena by category", content) + legend(entries));
}

/// What the step that writes each tensor is about.
std::vector<OpCategory> producers(const schema::ModelT& model) {
  std::vector<OpCategory> out(model.tensors.size(), OpCategory::kOther);
  for (const auto& entry : model.entry_points) {
    for (const auto& step : entry->steps) {
      for (const uint32_t tensor : step->outputs) out[tensor] = op_traits(step->op).category;
    }
  }
  return out;
}

std::string memory_plan(const Description& d) {
  const schema::ModelT& model = d.model;
  const double height = 320, left = 76, top = 8;
  const double bytes = static_cast<double>(std::max<uint64_t>(model.plan->activations, 1));
  // Entry points run one after another and share all bytes: lifetimes count their steps in one line.
  size_t steps = 0;
  for (const auto& entry : model.entry_points) steps += std::max<size_t>(entry->steps.size(), 1);
  const double step_width = (kReportWidth - left) / static_cast<double>(std::max<size_t>(steps, 1));
  const double scale = height / bytes;
  const std::vector<OpCategory> made_by = producers(model);

  std::string content;
  for (int i = 0; i <= 4; ++i) {
    const double y = top + height - height * i / 4;
    content += "<path class=\"grid\" d=\"M" + coordinate(left) + " " + coordinate(y) + "H" +
               coordinate(kReportWidth) + "\"/>\n" +
               svg_text(0, y + 4, "soft", bytes_text(static_cast<uint64_t>(bytes * i / 4)));
  }
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const schema::TensorT& tensor = *model.tensors[i];
    if (tensor.kind != schema::TensorKind::Activation && tensor.kind != schema::TensorKind::Input) {
      continue;
    }
    const Lifetime& life = d.lives[i];
    const double h = static_cast<double>(tensor.bytes) * scale;
    content +=
        svg_rect(left + life.first * step_width,
                 top + height - static_cast<double>(tensor.offset) * scale - h,
                 (life.last - life.first + 1) * step_width, h,
                 std::string("block f") + category_letter(made_by[i]),
                 tensor.name + "  " + type_text(tensor) + shape_text(model, tensor) + "\n" +
                     bytes_text(tensor.bytes) + " at " + grouped_text(tensor.offset) + ", steps " +
                     std::to_string(life.first) + " to " + std::to_string(life.last));
  }
  double x = left;
  for (const auto& entry : model.entry_points) {
    content += "<path class=\"grid\" d=\"M" + coordinate(x) + " " + coordinate(top) + "V" +
               coordinate(top + height) + "\"/>\n" +
               svg_text(x, top + height + 18, "soft",
                        entry->name + ", " + count_text(entry->steps.size(), "step"));
    x += step_width * static_cast<double>(std::max<size_t>(entry->steps.size(), 1));
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const schema::TensorKind kind = model.tensors[i]->kind;
    if (kind == schema::TensorKind::Activation || kind == schema::TensorKind::Input) {
      sum += model.tensors[i]->bytes;
    }
  }
  return section(
      "Memory plan",
      "Activations of the longest run: steps to the right, bytes upwards. " +
          bytes_text(model.plan->activations) + " hold what would be " + bytes_text(sum) +
          " side by side.",
      svg_element(kReportWidth, top + height + 24, "memory plan", content) + category_legend());
}

std::string states(const Description& d) {
  std::map<std::string, std::vector<const schema::TensorT*>> by_ring;
  std::vector<std::string> order;
  uint64_t largest = 1;
  std::map<std::string, uint64_t> sums;
  for (const auto& tensor : d.model.tensors) {
    if (tensor->kind != schema::TensorKind::State) continue;
    const std::string name =
        tensor->ring >= 0 ? d.model.rings[static_cast<size_t>(tensor->ring)]->name : tensor->name;
    if (by_ring[name].empty()) order.push_back(name);
    by_ring[name].push_back(tensor.get());
    largest = std::max(largest, sums[name] += tensor->bytes);
  }
  if (order.empty()) return "";
  std::string content;
  const char* letters[] = {"d", "a", "b", "c"};
  double y = 0;
  for (const std::string& name : order) {
    content += svg_text(0, y + 15, "mono", name);
    double x = 200;
    for (size_t i = 0; i < by_ring[name].size(); ++i) {
      const schema::TensorT& tensor = *by_ring[name][i];
      const double width = 760 * static_cast<double>(tensor.bytes) / static_cast<double>(largest);
      const auto colour = static_cast<size_t>(state_role(tensor.name));
      content += svg_rect(x, y + 3, width, 16, std::string("block f") + letters[colour],
                          tensor.name + "  " + type_text(tensor) + shape_text(d.model, tensor) +
                              "\n" + bytes_text(tensor.bytes));
      x += width;
    }
    content +=
        svg_text(x + 8, y + 15, "soft",
                 bytes_text(sums[name]) + ", " + std::to_string(by_ring[name][0]->rows) + " rows");
    y += 24;
  }
  return section("States",
                 "Memories that live from run to run. Their size never changes with the stream.",
                 svg_element(kReportWidth, y, "states", content) +
                     legend({{"d", "rows"}, {"a", "keys"}, {"b", "values"}}));
}

}  // namespace

std::string to_html(const Description& d, const std::string& title) {
  const std::string name = title.substr(title.rfind('/') + 1);
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<title>" +
         escape(name) + "</title>\n<style>" + kReportStyle + "</style></head><body>\n<h1>" +
         escape(name) + "</h1>\n<p class=\"note\">" + escape(d.model.metadata->architecture) +
         "</p>\n" + cards(d) + tables(d) + worst_weights(d) + arena(d) + memory_plan(d) +
         states(d) + report_graph(d) + kReportScript + "</body></html>\n";
}

}  // namespace oxbow
