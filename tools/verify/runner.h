#pragma once

// Runs the entry points of a model and collects by name what they give: outputs, kept activations
// and states.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "host/describe.h"
#include "tools/common.h"
#include "tools/verify/outcome.h"

namespace oxbow::tools {

/// Values of one stream for one input of an entry point.
struct InputRows {
  std::string name;
  size_t rows = 0;
  uint32_t width = 1;
  /// One of the two, as the input's type tells.
  std::vector<int32_t> integers;
  std::vector<float> floats;
  /// They are no tokens, so every run gets all of them.
  bool own_rows = false;
  /// They are lists with a value for each token, one list behind the other: a run gets those of its tokens.
  bool lists = false;
};

/// Only the given rows of every input.
std::vector<InputRows> select_rows(const std::vector<InputRows>& inputs,
                                   const std::vector<uint64_t>& rows);

class Runner {
 public:
  struct Entry {
    oxb_entry_info info = OXB_ENTRY_INFO_INIT;
    /// The main input first.
    std::vector<oxb_input_info> inputs;
    /// Readable tensors of the session: name and index.
    std::vector<std::pair<std::string, size_t>> kept;

    const oxb_input_info* find(const std::string& input) const;
  };

  Runner(const oxb::Model& model, std::string path, oxb::Session& session,
         const schema::ModelT& graph);

  const std::vector<Entry>& entries() const { return entries_; }
  /// The one whose output is the model's.
  size_t main_entry() const { return entries_.size() - 1; }
  const std::string& path() const { return path_; }
  uint32_t output_width() const { return entries_.back().info.output_width; }

  bool is_state(const std::string& name) const;
  /// How many states NAME.layer0, NAME.layer1, ... there are.
  size_t stacked(const std::string& name) const;
  /// An output, a kept activation or a state.
  bool produces(const std::string& name) const;

  void reset() { session_.reset(); }
  oxb::Session& session() { return session_; }

  /// Feeds the inputs, at most `most_rows` rows at a time, and adds what is `wanted` and the entry's
  /// output to `produced`. `what` is what a message calls the main input.
  void run(size_t entry, const std::vector<InputRows>& inputs, size_t most_rows,
           const std::set<std::string>& wanted, const std::string& what, ProducedByName& produced);
  /// The states that are wanted, as they are now.
  void read_states(const std::set<std::string>& wanted, ProducedByName& produced);

 private:
  Produced read(size_t tensor);

  std::string path_;
  oxb::Session& session_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> states_;
};

}  // namespace oxbow::tools
