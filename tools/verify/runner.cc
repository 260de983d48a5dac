#include "tools/verify/runner.h"

#include <algorithm>

namespace oxbow::tools {
namespace {

/// Of each of its lists, which have `all` values, those from `begin` to `begin + rows`.
InputRows cut_lists(const InputRows& input, size_t all, size_t begin, size_t rows) {
  InputRows cut = input;
  cut.integers.clear();
  for (size_t list = 0; list < input.integers.size(); list += all) {
    const auto from = input.integers.begin() + static_cast<ptrdiff_t>(list + begin);
    cut.integers.insert(cut.integers.end(), from, from + static_cast<ptrdiff_t>(rows));
  }
  cut.rows = cut.integers.size();
  return cut;
}

/// Rows `begin` to `begin + rows` of an input, as the runtime wants them.
oxb_input rows_of(const InputRows& input, size_t begin, size_t rows) {
  if (input.own_rows) begin = 0, rows = input.rows;
  const void* values = input.floats.empty()
                           ? static_cast<const void*>(input.integers.data() + begin)
                           : static_cast<const void*>(input.floats.data() + begin * input.width);
  return {sizeof(oxb_input), input.name.c_str(), values, rows};
}

bool has_lists(const std::vector<InputRows>& inputs, const std::string& name) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputRows& input) { return input.lists && input.name == name; });
}

/// The other way round: `rows` values of each list, from `begin` on, into lists of `all`.
void append_lists(Produced& to, const Produced& part, size_t all, size_t begin, size_t rows) {
  to.width = 1;
  to.rows = part.values.size() / rows * all;
  to.values.resize(to.rows);
  for (size_t i = 0; i < part.values.size(); ++i) {
    to.values[i / rows * all + begin + i % rows] = part.values[i];
  }
}

void append(Produced& to, const Produced& rows) {
  to.width = rows.width;
  to.rows += rows.rows;
  to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
}

}  // namespace

std::vector<InputRows> select_rows(const std::vector<InputRows>& inputs,
                                   const std::vector<uint64_t>& rows) {
  std::vector<InputRows> selected;
  for (const InputRows& input : inputs) {
    if (input.own_rows) {
      selected.push_back(input);
      continue;
    }
    InputRows& to =
        selected.emplace_back(InputRows{input.name, rows.size(), input.width, {}, {}, false});
    for (const uint64_t row : rows) {
      const auto begin = static_cast<ptrdiff_t>(row * input.width);
      const auto end = begin + static_cast<ptrdiff_t>(input.width);
      if (input.floats.empty()) {
        to.integers.insert(to.integers.end(), input.integers.begin() + begin,
                           input.integers.begin() + end);
      } else {
        to.floats.insert(to.floats.end(), input.floats.begin() + begin, input.floats.begin() + end);
      }
    }
  }
  return selected;
}

const oxb_input_info* Runner::Entry::find(const std::string& input) const {
  for (const oxb_input_info& known : inputs) {
    if (known.name == input) return &known;
  }
  return nullptr;
}

Runner::Runner(const oxb::Model& model, std::string path, oxb::Session& session,
               const schema::ModelT& graph)
    : path_(std::move(path)), session_(session) {
  // The session lists the states first, then of each entry point its further outputs and what it keeps.
  size_t index = 0;
  for (const auto& tensor : graph.tensors) {
    if (tensor->kind != schema::TensorKind::State) continue;
    states_[tensor->name] = index;
    ++index;
  }
  // Some references call key.layer3 state.layer3.key.
  for (const auto& [name, state] : std::map(states_)) {
    const size_t dot = name.rfind(".layer");
    if (dot != std::string::npos) {
      states_.try_emplace("state" + name.substr(dot) + "." + name.substr(0, dot), state);
    }
  }
  for (size_t e = 0; e < model.info().entry_count; ++e) {
    Entry& entry = entries_.emplace_back();
    const oxb::Expected<oxb_entry_info> info = model.entry_info(e);
    check(info.status(), path_);
    entry.info = *info;
    for (size_t i = 0; i < entry.info.input_count; ++i) {
      const oxb::Expected<oxb_input_info> input = model.input_info(e, i);
      check(input.status(), path_);
      entry.inputs.push_back(*input);
    }
    const schema::EntryPointT& from = *graph.entry_points[e];
    for (size_t i = 0; i < from.outputs.size() + from.kept.size(); ++i) {
      const oxb::Expected<oxb_tensor_info> tensor = session_.tensor_info(index);
      check(tensor.status(), path_);
      entry.kept.emplace_back(tensor->name, index++);
    }
  }
}

bool Runner::is_state(const std::string& name) const {
  return states_.contains(name) || stacked(name) != 0;
}

size_t Runner::stacked(const std::string& name) const {
  if (states_.contains(name)) return 0;
  size_t layers = 0;
  while (states_.contains(name + ".layer" + std::to_string(layers))) ++layers;
  return layers;
}

bool Runner::produces(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.info.output == name) return true;
    for (const auto& [kept, index] : entry.kept) {
      if (kept == name) return true;
    }
  }
  return is_state(name);
}

void Runner::run(size_t entry_index, const std::vector<InputRows>& inputs, size_t most_rows,
                 const std::set<std::string>& wanted, const std::string& what,
                 ProducedByName& produced) {
  const Entry& entry = entries_[entry_index];
  const size_t rows = inputs[0].rows;
  if (rows > entry.info.max_rows && most_rows > entry.info.max_rows && entry.info.any_pieces == 0) {
    throw InputError(
        format("%s: %s has %zu tokens and the model takes %u; convert with "
               "--max-segment %zu",
               path_.c_str(), what.c_str(), rows, entry.info.max_rows, rows));
  }
  most_rows = std::min<size_t>(most_rows, entry.info.max_rows);
  for (size_t begin = 0; begin < rows; begin += most_rows) {
    const size_t count = std::min(most_rows, rows - begin);
    std::vector<oxb_input> given;
    std::vector<InputRows> cuts;
    cuts.reserve(inputs.size());
    for (const InputRows& input : inputs) {
      if (input.lists) cuts.push_back(cut_lists(input, rows, begin, count));
      given.push_back(rows_of(input.lists ? cuts.back() : input, begin, count));
    }
    Produced output;
    output.rows = entry.info.output_rows != 0 ? entry.info.output_rows : count;
    output.width = entry.info.output_width;
    output.values.resize(output.rows * output.width);
    check(session_.run_entry(entry_index, given, output.values, output.rows), path_);
    append(produced[entry.info.output], output);
    for (const auto& [name, index] : entry.kept) {
      // An output may be kept under its own name as well.
      if (!wanted.contains(name) || name == entry.info.output) continue;
      Produced& kept = produced[name];
      if (has_lists(inputs, name)) {
        append_lists(kept, read(index), rows, begin, count);
        continue;
      }
      append(kept, read(index));
      kept.may_be_fewer = kept.rows == rows;
    }
  }
}

void Runner::read_states(const std::set<std::string>& wanted, ProducedByName& produced) {
  for (const std::string& name : wanted) {
    if (const auto found = states_.find(name); found != states_.end()) {
      produced[name] = read(found->second);
    }
    for (size_t layer = 0; layer < stacked(name); ++layer) {
      const std::string one = name + ".layer" + std::to_string(layer);
      produced[one] = read(states_.at(one));
    }
  }
}

Produced Runner::read(size_t tensor) {
  const oxb::Expected<oxb_tensor_info> info = session_.tensor_info(tensor);
  check(info.status(), path_);
  Produced produced;
  produced.rows = info->rows;
  produced.width = info->width;
  produced.values.resize(produced.rows * produced.width);
  check(session_.tensor_read(tensor, produced.values), path_);
  return produced;
}

}  // namespace oxbow::tools
