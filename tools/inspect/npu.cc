#include "tools/inspect/npu.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "host/describe.h"
#include "tools/common.h"
#include "tools/inspect/table.h"

namespace oxbow::tools {
namespace {

const char* result_text(schema::OffloadResult result) {
  switch (result) {
    case schema::OffloadResult::ExactSums:
      return "exact sums";
    case schema::OffloadResult::Formula:
      return "stated formula";
    case schema::OffloadResult::Tolerance:
      return "tolerance";
  }
  return "unknown";
}

/// Products in a cycle: what a target's name ends with; 0: it does not say.
uint64_t macs_per_cycle(const std::string& target) {
  const size_t dash = target.rfind('-');
  return dash == std::string::npos ? 0 : std::strtoull(target.c_str() + dash + 1, nullptr, 10);
}

bool is_dense(const schema::StepT& step) {
  return step.options.AsLinearOptions() != nullptr && step.inputs.size() >= 2 &&
         !step.outputs.empty();
}

/// Why a step is on the CPU; empty: an offload stands for it.
std::string why_left(const schema::ModelT& model, const schema::StepT& step) {
  if (!is_dense(step)) return "not dense";
  const schema::TensorT& x = *model.tensors[step.inputs[0]];
  const schema::TensorT& weight = *model.tensors[step.inputs[1]];
  if (weight.type != schema::DataType::I8) return "dense, weights are not int8";
  if (x.type != schema::DataType::I8) return "dense, rows are not int8";
  return "dense, too few rows, or not compiled";
}

/// An offload with what the file says elsewhere about its steps; a file may name any, and those that are not dense have
/// no numbers.
struct Layer {
  const schema::OffloadT& offload;
  std::string entry, steps, output;
  uint32_t depth = 0, channels = 0;
  uint64_t macs = 0;

  Layer(const schema::ModelT& model, const schema::OffloadT& one) : offload(one) {
    const schema::EntryPointT& from = *model.entry_points[one.entry];
    const uint32_t last = one.step + one.steps - 1;
    entry = from.name;
    steps = std::to_string(one.step) + (one.steps > 1 ? " to " + std::to_string(last) : "");
    for (uint32_t s = one.step; s <= last; ++s) {
      const schema::StepT& step = *from.steps[s];
      if (!is_dense(step)) continue;
      const schema::TensorT& y = *model.tensors[step.outputs[0]];
      const schema::TensorT& weight = *model.tensors[step.inputs[1]];
      if (s == one.step) depth = weight.width;
      if (s == last) channels = y.width;
      if (s == last) output = y.name;
      macs += uint64_t{one.rows} * weight.rows * weight.width;
    }
  }

  /// Of all products that the chip could have made; 0: nobody says.
  double utilisation() const {
    const uint64_t peak = macs_per_cycle(offload.target) * offload.cycles;
    return peak == 0 ? 0.0 : static_cast<double>(macs) / static_cast<double>(peak);
  }
};

struct Total {
  size_t layers = 0;
  uint64_t cycles = 0, macs = 0, bytes = 0;
};

/// By target and rows.
std::map<std::pair<std::string, uint32_t>, Total> totals_of(const schema::ModelT& model) {
  std::map<std::pair<std::string, uint32_t>, Total> totals;
  std::set<std::pair<std::string, uint64_t>> counted;
  for (const auto& offload : model.offloads) {
    Total& total = totals[{offload->target, offload->rows}];
    ++total.layers;
    total.cycles += offload->cycles;
    total.macs += Layer(model, *offload).macs;
    if (counted.insert({offload->target, offload->commands}).second) {
      total.bytes += offload->command_bytes;
    }
    if (counted.insert({offload->target + " weights", offload->weights}).second) {
      total.bytes += offload->weight_bytes;
    }
  }
  return totals;
}

/// How many steps of an op stay on the CPU, and why.
std::map<std::pair<std::string, std::string>, size_t> left_of(const schema::ModelT& model) {
  std::set<std::pair<uint32_t, uint32_t>> offloaded;
  for (const auto& offload : model.offloads) {
    for (uint32_t s = 0; s < offload->steps; ++s) {
      offloaded.insert({offload->entry, offload->step + s});
    }
  }
  std::map<std::pair<std::string, std::string>, size_t> left;
  for (uint32_t e = 0; e < model.entry_points.size(); ++e) {
    const auto& steps = model.entry_points[e]->steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (offloaded.contains({e, s})) continue;
      ++left[{schema::EnumNameOpCode(steps[s]->op), why_left(model, *steps[s])}];
    }
  }
  return left;
}

}  // namespace

std::string npu_text(const schema::ModelT& model) {
  if (model.offloads.empty()) return "\nnothing for NPUs: convert it with --npu TARGET\n";
  std::string out;
  std::vector<std::vector<std::string>> rows = {{"target", "step", "giving", "rows", "shape",
                                                 "commands", "weights", "cycles", "of peak", "SRAM",
                                                 "result"}};
  for (const auto& one : model.offloads) {
    const Layer layer(model, *one);
    const schema::OffloadT& offload = *one;
    rows.push_back(
        {offload.target, layer.entry + " " + layer.steps, layer.output,
         std::to_string(offload.rows), format("%u to %u", layer.depth, layer.channels),
         grouped_text(offload.command_bytes), grouped_text(offload.weight_bytes),
         offload.cycles == 0 ? "-" : grouped_text(offload.cycles),
         layer.utilisation() == 0.0 ? "-" : format("%.1f %%", 100.0 * layer.utilisation()),
         offload.fast_bytes == 0 ? "-" : grouped_text(offload.fast_bytes),
         result_text(offload.result)});
  }
  out += "\nlayers for NPUs; cycles and SRAM are the compiler's estimates\n" + table(rows);
  std::set<std::string> compilers;
  bool is_foreign = false;
  for (const auto& offload : model.offloads) {
    compilers.insert(offload->compiler);
    is_foreign |= offload->plugin == "litert";
  }
  for (const std::string& compiler : compilers) out += "  compiled by " + compiler + "\n";
  if (is_foreign) {
    out +=
        "  litert: its graphs are not verified, its runs take memory, and no plan tells how much\n";
  }
  for (const auto& [key, total] : totals_of(model)) {
    out += format("  %s, %s: %s, %s, %s products, %s cycles\n", key.first.c_str(),
                  count_text(key.second, "row").c_str(), count_text(total.layers, "layer").c_str(),
                  size_text(total.bytes).c_str(), grouped_text(total.macs).c_str(),
                  grouped_text(total.cycles).c_str());
  }
  rows = {};
  for (const auto& [what, count] : left_of(model)) {
    rows.push_back({std::to_string(count), what.first, what.second});
  }
  return out + "\nsteps that stay on the CPU\n" + table(rows);
}

nlohmann::json npu_json(const schema::ModelT& model) {
  nlohmann::json offloads = nlohmann::json::array(), totals = nlohmann::json::array(),
                 left = nlohmann::json::array();
  for (const auto& one : model.offloads) {
    const Layer layer(model, *one);
    nlohmann::json entry = {{"plugin", one->plugin},
                            {"target", one->target},
                            {"compiler", one->compiler},
                            {"entry_point", layer.entry},
                            {"step", one->step},
                            {"steps", one->steps},
                            {"output", layer.output},
                            {"rows", one->rows},
                            {"depth", layer.depth},
                            {"channels", layer.channels},
                            {"macs", layer.macs},
                            {"command_bytes", one->command_bytes},
                            {"weight_bytes", one->weight_bytes},
                            {"result", result_text(one->result)}};
    if (one->cycles != 0) entry["cycles"] = one->cycles;
    if (layer.utilisation() != 0.0) entry["utilisation"] = layer.utilisation();
    if (one->fast_bytes != 0) entry["fast_bytes"] = one->fast_bytes;
    offloads.push_back(entry);
  }
  for (const auto& [key, total] : totals_of(model)) {
    totals.push_back({{"target", key.first},
                      {"rows", key.second},
                      {"layers", total.layers},
                      {"bytes", total.bytes},
                      {"macs", total.macs},
                      {"cycles", total.cycles}});
  }
  for (const auto& [what, count] : left_of(model)) {
    left.push_back({{"steps", count}, {"op", what.first}, {"why", what.second}});
  }
  return {{"offloads", offloads}, {"totals", totals}, {"on_cpu", left}};
}

}  // namespace oxbow::tools
