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

/// Why a step is on the CPU; empty: an offload stands for it.
std::string why_left(const schema::ModelT& model, const schema::StepT& step) {
  if (step.options.AsLinearOptions() == nullptr) return "not dense";
  const schema::TensorT& x = *model.tensors[step.inputs[0]];
  const schema::TensorT& weight = *model.tensors[step.inputs[1]];
  if (weight.type != schema::DataType::I8) return "dense, weights are not int8";
  if (x.type != schema::DataType::I8) return "dense, rows are not int8";
  return "dense, too few rows, or not compiled";
}

struct Total {
  size_t layers = 0;
  uint64_t cycles = 0, macs = 0, bytes = 0;
};

}  // namespace

std::string npu_text(const schema::ModelT& model) {
  if (model.offloads.empty()) return "\nnothing for NPUs: convert it with --npu TARGET\n";
  std::string out;
  std::map<std::pair<std::string, uint32_t>, Total> totals;
  std::set<std::pair<uint32_t, uint32_t>> offloaded;
  std::set<std::pair<std::string, uint64_t>> counted;
  std::vector<std::vector<std::string>> rows = {{"target", "step", "giving", "rows", "shape",
                                                 "commands", "weights", "cycles", "of peak", "SRAM",
                                                 "result"}};
  for (const auto& offload : model.offloads) {
    const schema::EntryPointT& entry = *model.entry_points[offload->entry];
    const uint32_t last = offload->step + offload->steps - 1;
    uint64_t macs = 0;
    for (uint32_t s = offload->step; s <= last; ++s) {
      const schema::TensorT& weight = *model.tensors[entry.steps[s]->inputs.at(1)];
      macs += uint64_t{offload->rows} * weight.rows * weight.width;
      offloaded.insert({offload->entry, s});
    }
    const schema::TensorT& x = *model.tensors[entry.steps[offload->step]->inputs.at(0)];
    const schema::TensorT& y = *model.tensors[entry.steps[last]->outputs.at(0)];
    const uint64_t peak = macs_per_cycle(offload->target) * offload->cycles;
    rows.push_back({offload->target,
                    entry.name + " " + std::to_string(offload->step) +
                        (offload->steps > 1 ? " to " + std::to_string(last) : ""),
                    y.name, std::to_string(offload->rows), format("%u to %u", x.width, y.width),
                    grouped_text(offload->command_bytes), grouped_text(offload->weight_bytes),
                    offload->cycles == 0 ? "-" : grouped_text(offload->cycles),
                    peak == 0 ? "-"
                              : format("%.1f %%", 100.0 * static_cast<double>(macs) /
                                                      static_cast<double>(peak)),
                    offload->fast_bytes == 0 ? "-" : grouped_text(offload->fast_bytes),
                    result_text(offload->result)});
    Total& total = totals[{offload->target, offload->rows}];
    ++total.layers;
    total.cycles += offload->cycles;
    total.macs += macs;
    if (counted.insert({offload->target, offload->commands}).second) {
      total.bytes += offload->command_bytes;
    }
    if (counted.insert({offload->target + " weights", offload->weights}).second) {
      total.bytes += offload->weight_bytes;
    }
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
  for (const auto& [key, total] : totals) {
    out += format("  %s, %u rows: %zu layers, %s bytes, %s products, %s cycles\n",
                  key.first.c_str(), key.second, total.layers, grouped_text(total.bytes).c_str(),
                  grouped_text(total.macs).c_str(), grouped_text(total.cycles).c_str());
  }
  std::map<std::pair<std::string, std::string>, size_t> left;
  for (uint32_t e = 0; e < model.entry_points.size(); ++e) {
    const auto& steps = model.entry_points[e]->steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (offloaded.contains({e, s})) continue;
      ++left[{schema::EnumNameOpCode(steps[s]->op), why_left(model, *steps[s])}];
    }
  }
  rows = {};
  for (const auto& [what, count] : left) {
    rows.push_back({std::to_string(count), what.first, what.second});
  }
  return out + "\nsteps that stay on the CPU\n" + table(rows);
}

}  // namespace oxbow::tools
