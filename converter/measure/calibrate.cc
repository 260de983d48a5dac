#include "converter/calibrate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "converter/errors.h"
#include "runtime/base/quantize.h"

namespace oxbow::convert {
namespace {

/// Enough that a tensor's largest values have been seen, few enough to wait for.
constexpr size_t kMostTokens = 4096;
/// 5 bits of the mantissa are left.
constexpr int kBinShift = 18;
constexpr uint32_t kBins = 0x7f800000u >> kBinShift;
/// Clips looked at: down to 1/16 of the largest value.
constexpr uint32_t kMostBinsClipped = 128;
constexpr char kPrefix[] = "calibrate.";

using schema::OpCode;

/// Calls visit(entry index, schema::StepT&).
template <typename Visit>
void for_each_linear(const Graph& graph, const Visit& visit) {
  for (size_t e = 0; e < graph.model.entry_points.size(); ++e) {
    for (const auto& step : graph.model.entry_points[e]->steps) {
      if (step->op == OpCode::Linear) visit(e, *step);
    }
  }
}

/// Value in the middle of a bin.
double bin_value(uint32_t bin) {
  return std::bit_cast<float>((bin << kBinShift) | (1u << (kBinShift - 1)));
}

/// Reads all tensors that observe_matrices has marked.
class Recorder {
 public:
  explicit Recorder(const Runner& runner) : runner_(runner) {
    for (size_t i = 0; i < oxb_session_tensor_count(runner.session()); ++i) {
      const std::string name = info(i).name;
      if (name.starts_with(kPrefix)) kept_.emplace_back(i, name.substr(sizeof(kPrefix) - 1));
    }
  }

  /// `written` are the tensors of the entry point that has just run.
  void record(const std::set<std::string>& written) {
    for (const auto& [index, name] : kept_) {
      if (!written.contains(name)) continue;
      const oxb_tensor_info now = info(index);
      values_.resize(size_t{now.rows} * now.width);
      oxb_error error = {};
      if (!values_.empty() && oxb_session_tensor_read(runner_.session(), index, values_.data(),
                                                      values_.size(), &error) != OXB_OK) {
        throw InputError(std::string("calibration: ") + error.text);
      }
      spreads[name].add(values_);
    }
  }

  std::map<std::string, Spread> spreads;

 private:
  oxb_tensor_info info(size_t index) const {
    oxb_tensor_info info = {};
    oxb_error error = {};
    if (oxb_session_tensor_info(runner_.session(), index, &info, &error) != OXB_OK) {
      throw InputError(std::string("calibration: ") + error.text);
    }
    return info;
  }

  const Runner& runner_;
  std::vector<std::pair<size_t, std::string>> kept_;
  std::vector<float> values_;
};

}  // namespace

void Spread::add(std::span<const float> values) {
  bins_.resize(kBins);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++bins_[std::bit_cast<uint32_t>(std::fabs(value)) >> kBinShift];
  }
}

float Spread::best_scale() const {
  auto top = static_cast<uint32_t>(bins_.size());
  while (top > 0 && bins_[top - 1] == 0) --top;
  // Bin 0 holds zeros and what is next to nothing.
  if (top <= 1) return 0.0f;
  double least = INFINITY;
  float best = 0.0f;
  for (uint32_t bin = top; bin > 0 && top - bin < kMostBinsClipped; --bin) {
    const double clip = std::bit_cast<float>(bin << kBinShift);
    const double step = clip / kQuantMax;
    double loss = 0;
    for (uint32_t at = 0; at < top; ++at) {
      if (bins_[at] == 0) continue;
      const double value = bin_value(at);
      // What is smaller than half a step loses itself and no more.
      const double error = value > clip ? (value - clip) * (value - clip)
                                        : std::min(value * value, step * step / 12);
      loss += error * static_cast<double>(bins_[at]);
    }
    if (loss < least) {
      least = loss;
      best = static_cast<float>(step);
    }
  }
  return best;
}

void observe_matrices(Graph& graph) {
  for (const auto& entry : graph.model.entry_points) {
    std::set<uint32_t> wanted;
    for (const auto& step : entry->steps) {
      if (step->op == OpCode::Linear) wanted.insert({step->inputs[0], step->outputs[0]});
    }
    if (entry->kept_names.empty()) {
      for (const uint32_t kept : entry->kept) {
        entry->kept_names.push_back(graph.tensor(kept).name);
      }
    }
    for (const uint32_t index : wanted) {
      if (graph.tensor(index).kind != schema::TensorKind::Activation) continue;
      entry->kept.push_back(index);
      entry->kept_names.push_back(kPrefix + graph.tensor(index).name);
    }
  }
}

Calibration calibrate(const Graph& graph, std::span<const std::byte> file,
                      const TokenSource& source) {
  Runner runner(file);
  const std::vector<int32_t> tokens = source.take(runner, kMostTokens);
  Recorder recorder(runner);
  std::vector<std::set<std::string>> written(graph.model.entry_points.size());
  for_each_linear(graph, [&](size_t entry, const schema::StepT& step) {
    written[entry].insert({graph.tensor(step.inputs[0]).name, graph.tensor(step.outputs[0]).name});
  });
  std::vector<float> output;
  feed(
      runner, tokens, [&] { runner.reset(); },
      [&](size_t entry, std::span<const oxb_input> inputs, std::span<const int32_t>) {
        runner.run(entry, inputs, output);
        recorder.record(written[entry]);
        const uint32_t logits = graph.model.entry_points[entry]->logits;
        recorder.spreads[graph.tensor(logits).name].add(output);
      });

  Calibration calibration;
  for_each_linear(graph, [&](size_t, const schema::StepT& step) {
    const std::string& x = graph.tensor(step.inputs[0]).name;
    const std::string& y = graph.tensor(step.outputs[0]).name;
    // A matrix may be used twice with the same rows: then it gives the same.
    calibration.inputs[x] = recorder.spreads[x].best_scale();
    calibration.outputs[{x, graph.tensor(step.inputs[1]).name}] = recorder.spreads[y].best_scale();
  });
  return calibration;
}

size_t set_static_scales(Graph& graph, const Calibration& calibration) {
  // The float tensor an int8 copy is made of.
  std::map<uint32_t, uint32_t> copied;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      if (step->op == OpCode::Quantize) copied[step->outputs[0]] = step->inputs[0];
    }
  }
  const auto known = [](const auto& map, const auto& key) -> float {
    const auto found = map.find(key);
    return found != map.end() && is_static_scale(found->second) ? found->second : 0.0f;
  };
  size_t unseen = 0;
  for_each_linear(graph, [&](size_t, schema::StepT& step) {
    schema::TensorT& x = graph.tensor(step.inputs[0]);
    if (x.type != schema::DataType::I8 || x.kind != schema::TensorKind::Activation) return;
    const auto copy = copied.find(step.inputs[0]);
    const std::string name = copy == copied.end() ? x.name : graph.tensor(copy->second).name;
    const float scale = known(calibration.inputs, name);
    if (scale == 0.0f) {
      ++unseen;
      return;
    }
    x.static_scale = scale;
    const auto key = std::pair(name, graph.tensor(step.inputs[1]).name);
    if (const float output = known(calibration.outputs, key); output != 0.0f) {
      step.options.AsLinearOptions()->output_scale = output;
    }
  });
  return unseen;
}

}  // namespace oxbow::convert
