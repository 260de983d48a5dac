#include "tools/verify/verifier.h"

#include <algorithm>
#include <cmath>

#include "tools/verify/states.h"

namespace oxbow::tools {
namespace {

constexpr const char* kGreedy = "greedy.";
constexpr const char* kBeam = "beam.";
constexpr const char* kRecurrent = "recurrent.";
constexpr const char* kChunkwise = "chunkwise.";
constexpr const char* kDecode = "decode.";

/// What the shape of an input that is more than a list is called, behind the input's name.
constexpr const char* kShape = ".shape";

/// "story" of "story.shape"; empty for other names.
std::string shaped_input(const std::string& name) {
  const std::string_view suffix = kShape;
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : "";
}

/// Whether the input of this entry point has a shape beside it.
bool is_shaped(const Runner::Entry& entry, const std::string& input) {
  return entry.find(input + kShape) != nullptr;
}

/// "segment12." of "segment12.logits"; empty for other names.
std::string segment_prefix(const std::string& name) {
  const size_t dot = name.find('.');
  if (!name.starts_with("segment") || dot == std::string::npos) return "";
  return parse_integer(name.substr(7, dot - 7)) ? name.substr(0, dot + 1) : "";
}

uint64_t segment_number(const std::string& prefix) {
  return *parse_integer(prefix.substr(7, prefix.size() - 8));
}

/// The dimensions of a tensor of floats without those of a row, which may be several: an image is [channels, height,
/// width], and a plane one row.
size_t rank_of_rows(const std::vector<uint64_t>& shape, uint64_t width) {
  uint64_t elements = 1;
  for (size_t rank = shape.size(); rank-- > 0;) {
    elements *= shape[rank];
    if (elements == width) return rank;
    if (elements > width) break;
  }
  return shape.empty() ? 0 : shape.size() - 1;
}

}  // namespace

Verifier::Verifier(Runner& runner, const schema::ModelT& graph, const Safetensors& io,
                   const Tolerance& tolerance, const BeamSettings& beam_settings)
    : runner_(runner),
      graph_(graph),
      io_(io),
      tolerance_(tolerance),
      beam_settings_(beam_settings) {}

void Verifier::run() {
  collect();
  check_parts();
  std::map<uint64_t, const Part*> segments;
  for (const auto& [prefix, part] : parts_) {
    if (prefix.starts_with("segment")) segments[segment_number(prefix)] = &part;
  }
  const bool plain = parts_.contains("") && !inputs_of(parts_.at(""), 0, 0).empty();
  if (plain) find_batch_values();
  const bool continues =
      parts_.contains(kGreedy) && !inputs_of(parts_.at(kGreedy), runner_.main_entry(), 0).empty();
  std::vector<const Part*> stream;
  if (plain) stream = {&parts_.at("")};
  if (plain && !segments.empty()) run_streams(stream);
  if (!segments.empty()) stream.clear();
  for (const auto& [number, part] : segments) stream.push_back(part);
  if (continues) stream.push_back(&parts_.at(kGreedy));
  run_streams(stream, true);
  if (parts_.contains(kGreedy) && !continues) run_greedy();
  for (const char* form : {kRecurrent, kChunkwise}) {
    if (parts_.contains(form)) run_form(parts_.at(form), form == std::string(kRecurrent));
  }
  if (parts_.contains("masked.")) run_masked();
  if (parts_.contains(kBeam)) run_beam();
  derive_masks();
  for (const Outcome& outcome : outcomes_) {
    if (outcome.given_up) not_produced_.push_back(outcome.name);
  }
  std::erase_if(outcomes_, [](const Outcome& outcome) { return outcome.given_up; });
  const double margin = tie_margin();
  for (Outcome& outcome : outcomes_) judge(outcome, io_, tolerance_, margin);
}

bool Verifier::is_input(const std::string& name) const {
  for (const Runner::Entry& entry : runner_.entries()) {
    if (entry.find(name) != nullptr) return true;
  }
  return false;
}

bool Verifier::is_given(const Part& part, const std::string& name) const {
  if (is_input(name)) return true;
  if (part.prefix == "masked.") return name == "attention_mask" || name == "position_ids";
  // The lengths of padded texts, which the tokens tell as well.
  if (name == "src_lengths") return true;
  return name == "target_ids" && io_.find(part.prefix + "nll") != nullptr;
}

bool Verifier::is_derived(const Part& part, const std::string& name) const {
  if (name == "nll") return io_.find(part.prefix + "target_ids") != nullptr;
  if (part.prefix == kGreedy) {
    return name == "next_ids" || name == "sequence" || name == "tokens" || name == "sequences";
  }
  if (part.prefix == kDecode && name == "tokens") return true;
  if (part.prefix == kBeam) {
    return name == "sequences" || (name == "scores" && io_.find("beam.sequences") != nullptr);
  }
  if (name == "route_counts" || name == "route_prob_max") return routed_layers() != 0;
  if (name == "mask" || name == "block_layout") return part.prefix.empty() && is_input("value");
  return false;
}

/// The part a name belongs to.
Part& Verifier::part_of(const std::string& name) {
  std::string prefix = segment_prefix(name);
  for (const char* known : {kGreedy, "masked.", kBeam, kRecurrent, kChunkwise, kDecode}) {
    if (name.starts_with(known)) prefix = known;
  }
  return parts_.try_emplace(prefix, Part{prefix, {}, {}}).first->second;
}

void Verifier::collect() {
  for (const auto& [name, tensor] : io_.tensors()) {
    std::string base = name;
    if (base.ends_with(".fp64")) {
      base.resize(base.size() - 5);
      if (io_.find(base) != nullptr) continue;  // An alternative, looked up when judging.
    }
    Part& part = part_of(base);
    const std::string short_name = base.substr(part.prefix.size());
    if (part.prefix == kGreedy && short_name == "input_ids" && !is_input(short_name)) {
      // What a decoder behind an encoder of no text was fed.
      const std::string main = runner_.entries()[runner_.main_entry()].inputs[0].name;
      part.given.insert(main);
      part.stored_as[main] = short_name;
      continue;
    }
    const bool given = is_given(part, short_name);
    if (given) part.given.insert(short_name);
    if (given && (!is_input(short_name) || !runner_.produces(short_name))) continue;
    if (runner_.produces(short_name) || is_derived(part, short_name)) {
      expect(part, short_name, tensor);
    } else {
      not_produced_.push_back(base);
    }
  }
}

void Verifier::expect(Part& part, const std::string& name, const StoredTensor& tensor) {
  Outcome outcome;
  outcome.name = part.prefix + name;
  outcome.shape = tensor.shape;
  outcome.is_ids = ((part.prefix == kGreedy || part.prefix == kDecode) && is_derived(part, name)) ||
                   (part.prefix == kBeam && name == "sequences");
  if (outcome.is_ids && is_float(tensor.dtype)) {
    outcome.failure = "unexpected type " + tensor.describe();
  }
  part.expected[name] = outcomes_.size();
  outcomes_.push_back(std::move(outcome));
}

void Verifier::give_up(const Part& part) {
  for (const auto& [name, index] : part.expected) outcomes_[index].given_up = true;
}

void Verifier::check_parts() const {
  // What is encoded first, if anything is.
  const bool encodes = runner_.entries()[0].info.starts != 0;
  const std::string input = runner_.entries()[encodes ? 0 : runner_.main_entry()].inputs[0].name;
  uint64_t next = 0;
  bool any = false;
  std::set<uint64_t> numbers;
  for (const auto& [prefix, part] : parts_) {
    const bool segment = prefix.starts_with("segment");
    if (segment) numbers.insert(segment_number(prefix));
    if (!segment && !prefix.empty()) continue;
    const bool fed = part.given.contains(input);
    any = any || fed;
    if (!fed && (segment || !part.expected.empty())) {
      throw InputError(io_.path() + ": expected a tensor " + prefix + input);
    }
  }
  for (const uint64_t number : numbers) {
    if (number != next++) {
      throw InputError(format("%s: segment%llu is there but segment%llu is not", io_.path().c_str(),
                              static_cast<unsigned long long>(number),
                              static_cast<unsigned long long>(next - 1)));
    }
  }
  if (!any) throw InputError(io_.path() + ": expected " + input + " or segment0." + input);
}

Layout Verifier::layout_of(const Part& part) const {
  for (const Runner::Entry& entry : runner_.entries()) {
    const oxb_input_info& input = entry.inputs[0];
    if (!part.given.contains(input.name)) continue;
    const std::string name = part.stored(input.name);
    const std::vector<uint64_t>& shape = io_.at(name).shape;
    const size_t rank =
        input.type == OXB_TYPE_F32 ? rank_of_rows(shape, input.width) : shape.size();
    Layout layout;
    layout.time_major = graph_.metadata->time_major;
    if (is_shaped(entry, input.name) && rank > 2) {
      layout.batch = shape[0];
      return layout;
    }
    if (rank == 0 || rank > 2) {
      throw InputError(
          io_.path() + ": " + name + " is " + shape_text(shape) +
          (layout.time_major ? "; expected [time, batch]" : "; expected [batch, time]"));
    }
    layout.has_batch = rank == 2;
    layout.batch = layout.has_batch ? shape[layout.time_major ? 1 : 0] : 1;
    if (layout.batch == 0) {
      throw InputError(io_.path() + ": " + name + " is " + shape_text(shape) +
                       ", expected at least one stream");
    }
    return layout;
  }
  throw InputError(io_.path() + ": " + part.prefix + " has no inputs");
}

void Verifier::run_streams(const std::vector<const Part*>& parts, bool decodes) {
  const Layout layout = layout_of(*parts[0]);
  Progress progress;
  for (uint64_t stream = 0; stream < layout.batch; ++stream) {
    runner_.reset();
    for (const Part* part : parts) {
      run_part(*part, stream, part->prefix == kGreedy ? 1 : SIZE_MAX);
      progress.show("stream", stream, layout.batch);
    }
    if (decodes && parts_.contains(kDecode)) decode(stream);
  }
}

void Verifier::run_part(const Part& part, uint64_t stream, size_t most_rows) {
  const Layout layout = layout_of(part);
  ProducedByName produced;
  for (size_t entry = 0; entry < runner_.entries().size(); ++entry) {
    const std::vector<InputRows> inputs = inputs_of(part, entry, stream);
    if (inputs.empty() || !is_chosen(part, entry)) continue;
    runner_.run(entry, inputs, most_rows, wanted(part), part.prefix + inputs[0].name, produced);
  }
  runner_.read_states(wanted(part), produced);
  derive(part, layout, stream, produced);
  place_all(part, layout, stream, produced);
  if (part.given.contains("attention_mask")) skip_blank_rows(part, layout, stream);
}

bool Verifier::is_chosen(const Part& part, size_t entry) const {
  const std::vector<Runner::Entry>& entries = runner_.entries();
  const auto same = [&](size_t other) {
    return std::string(entries[other].inputs[0].name) == entries[entry].inputs[0].name;
  };
  std::vector<size_t> forms;
  for (size_t other = 0; other < entries.size(); ++other) {
    if (same(other)) forms.push_back(other);
  }
  if (!part.prefix.empty() && forms.size() > 1) {
    const oxb_entry_info& last = entries[forms.back()].info;
    if (last.output_rows != 0 && has_row_for_each_token(last.output)) forms.pop_back();
  }
  return entry == (part.prefix.empty() ? forms.front() : forms.back());
}

bool Verifier::has_row_for_each_token(const std::string& output) const {
  for (const auto& [prefix, part] : parts_) {
    const auto expected = part.expected.find(output);
    if (expected == part.expected.end() || part.given.empty()) continue;
    const std::vector<uint64_t>& shape = outcomes_[expected->second].shape;
    const std::string name = part.stored(runner_.entries().back().inputs[0].name);
    const StoredTensor* tokens = io_.find(name);
    if (tokens == nullptr || shape.size() != tokens->shape.size() + 1) continue;
    if (!std::equal(tokens->shape.begin(), tokens->shape.end(), shape.begin())) return false;
  }
  return true;
}

void Verifier::run_form(const Part& part, bool one_by_one) {
  const std::string entry_name = part.prefix.substr(0, part.prefix.size() - 1);
  size_t entry = runner_.main_entry();
  while (entry > 0 && runner_.entries()[entry].info.name != entry_name) --entry;
  const bool found = one_by_one || runner_.entries()[entry].info.name == entry_name;
  if (!found || !parts_.contains("") || parts_.at("").given.empty()) return give_up(part);
  if (one_by_one) entry = runner_.main_entry();
  const Part& plain = parts_.at("");
  const Layout layout = layout_of(plain);
  for (uint64_t stream = 0; stream < layout.batch; ++stream) {
    runner_.reset();
    ProducedByName produced;
    const std::vector<InputRows> inputs = inputs_of(plain, entry, stream);
    runner_.run(entry, inputs, one_by_one ? 1 : SIZE_MAX, wanted(part), inputs[0].name, produced);
    runner_.read_states(wanted(part), produced);
    place_all(part, layout, stream, produced);
  }
}

std::set<std::string> Verifier::wanted(const Part& part) const {
  std::set<std::string> names;
  for (const auto& [name, index] : part.expected) names.insert(name);
  for (size_t layer = 0; layer < routed_layers(); ++layer) {
    names.insert(route_name("route", layer));
    names.insert(route_name("route_prob_max", layer));
  }
  return names;
}

std::vector<InputRows> Verifier::inputs_of(const Part& part, size_t entry, uint64_t stream,
                                           const Part* fallback) const {
  std::vector<InputRows> inputs;
  for (const oxb_input_info& input : runner_.entries()[entry].inputs) {
    if (const std::string whole = shaped_input(input.name);
        !inputs.empty() && part.given.contains(whole)) {
      inputs.push_back(shape_of(part.prefix + whole, input));
      continue;
    }
    const Part* owner = part.given.contains(input.name) ? &part : fallback;
    if (owner == nullptr || !owner->given.contains(input.name)) {
      if (inputs.empty()) return {};  // The main one.
      const auto found = batch_values_.find(input.name);
      if (found != batch_values_.end()) inputs.push_back(found->second);
      continue;
    }
    InputRows rows = input_rows(owner->stored(input.name), input, layout_of(*owner), stream);
    const std::vector<uint64_t>& shape = io_.at(owner->stored(input.name)).shape;
    rows.lists = !inputs.empty() && rows.own_rows && !rows.integers.empty() && shape.size() > 2 &&
                 shape.back() == inputs[0].rows;
    // The same name may belong to another entry point, with rows of its own.
    if (inputs.empty() || rows.own_rows || rows.rows == inputs[0].rows) {
      inputs.push_back(std::move(rows));
    }
  }
  return inputs;
}

InputRows Verifier::input_rows(const std::string& name, const oxb_input_info& input,
                               const Layout& layout, uint64_t stream) const {
  InputRows rows;
  rows.name = input.name;
  rows.width = input.width;
  rows.own_rows = input.own_rows != 0;
  const StoredTensor& tensor = io_.at(name);
  if (input.type == OXB_TYPE_F32) {
    const std::optional<Layout::View> view = layout.view(tensor.shape);
    if (!view || view->width != input.width || view->rows == 0) {
      throw InputError(io_.path() + ": " + name + " is " + shape_text(tensor.shape) +
                       "; expected rows of " + std::to_string(input.width) + " values for " +
                       std::to_string(layout.batch) + " streams");
    }
    const std::vector<float> all = io_.floats(name);
    rows.rows = view->rows;
    for (uint64_t row = 0; row < view->rows; ++row) {
      const auto from = all.begin() + static_cast<ptrdiff_t>(view->at(stream, row));
      rows.floats.insert(rows.floats.end(), from, from + input.width);
    }
    return rows;
  }
  const bool shaped = is_input(std::string(input.name) + kShape);
  const std::vector<int64_t> values = rows.own_rows && !shaped
                                          ? own_integers(name, input.name, layout, stream)
                                          : integer_rows(name, layout, stream, shaped);
  for (const int64_t value : values) {
    if (value < 0 || value >= int64_t{input.limit}) {
      throw InputError(format("%s: %s has the id %lld; the model takes 0 to %u", io_.path().c_str(),
                              name.c_str(), static_cast<long long>(value), input.limit - 1));
    }
    rows.integers.push_back(static_cast<int32_t>(value));
  }
  rows.rows = rows.integers.size();
  return rows;
}

InputRows Verifier::shape_of(const std::string& name, const oxb_input_info& input) const {
  InputRows rows;
  rows.name = input.name;
  rows.own_rows = true;
  const std::vector<uint64_t>& shape = io_.at(name).shape;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] >= input.limit) {
      throw InputError(io_.path() + ": " + name + " is " + shape_text(shape) +
                       ", which is too large");
    }
    rows.integers.push_back(static_cast<int32_t>(shape[i]));
  }
  rows.rows = rows.integers.size();
  return rows;
}

std::vector<int64_t> Verifier::own_integers(const std::string& name, const std::string& input,
                                            const Layout& layout, uint64_t stream) const {
  std::vector<int64_t> all = io_.integers(name);
  const std::vector<std::string>& shared = graph_.metadata->shared_inputs;
  if (!layout.has_batch || std::find(shared.begin(), shared.end(), input) != shared.end()) {
    return all;
  }
  const std::vector<uint64_t>& shape = io_.at(name).shape;
  if (shape.empty() || shape[0] != layout.batch) {
    throw InputError(io_.path() + ": " + name + " is " + shape_text(shape) + "; expected " +
                     std::to_string(layout.batch) + " streams");
  }
  const size_t count = all.size() / layout.batch;
  const auto first = all.begin() + static_cast<ptrdiff_t>(stream * count);
  return {first, first + static_cast<ptrdiff_t>(count)};
}

std::vector<int64_t> Verifier::integer_rows(const std::string& name, const Layout& layout,
                                            uint64_t stream, bool shaped) const {
  const StoredTensor& tensor = io_.at(name);
  const std::optional<Layout::View> view = layout.view(tensor.shape);
  if (!view || (view->width != 1 && !shaped) || view->rows == 0) {
    throw InputError(io_.path() + ": " + name + " is " + shape_text(tensor.shape) + "; expected " +
                     std::to_string(layout.batch) + (layout.time_major ? " columns" : " rows") +
                     " of ids");
  }
  const std::vector<int64_t> all = io_.integers(name);
  std::vector<int64_t> values;
  for (uint64_t row = 0; row < view->rows; ++row) {
    const auto from = all.begin() + static_cast<ptrdiff_t>(view->at(stream, row));
    values.insert(values.end(), from, from + static_cast<ptrdiff_t>(view->width));
  }
  return values;
}

bool Verifier::is_transposed(const std::string& name) const {
  const std::vector<std::string>& list = graph_.metadata->transposed_states;
  return std::find(list.begin(), list.end(), name) != list.end();
}

Produced Verifier::reference_state(const std::string& name, std::vector<uint64_t> shape,
                                   const Produced& state, const Layout& layout) const {
  if (layout.has_batch && !shape.empty() && shape[0] == layout.batch) shape.erase(shape.begin());
  return in_reference_order(state, shape, is_transposed(name));
}

void Verifier::place_all(const Part& part, const Layout& layout, uint64_t stream,
                         const ProducedByName& produced, const std::vector<uint64_t>* rows_at) {
  for (const auto& [name, index] : part.expected) {
    Placement placement;
    placement.layout = layout;
    placement.stream = stream;
    if (runner_.is_state(name)) {
      placement.layout.time_major = graph_.metadata->states_time_major;
    } else {
      placement.rows_at = rows_at;
    }
    if (const auto found = produced.find(name); found != produced.end()) {
      Outcome& outcome = outcomes_[index];
      const bool state = runner_.is_state(name) && !placement.layout.time_major;
      place(outcome,
            state ? reference_state(name, outcome.shape, found->second, layout) : found->second,
            placement);
      continue;
    }
    if (is_transposed(name)) {
      // The layers' rows are the columns of one tensor.
      Produced all;
      for (size_t layer = 0; layer < runner_.stacked(name); ++layer) {
        const auto found = produced.find(name + ".layer" + std::to_string(layer));
        if (found == produced.end()) continue;
        all.width = found->second.width;
        ++all.rows;
        all.values.insert(all.values.end(), found->second.values.begin(),
                          found->second.values.end());
        // A state that holds nothing yet is zeros.
        all.values.resize(all.rows * all.width);
      }
      Outcome& outcome = outcomes_[index];
      place(outcome, reference_state(name, outcome.shape, all, layout), placement);
      continue;
    }
    placement.layers = runner_.stacked(name);
    for (; placement.layer < placement.layers; ++placement.layer) {
      const auto found = produced.find(name + ".layer" + std::to_string(placement.layer));
      if (found != produced.end()) place(outcomes_[index], found->second, placement);
    }
  }
}

/// Twice the error that the logits may have, or that they have when only their cosine is judged.
double Verifier::tie_margin() const {
  if (tolerance_.judges_error) return 2.0 * tolerance_.atol;
  for (const char* name : {"greedy.logits", "logits"}) {
    for (Outcome outcome : outcomes_) {
      if (outcome.name != name || outcome.produced.empty()) continue;
      judge(outcome, io_, tolerance_, 0.0);
      if (std::isfinite(outcome.max_error)) return 2.0 * outcome.max_error;
    }
  }
  return 0.0;
}

}  // namespace oxbow::tools
