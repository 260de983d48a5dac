#include "runtime/session/lockstep.h"

#include <algorithm>
#include <cstring>

#include "runtime/session/run.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using schema::TensorKind;
using TensorList = flatbuffers::Vector<uint32_t>;

bool is_of_run(const schema::Tensor& tensor) {
  return tensor.kind() == TensorKind::Activation || tensor.kind() == TensorKind::Input;
}

/// Calls use(index) for each tensor of a list that holds rows of this run, once.
template <typename Use>
void for_rows_of_run(const schema::Model& graph, const TensorList* list, Use use) {
  for (uint32_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto earlier = list->begin() + i;
    if (!is_of_run(*graph.tensors()->Get(list->Get(i)))) continue;
    if (std::find(list->begin(), earlier, list->Get(i)) == earlier) use(list->Get(i));
  }
}

/// Whether all rows are counted by the tokens or the outputs.
bool has_rows_of_tokens_only(const schema::Model& graph, const schema::EntryPoint& entry) {
  const int32_t tokens = graph.tensors()->Get(entry.tokens())->rows_symbol();
  const int32_t outputs = graph.tensors()->Get(entry.logits())->rows_symbol();
  if (tokens < 0 || outputs < 0) return false;
  bool only = true;
  const auto check = [&](uint32_t index) {
    const int32_t symbol = graph.tensors()->Get(index)->rows_symbol();
    only = only && (symbol == tokens || symbol == outputs);
  };
  for (const schema::Step* step : *entry.steps()) {
    for_rows_of_run(graph, step->inputs(), check);
    for_rows_of_run(graph, step->outputs(), check);
  }
  return only;
}

bool has_states(const schema::Model& graph, const schema::EntryPoint& entry) {
  const auto is_state = [&](uint32_t index) {
    return graph.tensors()->Get(index)->kind() == TensorKind::State;
  };
  return std::any_of(entry.steps()->begin(), entry.steps()->end(), [&](const schema::Step* step) {
    for (const TensorList* list : {step->inputs(), step->outputs()}) {
      if (list != nullptr && std::any_of(list->begin(), list->end(), is_state)) return true;
    }
    return false;
  });
}

bool share_memory(std::span<Session* const> sessions) {
  return std::all_of(sessions.begin(), sessions.end(), [&](const Session* session) {
    const bool on_device =
        session->device || (session->lender != nullptr && session->lender->device);
    return !on_device && session->draft == nullptr &&
           session->activations == sessions[0]->activations;
  });
}

/// The first `count` rows and those from `row` on, which begin behind them.
void swap_with_first(Tensor rows, size_t row, size_t count) {
  const size_t bytes = count * rows.stride();
  std::swap_ranges(rows.data, rows.data + bytes, rows.data + row * rows.stride());
  if (rows.scales == nullptr) return;
  std::swap_ranges(rows.row_scales(0), rows.row_scales(count), rows.row_scales(row));
}

void copy_first(Tensor rows, size_t row, size_t count) {
  std::memcpy(rows.data + row * rows.stride(), rows.data, count * rows.stride());
  if (rows.scales == nullptr) return;
  std::copy_n(rows.row_scales(0), count * rows.scale_groups, rows.row_scales(row));
}

/// One run of several parts: a token for each of some sessions that share their memory, or texts for one session whose
/// runs know nothing of each other. The symbols of the first session count the rows of all parts while a step has them
/// all; else each part's own.
class Lockstep {
 public:
  /// No lengths: a row for each session.
  Lockstep(std::span<Session* const> sessions, std::span<const size_t> lengths, float* output,
           Error* error)
      : sessions_(sessions),
        lengths_(lengths),
        model_(*sessions[0]->model),
        entry_(static_cast<uint32_t>(model_.entry_count() - 1)),
        output_(output),
        error_(error) {}

  /// Of all parts, one after the other.
  Status run(std::span<const int32_t> tokens) {
    const schema::EntryPoint& entry = model_.entry(entry_);
    InputValues input = {model_.graph->tensors()->Get(entry.tokens())->name()->c_str(),
                         tokens.data(), lengths_.empty() ? 1 : tokens.size()};
    for (Session* session : sessions_) {
      begin_run(*session, entry_, {&input, 1}, output_rows(input.rows));
    }
    input.rows = rows_ = tokens.size();
    count_rows(rows_);
    place_inputs(first(), entry_, {&input, 1});
    const uint32_t begin = entry_ == 0 ? 0 : first().entry_ends[entry_ - 1];
    for (uint32_t i = begin; i < first().entry_ends[entry_]; ++i) {
      if (i > begin && take_cancel(first())) return say_cancelled(error_);
      OXB_TRY(first().steps[i].by_row ? run_together(i)
                                      : run_apart(i, *entry.steps()->Get(i - begin)));
    }
    for (Session* session : sessions_) {
      end_run(*session, entry_, 1);
      // Whose they are cannot be told from the activations.
      session->last_entry = kMaxEntries;
    }
    return Status::kOk;
  }

 private:
  Session& first() const { return *sessions_[0]; }
  size_t output_rows(size_t rows) const { return output_ == nullptr ? 0 : rows; }

  void count_rows(size_t rows) {
    const auto symbol = [&](uint32_t tensor) -> uint32_t& {
      return first()
          .symbols[static_cast<size_t>(model_.graph->tensors()->Get(tensor)->rows_symbol())];
    };
    const schema::EntryPoint& entry = model_.entry(entry_);
    symbol(entry.logits()) = static_cast<uint32_t>(output_rows(rows));
    symbol(entry.tokens()) = static_cast<uint32_t>(rows);
  }

  Status run_together(uint32_t index) {
    count_rows(rows_);
    RunContext context = make_context(first(), output_, error_);
    return run_on_cpu(first(), first().steps[index], index, context);
  }

  /// The rows of each part take the place of the first one's, whose turn comes last.
  Status run_apart(uint32_t index, const schema::Step& step) {
    size_t row = rows_;
    for (size_t i = lengths_.empty() ? sessions_.size() : lengths_.size(); i-- > 0;) {
      const size_t count = lengths_.empty() ? 1 : lengths_[i];
      row -= count;
      count_rows(count);
      OXB_TRY(run_part(*sessions_[lengths_.empty() ? i : 0], index, step, row, count));
    }
    return Status::kOk;
  }

  Status run_part(const Session& session, uint32_t index, const schema::Step& step, size_t row,
                  size_t count) {
    const schema::Model& graph = *model_.graph;
    const auto exchange = [&](uint32_t tensor) {
      swap_with_first(session_tensor(session, tensor), row, count);
    };
    if (row > 0) for_rows_of_run(graph, step.inputs(), exchange);
    RunContext context = make_context(
        session, output_ == nullptr ? nullptr : output_ + row * model_.output_width, error_);
    OXB_TRY(run_on_cpu(session, session.steps[index], index, context));
    if (row == 0) return Status::kOk;
    for_rows_of_run(graph, step.inputs(), exchange);
    for_rows_of_run(graph, step.outputs(), [&](uint32_t tensor) {
      copy_first(session_tensor(session, tensor), row, count);
    });
    return Status::kOk;
  }

  std::span<Session* const> sessions_;
  std::span<const size_t> lengths_;
  const Model& model_;
  uint32_t entry_;
  float* output_;
  Error* error_;
  size_t rows_ = 0;
};

Status run_one_by_one(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                      float* output, Error* error) {
  const Model& model = *sessions[0]->model;
  const char* name = model.graph->tensors()->Get(model.main_entry().tokens())->name()->c_str();
  for (size_t i = 0; i < sessions.size(); ++i) {
    const InputValues input = {name, &tokens[i], 1};
    OXB_TRY(run_session(*sessions[i], static_cast<uint32_t>(model.entry_count() - 1), {&input, 1},
                        output == nullptr ? nullptr : output + i * model.output_width,
                        output == nullptr ? 0 : 1, error));
  }
  return Status::kOk;
}

Status check_sessions(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                      float* output, Error* error) {
  const Model& model = *sessions[0]->model;
  const char* name = model.graph->tensors()->Get(model.main_entry().tokens())->name()->c_str();
  for (size_t i = 0; i < sessions.size(); ++i) {
    if (sessions[i]->model != &model) {
      return fail(error, Status::kInvalidArgument, "session %zu is of another model than the first",
                  i);
    }
    if (std::find(sessions.begin(), sessions.begin() + i, sessions[i]) != sessions.begin() + i) {
      return fail(error, Status::kInvalidArgument, "session %zu is given twice", i);
    }
    const InputValues input = {name, &tokens[i], 1};
    OXB_TRY(check_run(*sessions[i], static_cast<uint32_t>(model.entry_count() - 1), {&input, 1},
                      output, output == nullptr ? 0 : 1, error));
  }
  return Status::kOk;
}

}  // namespace

Status run_lockstep(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                    float* output, Error* error) {
  if (sessions.empty()) return Status::kOk;
  OXB_TRY(check_sessions(sessions, tokens, output, error));
  for (const Session* session : sessions) {
    if (take_cancel(*session)) return say_cancelled(error);
  }
  const Model& model = *sessions[0]->model;
  const schema::EntryPoint& entry = model.main_entry();
  const bool together = sessions.size() > 1 && !entry.starts() && share_memory(sessions) &&
                        has_rows_of_tokens_only(*model.graph, entry);
  Status status = Status::kOk;
  if (!together) {
    status = run_one_by_one(sessions, tokens, output, error);
  } else {
    const size_t group = std::min(model.graph->tensors()->Get(entry.tokens())->rows(),
                                  model.graph->tensors()->Get(entry.logits())->rows());
    for (size_t i = 0; i < sessions.size() && status == Status::kOk; i += group) {
      const size_t count = std::min(group, sessions.size() - i);
      float* rows = output == nullptr ? nullptr : output + i * model.output_width;
      status = Lockstep(sessions.subspan(i, count), {}, rows, error).run(tokens.subspan(i, count));
    }
  }
  if (status != Status::kOk) {
    for (Session* session : sessions) session->needs_reset = true;
  }
  return status;
}

Status run_texts(Session& session, const int32_t* tokens, std::span<const size_t> lengths,
                 float* output, Error* error) {
  const Model& model = *session.model;
  const schema::EntryPoint& entry = model.main_entry();
  const auto index = static_cast<uint32_t>(model.entry_count() - 1);
  const schema::Tensor& main = *model.graph->tensors()->Get(entry.tokens());
  const schema::Tensor& out = *model.graph->tensors()->Get(entry.logits());
  Session* const one[] = {&session};
  const bool together = entry.starts() && share_memory(one) &&
                        has_rows_of_tokens_only(*model.graph, entry) &&
                        !has_states(*model.graph, entry);
  const size_t most = together ? std::min(main.rows(), out.rows()) : 0;
  for (size_t first = 0; first < lengths.size();) {
    // A text must not reach into the place of the first, where it is exchanged to.
    size_t end = first, rows = 0;
    do {
      const InputValues input = {main.name()->c_str(), tokens + rows, lengths[end]};
      const size_t wanted = out.rows_symbol() < 0 ? out.rows() : lengths[end];
      OXB_TRY(check_run(session, index, {&input, 1}, output, wanted, error));
      rows += lengths[end++];
    } while (end < lengths.size() && lengths[end] <= rows && rows + lengths[end] <= most);
    if (end - first > 1) {
      if (take_cancel(session)) return say_cancelled(error);
      reset_session(session);
      OXB_TRY(
          Lockstep(one, lengths.subspan(first, end - first), output, error).run({tokens, rows}));
    } else {
      const InputValues input = {main.name()->c_str(), tokens, rows};
      const size_t wanted = out.rows_symbol() < 0 ? out.rows() : rows;
      OXB_TRY(run_session(session, index, {&input, 1}, output, wanted, error));
    }
    tokens += rows;
    output += (out.rows_symbol() < 0 ? out.rows() : rows) * size_t{model.output_width};
    first = end;
  }
  return Status::kOk;
}

}  // namespace oxbow
