#pragma once

// Sorts the tensors of a reference into parts, runs the model on each and judges what comes out.
//
// The names in io.safetensors are those of the golden packs. A part is a group of tensors fed
// together; a tensor named as an input of an entry point is fed to it, any other is expected:
//   INPUT, OUTPUT, NAME             one pass from the empty state, through the entry points in order; an input of more
//                                   dimensions is fed flat, and they as the input INPUT.shape, where there is one
//   segmentN.INPUT, .OUTPUT, .NAME  segments in order from the empty state
//   masked.INPUT, .OUTPUT           the plain part with padding; padded rows are not compared
//   recurrent.OUTPUT, .NAME         the plain part token by token
//   chunkwise.OUTPUT                the plain part by the entry point of that name
//   decode.*                        a segment token by token, see decode.cc
//   greedy.*                        text the model generated, in the ways greedy.cc lists
//   beam.*                          the same by beam search, see beam.cc
// OUTPUT is the output of an entry point; NAME a state, or an activation the converter kept. nll,
// next_ids, mask, block_layout, route_counts and route_prob_max are derived, see derived.cc. X.fp64 is an alternative to X: a
// result that matches either is good.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/verify/runner.h"

namespace oxbow::tools {

/// A group of tensors that belong to one pass, by their names without prefix.
struct Part {
  std::string prefix;
  /// Position in `outcomes` by name.
  std::map<std::string, size_t> expected;
  /// What is fed, or needed to derive an expectation.
  std::set<std::string> given;
  /// Those of them that the reference calls by another name.
  std::map<std::string, std::string> stored_as = {};

  /// The reference's tensor of an input.
  std::string stored(const std::string& input) const {
    const auto found = stored_as.find(input);
    return prefix + (found == stored_as.end() ? input : found->second);
  }
};

/// What is known of how the texts in beam.* were searched; a reference does not tell itself.
struct BeamSettings {
  std::optional<uint32_t> beams, max_tokens;
  std::optional<double> length_penalty;
  bool early_stopping = false;
};

class Verifier {
 public:
  Verifier(Runner& runner, const schema::ModelT& graph, const Safetensors& io,
           const Tolerance& tolerance, const BeamSettings& beam_settings = {});

  void run();

  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  const std::vector<std::string>& not_produced() const { return not_produced_; }

 private:
  // verifier.cc
  void collect();
  Part& part_of(const std::string& name);
  bool is_input(const std::string& name) const;
  bool is_given(const Part& part, const std::string& name) const;
  bool is_derived(const Part& part, const std::string& name) const;
  void expect(Part& part, const std::string& name, const StoredTensor& tensor);
  /// Lists what was expected of a part as not produced.
  void give_up(const Part& part);
  void check_parts() const;
  /// Runs parts after each other, for each stream from the empty state, and then what is decoded, if it is to be.
  void run_streams(const std::vector<const Part*>& parts, bool decodes = false);
  void run_part(const Part& part, uint64_t stream, size_t most_rows);
  /// The inputs of the plain part again, token by token or by the entry point of that name.
  void run_form(const Part& part, bool one_by_one);
  /// Of entry points with the same main input, forms of one model, a text as a whole is for the first and
  /// a stream for the last; but not for one with a fixed number of rows when a row for each token is expected.
  bool is_chosen(const Part& part, size_t entry) const;
  /// Whether the tensors of this name have as many rows as the part's main input wherever they are expected.
  bool has_row_for_each_token(const std::string& output) const;
  /// How the part's main input lies.
  Layout layout_of(const Part& part) const;
  /// What is fed to an entry point; nothing when its main input is not there. Looks in `fallback`
  /// for what the part itself does not have.
  std::vector<InputRows> inputs_of(const Part& part, size_t entry, uint64_t stream,
                                   const Part* fallback = nullptr) const;
  InputRows input_rows(const std::string& name, const oxb_input_info& input, const Layout& layout,
                       uint64_t stream) const;
  /// The dimensions of a tensor without the one for streams, as the input X.shape beside the input X.
  InputRows shape_of(const std::string& name, const oxb_input_info& input) const;
  /// The rows of a stream of an integer tensor; one of several dimensions only if it is `shaped`.
  std::vector<int64_t> integer_rows(const std::string& name, const Layout& layout, uint64_t stream,
                                    bool shaped = false) const;
  /// Of an input whose rows are no tokens: all that a stream has, whatever their dimensions.
  std::vector<int64_t> own_integers(const std::string& name, const std::string& input,
                                    const Layout& layout, uint64_t stream) const;
  std::set<std::string> wanted(const Part& part) const;
  void place_all(const Part& part, const Layout& layout, uint64_t stream,
                 const ProducedByName& produced, const std::vector<uint64_t>* rows_at = nullptr);
  bool is_transposed(const std::string& state) const;
  /// A state as the reference has it.
  Produced reference_state(const std::string& name, std::vector<uint64_t> shape,
                           const Produced& state, const Layout& layout) const;
  double tie_margin() const;

  // batch.cc
  void find_batch_values();
  bool raise_batch_values(size_t entry);

  // derived.cc
  void derive(const Part& part, const Layout& layout, uint64_t stream, ProducedByName& produced);
  void derive_masks();
  /// How many layers tell which expert each token took.
  size_t routed_layers() const;
  static std::string route_name(const std::string& what, size_t layer) {
    return what + ".layer" + std::to_string(layer);
  }
  void derive_routes(const Part& part, const Layout& layout, uint64_t stream,
                     const ProducedByName& produced);

  // masked.cc
  void run_masked();
  void run_masked_stream(const Layout& layout, uint64_t stream);
  bool can_mask(const Layout& layout, uint64_t stream) const;
  /// Does not compare rows of padding that the reference replaced by zeros.
  void skip_blank_rows(const Part& part, const Layout& layout, uint64_t stream);

  // greedy.cc
  void run_greedy();
  void run_sequence();
  void run_tokens();
  void run_sequences();
  /// Runs the entry points in front of the main one with the inputs of the plain part.
  void encode(uint64_t stream);
  /// Feeds tokens to the main entry point and appends the logits of the last.
  void step(std::span<const int64_t> tokens, Produced& logits);
  /// Appends what the last row of the logits would choose where the reference has `expected`.
  void choose(const Produced& logits, int64_t expected, const std::vector<int32_t>& forbidden,
              Produced& chosen) const;

  // decode.cc
  /// Continues the stream.
  void decode(uint64_t stream);

  // beam.cc
  struct BeamTexts;
  void run_beam();
  /// Every combination of settings that those given leave open.
  std::vector<oxb_beam_options> beam_grid(uint32_t n_best, uint32_t columns) const;
  /// The texts of all streams with these settings, and how well they agree with those expected.
  BeamTexts search(const oxb_beam_options& options, const BeamTexts& expected, uint64_t streams);
  /// What the model itself thinks of an expected text.
  float forced_score(uint64_t stream, std::span<const int64_t> text,
                     const oxb_beam_options& options);

  Runner& runner_;
  const schema::ModelT& graph_;
  const Safetensors& io_;
  Tolerance tolerance_;
  BeamSettings beam_settings_;
  std::map<std::string, Part> parts_;
  /// Inputs that have no tensor: what the texts of a batch have in common.
  std::map<std::string, InputRows> batch_values_;
  std::vector<Outcome> outcomes_;
  std::vector<std::string> not_produced_;
};

}  // namespace oxbow::tools
