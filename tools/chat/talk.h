#pragma once

// A conversation, or a text that a person and a model write by turns: lines of standard input, answers as they come, and
// commands that begin with a slash.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common.h"
#include "tools/terminal.h"

namespace oxbow::tools {

struct TalkOptions {
  /// Lines are messages of a chat; else text that is continued.
  bool chat = true;
  /// Told before the first question; empty: nothing.
  std::string system;
  /// Turns that /undo can take back.
  uint32_t undo_turns = 8;
  /// Pieces of an answer at most; 0: as the generator says.
  uint64_t most = 0;
};

class Talk {
 public:
  /// `path` is the model's, for messages. All outlive the talk.
  Talk(const std::string& path, const oxb::Session& session, oxb::Generator& generator,
       const TalkOptions& options);

  /// Until there are no more lines, or /quit. An exit code.
  int run();

 private:
  /// False: no more lines are wanted.
  bool take(const std::string& line);
  bool command(const std::string& word, const std::string& rest);
  void begin();
  void answer(const std::string& text);
  void undo();
  void save(const std::string& file);
  void load(const std::string& file);
  /// After a command that went elsewhere in the stream.
  void tell_position(const char* done) const;
  void print_stats() const;
  std::vector<std::byte> state();

  const std::string& path_;
  const oxb::Session& session_;
  oxb::Generator& generator_;
  const TalkOptions options_;
  const bool terminal_;
  TextOutput out_{stdout};
  /// As it was before each of the last turns.
  std::vector<std::vector<std::byte>> turns_;
};

}  // namespace oxbow::tools
