// The graph in the report: each step a row, by layers.

#include <algorithm>
#include <cstdlib>
#include <map>

#include "host/report_parts.h"
#include "host/svg.h"

namespace oxbow {
namespace {

std::string letter(const schema::StepT& step) {
  return category_letter(op_traits(step.op).category);
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
std::vector<Group> group_steps(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const auto& steps = entry.steps;
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
std::string group_graph(const schema::ModelT& model, const schema::EntryPointT& entry,
                        const Group& group) {
  const auto& steps = entry.steps;
  const double row = 30, left = 150;
  const double height = row * static_cast<double>(group.last - group.first + 1) + 4;
  std::string rows, arcs;
  std::map<uint32_t, size_t> made_at;
  for (size_t i = group.first; i <= group.last; ++i) {
    const schema::StepT& step = *steps[i];
    const double y = row * static_cast<double>(i - group.first) + 2;
    const bool is_matrix = op_traits(step.op).multiplied_input >= 0;
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
        arcs += std::string("<path class=\"arc s") + letter(*steps[made->second]) + "\" d=\"M" +
                coordinate(left) + " " + coordinate(from) + "C" + coordinate(left - reach) + " " +
                coordinate(from) + " " + coordinate(left - reach) + " " + coordinate(to) + " " +
                coordinate(left) + " " + coordinate(to) + "\"><title>" + escape(text) +
                "</title></path>\n";
        port += 2;
      } else if (tensor.kind != schema::TensorKind::Weight || is_matrix) {
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
        svg_rect(left, y, kReportWidth - left, row - 4, "row", tooltip) +
        svg_rect(left, y, 4, row - 4, std::string("f") + letter(step), tooltip) +
        svg_text(left + 12, y + 17, "op", schema::EnumNameOpCode(step.op)) +
        svg_text(left + 96, y + 17, "mono", cut(writes, 34)) +
        svg_text(left + 352, y + 17, "mono", type_text(first) + " " + shape_text(model, first)) +
        svg_text(left + 530, y + 17, "soft",
                 cut(options + (options.empty() || reads.empty() ? "" : "  ·  ") + reads, 84));
  }
  return svg_element(kReportWidth, height, group.title, rows + arcs);
}

std::string entry_graph(const schema::ModelT& model, const schema::EntryPointT& entry) {
  std::string content;
  bool layer_shown = false;
  for (const Group& group : group_steps(model, entry)) {
    // One open layer tells how all of them are built.
    const bool is_layer = group.title.starts_with("Layer");
    const bool open = !is_layer || !layer_shown;
    layer_shown = layer_shown || is_layer;
    const size_t count = group.last - group.first + 1;
    content += std::string("<details") + (open ? " open" : "") + "><summary>" + group.title +
               " <span>" + std::to_string(count) + (count == 1 ? " step" : " steps") +
               "</span></summary>" + group_graph(model, entry, group) + "</details>\n";
  }
  return content;
}

}  // namespace

std::string report_graph(const Description& d) {
  std::string content = category_legend();
  for (const auto& entry : d.model.entry_points) {
    content += "<p class=\"note\">" + escape(entry_text(d.model, *entry)) + "</p>\n" +
               entry_graph(d.model, *entry);
  }
  return section(
      "Graph",
      "Steps in the order they run. Arcs lead from where a tensor is made to where it is read; "
      "point at anything for details.",
      content);
}

}  // namespace oxbow
