#include "converter/report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "converter/args.h"
#include "converter/report_style.h"
#include "converter/svg.h"

namespace oxbow::convert {
namespace {

constexpr double kWidth = 1180;

/// What a step is about, and the colour of everything it makes.
struct Category {
  const char* letter;
  const char* name;
};
constexpr Category kCategories[] = {{"a", "matrices"}, {"b", "attention"}, {"c", "norms"},
                                    {"d", "memories"}, {"e", "embedding"}, {"f", "other"}};

const Category& category(schema::OpCode op) {
  switch (op) {
    case schema::OpCode::Linear:
      return kCategories[0];
    case schema::OpCode::Attention:
      return kCategories[1];
    case schema::OpCode::LayerNorm:
      return kCategories[2];
    case schema::OpCode::RingEvict:
    case schema::OpCode::RingPush:
    case schema::OpCode::Pool:
      return kCategories[3];
    case schema::OpCode::Embedding:
      return kCategories[4];
    default:
      return kCategories[5];
  }
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

std::string section(const std::string& title, const std::string& note, const std::string& content) {
  return "<section><h2>" + escape(title) + "</h2>" +
         (note.empty() ? "" : "<p class=\"note\">" + escape(note) + "</p>") + content +
         "</section>\n";
}

std::string cards(const Description& d) {
  const schema::MetadataT& metadata = *d.model.metadata;
  const uint64_t before = parse_integer(find_value(metadata.sizes, "checkpoint_bytes")).value_or(0);
  std::string out = "<div class=\"cards\">" +
                    card(grouped_text(metadata.parameters), "parameters") +
                    card(bytes_text(d.file_bytes),
                         before > 0 ? "file, from " + bytes_text(before) : std::string("file")) +
                    card(bytes_text(d.memory.total), "arena of one session") +
                    card(grouped_text(metadata.macs_per_token), "MACs per token") +
                    card(std::to_string(d.max_segment), "most tokens per run");
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
                 svg_element(kWidth, y, "errors of weights", content));
}

std::string arena(const Description& d) {
  const std::vector<std::pair<const char*, size_t>> parts = {{"states", d.memory.states},
                                                             {"activations", d.memory.activations},
                                                             {"scratch", d.memory.scratch},
                                                             {"session", d.memory.session}};
  const char* letters[] = {"d", "a", "c", "f"};
  std::string content;
  std::vector<std::pair<std::string, std::string>> entries;
  double x = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, bytes] = parts[i];
    const double width = kWidth * static_cast<double>(bytes) /
                         static_cast<double>(std::max<size_t>(d.memory.total, 1));
    const std::string text = std::string(name) + " " + bytes_text(bytes);
    content += svg_rect(x, 0, width, 34, std::string("block f") + letters[i], text);
    if (width > 130) content += svg_text(x + 10, 22, "light", text);
    entries.emplace_back(letters[i], text);
    x += width;
  }
  return section("Arena", "What one session needs, known before the first token.",
                 svg_element(kWidth, 34, "arena by category", content) + legend(entries));
}

/// The op that writes each tensor.
std::vector<schema::OpCode> producers(const schema::ModelT& model) {
  std::vector<schema::OpCode> out(model.tensors.size(), schema::OpCode::TakeRows);
  for (const auto& step : model.entry_points.at(0)->steps) {
    for (const uint32_t tensor : step->outputs) out[tensor] = step->op;
  }
  return out;
}

std::string memory_plan(const Description& d) {
  const schema::ModelT& model = d.model;
  const double height = 320, left = 76, top = 8;
  const double bytes = static_cast<double>(std::max<uint64_t>(model.plan->activations, 1));
  const double steps =
      static_cast<double>(std::max<size_t>(model.entry_points[0]->steps.size(), 1));
  const double step_width = (kWidth - left) / steps, scale = height / bytes;
  const std::vector<schema::OpCode> made_by = producers(model);

  std::string content;
  for (int i = 0; i <= 4; ++i) {
    const double y = top + height - height * i / 4;
    content += "<path class=\"grid\" d=\"M" + coordinate(left) + " " + coordinate(y) + "H" +
               coordinate(kWidth) + "\"/>\n" +
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
                 std::string("block f") + category(made_by[i]).letter,
                 tensor.name + "  " + type_text(tensor) + shape_text(model, tensor) + "\n" +
                     bytes_text(tensor.bytes) + " at " + grouped_text(tensor.offset) + ", steps " +
                     std::to_string(life.first) + " to " + std::to_string(life.last));
  }
  content += svg_text(left, top + height + 18, "soft", "step 0") +
             svg_text(kWidth - 56, top + height + 18, "soft",
                      "step " + std::to_string(model.entry_points[0]->steps.size() - 1));
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
      svg_element(kWidth, top + height + 24, "memory plan", content) + category_legend());
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
      // By the end of the name, so that keys look alike whether or not raw rows are kept.
      const size_t colour = tensor.name.ends_with(".k") ? 1 : tensor.name.ends_with(".v") ? 2 : 0;
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
                 svg_element(kWidth, y, "states", content) +
                     legend({{"d", "rows"}, {"a", "keys"}, {"b", "values"}}));
}

/// The number behind "layer" or "layers." in a name, or -1.
int layer_in(const std::string& name) {
  for (const std::string word : {"layers.", "layer"}) {
    const size_t place = name.find(word);
    if (place == std::string::npos) continue;
    const size_t digits = place + word.size();
    if (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') {
      return static_cast<int>(std::strtol(name.substr(digits, 6).c_str(), nullptr, 10));
    }
  }
  return -1;
}

struct Group {
  std::string title;
  size_t first = 0, last = 0;
};

/// Steps by layer, as far as names tell. A step that tells nothing stays with the one before it
/// when the layers go on after it.
std::vector<Group> group_steps(const schema::ModelT& model) {
  const auto& steps = model.entry_points.at(0)->steps;
  std::vector<int> layers(steps.size(), -1);
  size_t last_layered = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const auto* list : {&steps[i]->outputs, &steps[i]->inputs}) {
      for (const uint32_t tensor : *list) {
        // Weights name the layer that uses them; a hidden state's own name may belong to the next.
        if (layers[i] < 0) layers[i] = layer_in(model.tensors[tensor]->name);
      }
    }
    if (layers[i] >= 0) last_layered = i;
  }
  std::vector<Group> groups;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (layers[i] < 0 && i > 0 && i < last_layered) layers[i] = layers[i - 1];
    if (i > 0 && layers[i] == layers[i - 1]) {
      groups.back().last = i;
      continue;
    }
    const std::string title = layers[i] >= 0   ? "Layer " + std::to_string(layers[i])
                              : groups.empty() ? "Input"
                                               : "Output";
    groups.push_back({title, i, i});
  }
  return groups;
}

/// The start of a text, cut between characters.
std::string cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit) + "...";
}

/// One row per step; arcs on the left lead from where a tensor is made to where it is read.
std::string group_graph(const Description& d, const Group& group) {
  const schema::ModelT& model = d.model;
  const auto& steps = model.entry_points[0]->steps;
  const double row = 30, left = 150;
  const double height = row * static_cast<double>(group.last - group.first + 1) + 4;
  std::string rows, arcs;
  std::map<uint32_t, size_t> made_at;
  for (size_t i = group.first; i <= group.last; ++i) {
    const schema::StepT& step = *steps[i];
    const double y = row * static_cast<double>(i - group.first) + 2;
    std::string reads, writes;
    double port = 0;
    for (const uint32_t input : step.inputs) {
      const schema::TensorT& tensor = *model.tensors[input];
      const std::string text = tensor.name + " " + type_text(tensor) + shape_text(model, tensor);
      const auto made = made_at.find(input);
      if (made != made_at.end()) {
        const double from = row * static_cast<double>(made->second - group.first) + row / 2 + 4;
        const double to = y + row / 2 - 4 + port;
        const double reach = std::min(left - 8, 16 + 9 * static_cast<double>(i - made->second));
        arcs += std::string("<path class=\"arc s") + category(steps[made->second]->op).letter +
                "\" d=\"M" + coordinate(left) + " " + coordinate(from) + "C" +
                coordinate(left - reach) + " " + coordinate(from) + " " + coordinate(left - reach) +
                " " + coordinate(to) + " " + coordinate(left) + " " + coordinate(to) +
                "\"><title>" + escape(text) + "</title></path>\n";
        port += 2;
      } else if (tensor.kind != schema::TensorKind::Weight || step.op == schema::OpCode::Linear) {
        if (tensor.kind == schema::TensorKind::Weight && tensor.rows == 1) continue;
        reads += (reads.empty() ? "" : "  ") + text;
      }
    }
    for (const uint32_t output : step.outputs) {
      const schema::TensorT& tensor = *model.tensors[output];
      writes += (writes.empty() ? "" : ", ") + tensor.name;
      if (tensor.kind != schema::TensorKind::State) made_at[output] = i;
    }
    const schema::TensorT& first = *model.tensors[step.outputs.at(0)];
    const std::string options = options_text(step);
    std::string tooltip = "step " + std::to_string(i) + ": " + schema::EnumNameOpCode(step.op) +
                          (options.empty() ? "" : " (" + options + ")");
    for (const uint32_t input : step.inputs) {
      const schema::TensorT& tensor = *model.tensors[input];
      tooltip += "\nreads " + tensor.name + " " + type_text(tensor) + shape_text(model, tensor);
    }
    rows +=
        svg_rect(left, y, kWidth - left, row - 4, "row", tooltip) +
        svg_rect(left, y, 4, row - 4, std::string("f") + category(step.op).letter, tooltip) +
        svg_text(left + 12, y + 17, "op", schema::EnumNameOpCode(step.op)) +
        svg_text(left + 96, y + 17, "mono", cut(writes, 34)) +
        svg_text(left + 352, y + 17, "mono", type_text(first) + " " + shape_text(model, first)) +
        svg_text(left + 530, y + 17, "soft",
                 cut(options + (options.empty() || reads.empty() ? "" : "  ·  ") + reads, 84));
  }
  return svg_element(kWidth, height, group.title, rows + arcs);
}

std::string graph(const Description& d) {
  std::string content = category_legend() + "<br>";
  bool layer_shown = false;
  for (const Group& group : group_steps(d.model)) {
    // One open layer tells how all of them are built.
    const bool is_layer = group.title.starts_with("Layer");
    const bool open = !is_layer || !layer_shown;
    layer_shown = layer_shown || is_layer;
    const size_t count = group.last - group.first + 1;
    content += std::string("<details") + (open ? " open" : "") + "><summary>" + group.title +
               " <span>" + std::to_string(count) + (count == 1 ? " step" : " steps") +
               "</span></summary>" + group_graph(d, group) + "</details>\n";
  }
  return section(
      "Graph",
      "Steps in the order they run. Arcs lead from where a tensor is made to where it is read; "
      "point at anything for details.",
      content);
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
         states(d) + graph(d) + "</body></html>\n";
}

}  // namespace oxbow::convert
