// oxbow verify: feeds a model what a reference implementation was fed and compares what comes out.
//
// The names in io.safetensors are those of the golden packs. A part is a group of tensors fed
// together:
//   input_ids, logits, NAME                 one pass from the empty state
//   segmentN.input_ids, .logits, .NAME      segments in order from the empty state
//   greedy.input_ids, .logits, .next_ids, .NAME   single tokens after what came last
// NAME is a tensor of the session, read after the part: a memory, or an activation the converter
// kept. X.fp64 is an alternative to X: a result that matches either is good.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "converter/describe.h"
#include "converter/safetensors.h"
#include "tools/commands.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

using convert::Safetensors;
using convert::StoredTensor;

struct Tolerance {
  double atol = 0.0;
  double rtol = 0.0;
  std::optional<double> min_cosine;
  /// False: only the cosine judges.
  bool judges_error = true;
};

/// [rows][columns of one stream] inside a tensor that holds all streams.
struct Layout {
  bool time_major = false;
  uint64_t batch = 1;
  /// False: the tensors have no batch dimension at all.
  bool has_batch = true;

  /// Elements per row and stream, and rows; nothing when the shape does not hold `batch` streams.
  struct View {
    uint64_t rows, width;
  };
  std::optional<View> view(const std::vector<uint64_t>& shape) const {
    const size_t leading = has_batch ? 2 : 1;
    if (shape.size() < leading) return std::nullopt;
    const uint64_t rows = shape[has_batch && !time_major ? 1 : 0];
    if (has_batch && shape[time_major ? 1 : 0] != batch) return std::nullopt;
    uint64_t width = 1;
    for (size_t i = leading; i < shape.size(); ++i) width *= shape[i];
    return View{rows, width};
  }
  /// Index of the first element of a row.
  uint64_t at(const View& view, uint64_t stream, uint64_t row) const {
    return (time_major ? row * batch + stream : stream * view.rows + row) * view.width;
  }
};

/// What is known about one expected tensor when all streams have been run.
struct Outcome {
  std::string name;
  std::vector<uint64_t> shape;
  /// In the layout of the reference. Empty until the model has produced it.
  std::vector<float> produced;
  /// Why it cannot be compared at all.
  std::string failure;
  bool is_ids = false;

  // Filled by judge().
  double max_error = 0.0;
  uint64_t max_at = 0;
  double cosine = 0.0;
  bool ok = false;
  std::string note;
};

/// A group of tensors that belong to one pass, by their names without prefix.
struct Part {
  std::string prefix;
  /// Position in `outcomes` by base name.
  std::map<std::string, size_t> expected;
};

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Where the value of this index lies; nowhere in a tensor without values, such as an empty memory.
std::vector<uint64_t> coordinates(const std::vector<uint64_t>& shape, uint64_t index) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return {};
  std::vector<uint64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

class Verifier {
 public:
  Verifier(const oxb::Model& model, std::string model_path, oxb::Session& session,
           const Safetensors& io, bool time_major, const Tolerance& tolerance)
      : model_(model),
        model_path_(std::move(model_path)),
        session_(session),
        io_(io),
        time_major_(time_major),
        tolerance_(tolerance),
        info_(model.info()) {
    for (size_t i = 0; i < session_.tensor_count(); ++i) {
      const oxb::Expected<oxb_tensor_info> tensor = session_.tensor_info(i);
      check(tensor.status(), model_path_);
      session_tensors_[tensor->name] = i;
    }
  }

  void run() {
    collect();
    if (plain_ && !segments_.empty()) run_streams({&*plain_});
    std::vector<Part*> stream;
    for (auto& [number, part] : segments_) stream.push_back(&part);
    if (stream.empty()) stream.push_back(&*plain_);
    if (greedy_) stream.push_back(&*greedy_);
    run_streams(stream);
    for (Outcome& outcome : outcomes_) judge(outcome);
  }

  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  const std::vector<std::string>& not_produced() const { return not_produced_; }

 private:
  /// Sorts the names of the file into parts, checks the ids.
  void collect() {
    for (const auto& [name, tensor] : io_.tensors()) {
      std::string base = name;
      if (base.ends_with(".fp64")) {
        base.resize(base.size() - 5);
        if (io_.find(base) != nullptr) continue;  // An alternative, looked up when judging.
      }
      Part* part = part_of(base);
      const std::string short_name = part == nullptr ? base : base.substr(part->prefix.size());
      if (short_name == "input_ids") {
        part->expected.try_emplace("input_ids", SIZE_MAX);
      } else if (part != nullptr && can_produce(*part, short_name)) {
        Outcome outcome;
        outcome.name = base;
        outcome.shape = tensor.shape;
        outcome.is_ids = short_name == "next_ids";
        if (convert::is_float(tensor.dtype) == outcome.is_ids) {
          outcome.failure = "unexpected type " + tensor.describe();
        }
        part->expected[short_name] = outcomes_.size();
        outcomes_.push_back(std::move(outcome));
      } else {
        not_produced_.push_back(base);
      }
    }
    const auto need_ids = [&](const Part& part) {
      if (part.expected.contains("input_ids")) return;
      throw InputError(io_.path() + ": expected a tensor " + part.prefix + "input_ids");
    };
    if (plain_) need_ids(*plain_);
    for (const auto& [number, part] : segments_) need_ids(part);
    if (greedy_) need_ids(*greedy_);
    if (!plain_ && segments_.empty()) {
      throw InputError(io_.path() + ": expected input_ids or segment0.input_ids");
    }
    uint64_t next = 0;
    for (const auto& [number, part] : segments_) {
      if (number != next++) {
        throw InputError(format("%s: segment%llu is there but segment%llu is not",
                                io_.path().c_str(), static_cast<unsigned long long>(number),
                                static_cast<unsigned long long>(next - 1)));
      }
    }
  }

  /// The part a name belongs to; null for prefixes that are none, such as masked.
  Part* part_of(const std::string& name) {
    if (name.starts_with("greedy.")) {
      if (!greedy_) greedy_ = Part{"greedy.", {}};
      return &*greedy_;
    }
    if (name.starts_with("segment")) {
      const size_t dot = name.find('.');
      if (dot == std::string::npos) return nullptr;
      const std::optional<uint64_t> number = convert::parse_integer(name.substr(7, dot - 7));
      if (!number) return nullptr;
      return &segments_.try_emplace(*number, Part{name.substr(0, dot + 1), {}}).first->second;
    }
    const bool known = name == "input_ids" || name == "logits" || session_tensors_.contains(name);
    if (!known) return nullptr;
    if (!plain_) plain_ = Part{"", {}};
    return &*plain_;
  }

  bool can_produce(const Part& part, const std::string& name) const {
    return name == "logits" || session_tensors_.contains(name) ||
           (part.prefix == "greedy." && name == "next_ids");
  }

  /// Runs the parts of one stream after another, for each stream from the empty state.
  void run_streams(const std::vector<Part*>& parts) {
    const std::vector<uint64_t>& shape = io_.at(parts[0]->prefix + "input_ids").shape;
    if (shape.empty() || shape.size() > 2) {
      throw InputError(io_.path() + ": " + parts[0]->prefix + "input_ids is " + shape_text(shape) +
                       (time_major_ ? "; expected [time, batch]" : "; expected [batch, time]"));
    }
    layout_.time_major = time_major_;
    layout_.has_batch = shape.size() == 2;
    layout_.batch = layout_.has_batch ? shape[time_major_ ? 1 : 0] : 1;
    if (layout_.batch == 0) {
      throw InputError(io_.path() + ": " + parts[0]->prefix + "input_ids is " + shape_text(shape) +
                       ", expected at least one stream");
    }
    Progress progress;
    for (uint64_t stream = 0; stream < layout_.batch; ++stream) {
      session_.reset();
      for (Part* part : parts) {
        run_part(*part, stream);
        progress.show("stream", stream, layout_.batch);
      }
    }
  }

  void run_part(Part& part, uint64_t stream) {
    const std::vector<int32_t> ids = stream_ids(part, stream);
    const bool greedy = part.prefix == "greedy.";
    if (!greedy && ids.size() > info_.max_segment) {
      throw InputError(format(
          "%s: %sinput_ids has %zu tokens and the model takes %u; convert with "
          "--max-segment %zu",
          model_path_.c_str(), part.prefix.c_str(), ids.size(), info_.max_segment, ids.size()));
    }
    std::vector<float> logits(ids.size() * info_.output_width);
    if (greedy) {
      for (size_t i = 0; i < ids.size(); ++i) {
        check(session_.run({&ids[i], 1},
                           std::span(logits).subspan(i * info_.output_width, info_.output_width)),
              model_path_);
      }
    } else {
      check(session_.run(ids, logits), model_path_);
    }
    for (const auto& [name, index] : part.expected) {
      if (name == "input_ids") continue;
      Outcome& outcome = outcomes_[index];
      if (name == "logits") {
        place(outcome, stream, ids.size(), info_.output_width, logits);
      } else if (name == "next_ids") {
        std::vector<float> chosen;
        for (size_t i = 0; i < ids.size(); ++i) {
          chosen.push_back(static_cast<float>(
              argmax(std::span(logits).subspan(i * info_.output_width, info_.output_width))));
        }
        place(outcome, stream, ids.size(), 1, chosen);
      } else {
        const oxb::Expected<oxb_tensor_info> tensor =
            session_.tensor_info(session_tensors_.at(name));
        check(tensor.status(), model_path_);
        std::vector<float> values(size_t{tensor->rows} * tensor->width);
        check(session_.tensor_read(session_tensors_.at(name), values), model_path_);
        place(outcome, stream, tensor->rows, tensor->width, values);
      }
    }
  }

  std::vector<int32_t> stream_ids(const Part& part, uint64_t stream) const {
    const std::string name = part.prefix + "input_ids";
    const StoredTensor& tensor = io_.at(name);
    const std::optional<Layout::View> view = layout_.view(tensor.shape);
    if (!view || view->width != 1 || view->rows == 0) {
      throw InputError(io_.path() + ": " + name + " is " + shape_text(tensor.shape) +
                       "; expected " + std::to_string(layout_.batch) +
                       (time_major_ ? " columns" : " rows") + " of ids");
    }
    const std::vector<int64_t> all = io_.integers(name);
    std::vector<int32_t> ids;
    for (uint64_t row = 0; row < view->rows; ++row) {
      const int64_t id = all[layout_.at(*view, stream, row)];
      if (id < 0 || id >= int64_t{info_.vocabulary}) {
        throw InputError(format("%s: %s has the id %lld; the model's vocabulary is %u",
                                io_.path().c_str(), name.c_str(), static_cast<long long>(id),
                                info_.vocabulary));
      }
      ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }

  /// Puts the rows of one stream where the reference has them.
  void place(Outcome& outcome, uint64_t stream, uint64_t rows, uint64_t width,
             std::span<const float> values) {
    if (!outcome.failure.empty()) return;
    const std::optional<Layout::View> view = layout_.view(outcome.shape);
    if (!view || view->width != width) {
      outcome.failure = format("the model has %llu values per row for each of %llu streams",
                               static_cast<unsigned long long>(width),
                               static_cast<unsigned long long>(layout_.batch));
      return;
    }
    if (view->rows != rows) {
      outcome.failure =
          format("the model has %llu rows, expected %llu", static_cast<unsigned long long>(rows),
                 static_cast<unsigned long long>(view->rows));
      return;
    }
    outcome.produced.resize(layout_.batch * rows * width);
    for (uint64_t row = 0; row < rows; ++row) {
      std::copy_n(
          values.begin() + static_cast<ptrdiff_t>(row * width), width,
          outcome.produced.begin() + static_cast<ptrdiff_t>(layout_.at(*view, stream, row)));
    }
  }

  void judge(Outcome& outcome) {
    if (!outcome.failure.empty()) {
      outcome.note = outcome.failure;
      outcome.max_error = outcome.cosine = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (outcome.is_ids) {
      judge_ids(outcome);
      return;
    }
    bool first = true;
    for (const std::string& name : {outcome.name, outcome.name + ".fp64"}) {
      if (io_.find(name) == nullptr) continue;
      Outcome candidate = outcome;
      compare(candidate, to_doubles(name));
      if (first || (candidate.ok && !outcome.ok)) {
        outcome = candidate;
        if (!first) outcome.note = "matches .fp64";
      }
      first = false;
    }
  }

  std::vector<double> to_doubles(const std::string& name) const {
    // Rounded to float: far below any tolerance, since the model's own numbers are floats.
    const std::vector<float> values = io_.floats(name);
    return {values.begin(), values.end()};
  }

  void compare(Outcome& outcome, const std::vector<double>& expected) const {
    if (expected.size() != outcome.produced.size()) {
      outcome.note = "the two alternatives have different sizes";
      return;
    }
    double dot = 0.0, got_square = 0.0, expected_square = 0.0;
    double worst = -1.0;  // Largest excess over the tolerance decides where to look.
    bool within = true, finite = true;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double got = static_cast<double>(outcome.produced[i]);
      const double error = std::abs(got - expected[i]);
      if (!std::isfinite(got) || !std::isfinite(expected[i])) {
        if (finite) outcome.max_at = i;
        finite = false;
        continue;
      }
      if (finite && error > worst) {
        worst = error;
        outcome.max_at = i;
      }
      within = within && error <= tolerance_.atol + tolerance_.rtol * std::abs(expected[i]);
      dot += got * expected[i];
      got_square += got * got;
      expected_square += expected[i] * expected[i];
    }
    outcome.max_error = finite ? std::max(worst, 0.0) : std::numeric_limits<double>::quiet_NaN();
    const double product = std::sqrt(got_square) * std::sqrt(expected_square);
    outcome.cosine = product > 0.0 ? dot / product : got_square == expected_square ? 1.0 : 0.0;
    if (!finite) outcome.note = "not a number";
    outcome.ok = finite && (within || !tolerance_.judges_error) &&
                 (!tolerance_.min_cosine || outcome.cosine >= *tolerance_.min_cosine);
  }

  /// Chosen tokens. Where the reference's two best logits are nearer to each other than twice the
  /// error the logits may have, either choice is right.
  void judge_ids(Outcome& outcome) const {
    const std::vector<int64_t> expected = io_.integers(outcome.name);
    const Outcome* logits = nullptr;
    for (const Outcome& other : outcomes_) {
      if (other.name == "greedy.logits" && !other.produced.empty()) logits = &other;
    }
    std::vector<double> reference;
    double margin = 2.0 * tolerance_.atol;
    if (logits != nullptr) {
      Outcome measured = *logits;
      const bool plain = io_.find(logits->name) != nullptr;
      reference = to_doubles(plain ? logits->name : logits->name + ".fp64");
      compare(measured, reference);
      if (!tolerance_.judges_error) margin = 2.0 * measured.max_error;
    }
    if (outcome.produced.size() != expected.size()) {
      outcome.note =
          format("%zu ids, the model chose %zu", expected.size(), outcome.produced.size());
      outcome.max_error = static_cast<double>(expected.size());
      return;
    }
    uint64_t agree = 0, tied = 0, wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == static_cast<int64_t>(outcome.produced[i])) {
        ++agree;
        continue;
      }
      const auto chosen = static_cast<size_t>(outcome.produced[i]);
      const size_t row = i * info_.output_width;
      // How far apart the reference sees its token and ours, whichever it prefers.
      const bool near = expected[i] >= 0 && expected[i] < int64_t{info_.output_width} &&
                        row + info_.output_width <= reference.size() &&
                        std::abs(reference[row + static_cast<size_t>(expected[i])] -
                                 reference[row + chosen]) <= margin;
      near ? ++tied : ++wrong;
      if (!near && wrong == 1) outcome.max_at = i;
    }
    outcome.max_error = static_cast<double>(wrong);
    outcome.cosine = 1.0;
    outcome.ok = wrong == 0;
    outcome.note =
        format("%llu of %zu agree", static_cast<unsigned long long>(agree), expected.size());
    if (tied != 0)
      outcome.note += format(", %llu nearly tied", static_cast<unsigned long long>(tied));
  }

  const oxb::Model& model_;
  std::string model_path_;
  oxb::Session& session_;
  const Safetensors& io_;
  bool time_major_;
  Tolerance tolerance_;
  oxb_model_info info_;
  Layout layout_;
  std::map<std::string, size_t> session_tensors_;
  std::optional<Part> plain_, greedy_;
  std::map<uint64_t, Part> segments_;
  std::vector<Outcome> outcomes_;
  std::vector<std::string> not_produced_;
};

/// The natural order of names: segment2 before segment10, greedy last.
bool name_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& name) -> std::pair<uint64_t, std::string> {
    if (name.starts_with("greedy.")) return {UINT64_MAX, name};
    if (!name.starts_with("segment")) return {0, name};
    const size_t dot = std::min(name.find('.'), name.size());
    return {convert::parse_integer(name.substr(7, dot - 7)).value_or(0), name.substr(dot)};
  };
  return key(a) < key(b);
}

nlohmann::json to_json(const Outcome& outcome) {
  nlohmann::json out = {{"name", outcome.name}, {"shape", outcome.shape}, {"ok", outcome.ok}};
  if (std::isfinite(outcome.max_error)) {
    out["max_abs_error"] = outcome.max_error;
    out["at"] = coordinates(outcome.shape, outcome.max_at);
    out["cosine"] = outcome.cosine;
  }
  if (!outcome.note.empty()) out["note"] = outcome.note;
  return out;
}

void print_line(const Outcome& outcome, size_t name_width) {
  std::printf("%-*s  %-14s ", static_cast<int>(name_width), outcome.name.c_str(),
              shape_text(outcome.shape).c_str());
  if (outcome.is_ids && outcome.failure.empty()) {
    std::printf("%-47s", outcome.note.c_str());
  } else if (std::isfinite(outcome.max_error)) {
    std::printf("max error %.2e at %-16s cosine %.6f", outcome.max_error,
                shape_text(coordinates(outcome.shape, outcome.max_at)).c_str(), outcome.cosine);
    if (!outcome.note.empty()) std::printf(" (%s)", outcome.note.c_str());
  } else {
    std::printf("%-47s", outcome.note.c_str());
  }
  std::printf("  %s\n", outcome.ok ? "ok" : "FAIL");
}

}  // namespace

int verify_command(int argc, char** argv) {
  Args args("oxbow verify",
            "compares a model with the tensors a reference implementation produced");
  args.positional("model.oxb", "the model file");
  args.positional("io.safetensors", "inputs and expected outputs");
  args.option("atol", "X", "allowed absolute error (default: atol_fp32 of the io file's metadata)");
  args.option("rtol", "X", "allowed error relative to the expected value, added to it (default 0)");
  args.option("min-cosine", "X",
              "judge each tensor by its cosine instead; --atol and --rtol hold too when given");
  args.flag("json", "print JSON");
  add_common_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return convert::kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  Tolerance tolerance;
  tolerance.atol = args.number("atol", 0.0, 0.0, std::numeric_limits<double>::max());
  tolerance.rtol = args.number("rtol", 0.0, 0.0, std::numeric_limits<double>::max());
  if (args.has("min-cosine")) tolerance.min_cosine = args.number("min-cosine", 0.0, -1.0, 1.0);

  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path);
  const Safetensors io(*args.text("io.safetensors"));
  if (!args.has("atol")) {
    const auto found = io.metadata().find("atol_fp32");
    const std::optional<double> given =
        found == io.metadata().end() ? std::nullopt : convert::parse_number(found->second);
    const bool usable = given && *given >= 0.0;
    if (!usable && !tolerance.min_cosine) {
      throw InputError(io.path() +
                       ": no atol_fp32 that is a number, 0 or more, in its metadata; give " +
                       "--atol X");
    }
    tolerance.atol = usable ? *given : 0.0;
  }
  // A cosine takes the place of the default tolerance; what is asked for holds beside it.
  tolerance.judges_error = !tolerance.min_cosine || args.has("atol") || args.has("rtol");
  oxb::Session session = open_session(model, path, common);
  Verifier verifier(model, path, session, io,
                    convert::describe_file(path).model.metadata->time_major, tolerance);
  verifier.run();

  std::vector<Outcome> outcomes = verifier.outcomes();
  std::vector<std::string> not_produced = verifier.not_produced();
  std::sort(outcomes.begin(), outcomes.end(),
            [](const Outcome& a, const Outcome& b) { return name_before(a.name, b.name); });
  std::sort(not_produced.begin(), not_produced.end(), name_before);
  size_t failed = 0, name_width = 0;
  double max_error = 0.0, least_cosine = 1.0;
  for (const Outcome& outcome : outcomes) {
    failed += !outcome.ok;
    name_width = std::max(name_width, outcome.name.size());
    if (!outcome.is_ids && outcome.failure.empty()) {
      // Once it is not a number it stays so: no comparison with NaN is true.
      if (std::isnan(outcome.max_error) || outcome.max_error > max_error) {
        max_error = outcome.max_error;
      }
      least_cosine = std::min(least_cosine, outcome.cosine);
    }
  }
  const bool ok = failed == 0 && !outcomes.empty();

  if (args.has("json")) {
    nlohmann::json out = {{"model", path},
                          {"io", io.path()},
                          {"ok", ok},
                          {"checked", outcomes.size()},
                          {"failed", failed},
                          {"atol", tolerance.atol},
                          {"rtol", tolerance.rtol},
                          {"max_abs_error", max_error},
                          {"least_cosine", least_cosine},
                          {"tensors", nlohmann::json::array()},
                          {"not_produced", not_produced}};
    if (tolerance.min_cosine) out["min_cosine"] = *tolerance.min_cosine;
    for (const Outcome& outcome : outcomes) out["tensors"].push_back(to_json(outcome));
    std::fputs(convert::json_text(out).c_str(), stdout);
  } else {
    for (const Outcome& outcome : outcomes) print_line(outcome, name_width);
    for (const std::string& name : not_produced) {
      std::printf("%-*s  not produced\n", static_cast<int>(name_width), name.c_str());
    }
    std::string limit;
    if (tolerance.min_cosine) limit = format("cosine at least %g", *tolerance.min_cosine);
    if (tolerance.judges_error) {
      limit += format("%serror at most %g + %g |expected|", limit.empty() ? "" : ", ",
                      tolerance.atol, tolerance.rtol);
    }
    std::printf(
        "%zu tensors checked, %zu failed, %zu not produced; max error %.2e, least cosine %.6f "
        "(%s)\n",
        outcomes.size(), failed, not_produced.size(), max_error, least_cosine, limit.c_str());
  }
  if (outcomes.empty())
    throw CheckFailed("no output was checked: " + io.path() + " expects none the model produces");
  if (failed != 0) {
    throw CheckFailed(format("%zu of %zu tensors are not as expected", failed, outcomes.size()));
  }
  return convert::kExitGood;
}

}  // namespace oxbow::tools
