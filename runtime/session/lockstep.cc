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

bool share_memory(std::span<Session* const> sessions) {
  return std::all_of(sessions.begin(), sessions.end(), [&](const Session* session) {
    const bool on_device =
        session->device || (session->lender != nullptr && session->lender->device);
    return !on_device && session->draft == nullptr &&
           session->activations == sessions[0]->activations;
  });
}

void swap_with_first(Tensor rows, uint32_t row) {
  const size_t stride = rows.stride();
  std::swap_ranges(rows.data, rows.data + stride, rows.data + row * stride);
  if (rows.scales == nullptr) return;
  std::swap_ranges(rows.row_scales(0), rows.row_scales(1), rows.row_scales(row));
}

void copy_first(Tensor rows, uint32_t row) {
  std::memcpy(rows.data + row * rows.stride(), rows.data, rows.stride());
  if (rows.scales == nullptr) return;
  std::copy_n(rows.row_scales(0), rows.scale_groups, rows.row_scales(row));
}

/// A run of one token for each of some sessions that share their memory. The symbols of each count its own row, but
/// those of the first all rows while a step has them all.
class Lockstep {
 public:
  Lockstep(std::span<Session* const> sessions, float* output, Error* error)
      : sessions_(sessions),
        model_(*sessions[0]->model),
        entry_(static_cast<uint32_t>(model_.entry_count() - 1)),
        output_(output),
        error_(error) {}

  Status run(std::span<const int32_t> tokens) {
    const schema::EntryPoint& entry = model_.entry(entry_);
    InputValues input = {model_.graph->tensors()->Get(entry.tokens())->name()->c_str(),
                         tokens.data(), 1};
    for (Session* session : sessions_) begin_run(*session, entry_, {&input, 1}, output_rows());
    input.rows = tokens.size();
    count_rows(tokens.size());
    place_inputs(first(), entry_, {&input, 1});
    const uint32_t begin = entry_ == 0 ? 0 : first().entry_ends[entry_ - 1];
    for (uint32_t i = begin; i < first().entry_ends[entry_]; ++i) {
      if (i > begin && take_cancel(first())) return say_cancelled(error_);
      OXB_TRY(first().steps[i].by_row ? run_together(i)
                                      : run_apart(i, *entry.steps()->Get(i - begin)));
    }
    for (Session* session : sessions_) end_run(*session, entry_, 1);
    return Status::kOk;
  }

 private:
  Session& first() const { return *sessions_[0]; }
  size_t output_rows() const { return output_ == nullptr ? 0 : 1; }

  void count_rows(size_t sessions) {
    const auto symbol = [&](uint32_t tensor) -> uint32_t& {
      return first()
          .symbols[static_cast<size_t>(model_.graph->tensors()->Get(tensor)->rows_symbol())];
    };
    const schema::EntryPoint& entry = model_.entry(entry_);
    symbol(entry.logits()) = static_cast<uint32_t>(sessions * output_rows());
    symbol(entry.tokens()) = static_cast<uint32_t>(sessions);
  }

  Status run_together(uint32_t index) {
    count_rows(sessions_.size());
    RunContext context = make_context(first(), output_, error_);
    return run_on_cpu(first(), first().steps[index], index, context);
  }

  /// The rows of each session take the place of the first one's, whose turn comes last.
  Status run_apart(uint32_t index, const schema::Step& step) {
    count_rows(1);
    const schema::Model& graph = *model_.graph;
    for (auto i = static_cast<uint32_t>(sessions_.size()); i-- > 0;) {
      const Session& session = *sessions_[i];
      const auto exchange = [&](uint32_t tensor) {
        swap_with_first(session_tensor(session, tensor), i);
      };
      if (i > 0) for_rows_of_run(graph, step.inputs(), exchange);
      RunContext context = make_context(
          session, output_ == nullptr ? nullptr : output_ + i * model_.output_width, error_);
      OXB_TRY(run_on_cpu(session, session.steps[index], index, context));
      if (i == 0) break;
      for_rows_of_run(graph, step.inputs(), exchange);
      for_rows_of_run(graph, step.outputs(),
                      [&](uint32_t tensor) { copy_first(session_tensor(session, tensor), i); });
    }
    return Status::kOk;
  }

  std::span<Session* const> sessions_;
  const Model& model_;
  uint32_t entry_;
  float* output_;
  Error* error_;
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
      status = Lockstep(sessions.subspan(i, count), rows, error).run(tokens.subspan(i, count));
    }
  }
  if (status != Status::kOk) {
    for (Session* session : sessions) session->needs_reset = true;
  }
  return status;
}

}  // namespace oxbow
