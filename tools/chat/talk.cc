#include "tools/chat/talk.h"

#include <unistd.h>

#include <cstdio>

#include "host/describe.h"
#include "host/io_file.h"
#include "tools/interrupt.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

struct SlashCommand {
  const char* name;
  const char* help;
};
constexpr SlashCommand kCommands[] = {
    {"/undo", "take back the last turn"},
    {"/reset", "begin anew"},
    {"/save", "FILE: keep the conversation"},
    {"/load", "FILE: go on with one that was kept"},
    {"/stats", "tokens, speed and memory"},
    {"/help", "these lines"},
    {"/quit", "end; so does Ctrl-D. Ctrl-C ends an answer"},
};

/// With its speed, unless a state brought them: then no time was measured.
std::string tokens_text(uint64_t tokens, uint64_t nanoseconds) {
  return count_text(tokens, "token") + rate_text(tokens, static_cast<double>(nanoseconds) * 1e-9);
}

}  // namespace

Talk::Talk(const std::string& path, const oxb::Session& session, oxb::Generator& generator,
           const TalkOptions& options)
    : path_(path),
      session_(session),
      generator_(generator),
      options_(options),
      terminal_(::isatty(STDIN_FILENO) == 1) {
  begin();
}

int Talk::run() {
  if (terminal_) print_note("/help tells the commands, Ctrl-C ends an answer, Ctrl-D the program");
  LineEditor editor;
  stop_on_interrupt();
  const Colours colours = Colours::of(STDERR_FILENO);
  const std::string prompt = colours.prompt + "> " + colours.end;
  for (std::string line; editor.read(prompt, &line) && take(line);) {
    if (!stop_wanted()) continue;
    // Whoever types goes on; a script that is interrupted ends.
    if (!terminal_) return kExitInterrupted;
    forget_interrupt();
  }
  return stop_wanted() && !terminal_ ? kExitInterrupted : kExitGood;
}

bool Talk::take(const std::string& line) {
  if (line.starts_with("/")) {
    const size_t space = std::min(line.find(' '), line.size());
    const size_t rest = std::min(line.find_first_not_of(' ', space), line.size());
    return command(line.substr(0, space), line.substr(rest));
  }
  // An empty line lets a text go on by itself; in a chat it says nothing.
  if (!line.empty() || (!options_.chat && terminal_)) answer(line);
  return true;
}

bool Talk::command(const std::string& word, const std::string& rest) {
  if (word == "/quit") return false;
  if (word == "/reset") {
    generator_.reset();
    turns_.clear();
    begin();
    tell_position("begun anew");
  } else if (word == "/undo") {
    undo();
  } else if (word == "/save") {
    save(rest);
  } else if (word == "/load") {
    load(rest);
  } else if (word == "/stats") {
    print_stats();
  } else if (word == "/help") {
    for (const SlashCommand& row : kCommands) print_note(format("%-8s%s", row.name, row.help));
  } else {
    std::vector<std::string> names;
    for (const SlashCommand& row : kCommands) names.push_back(row.name);
    const std::string guess = closest_match(word, names);
    print_note(
        format("%s is no command; %s", printable(word, 40).c_str(),
               guess.empty() ? "/help tells them" : ("did you mean " + guess + "?").c_str()));
  }
  return true;
}

void Talk::begin() {
  if (options_.system.empty()) return;
  check(generator_.add_message(OXB_ROLE_SYSTEM, options_.system), path_);
}

std::vector<std::byte> Talk::state() {
  std::vector<std::byte> bytes(generator_.state_bytes());
  check(generator_.save(bytes), path_);
  return bytes;
}

void Talk::answer(const std::string& text) {
  if (options_.undo_turns > 0) {
    if (turns_.size() == options_.undo_turns) turns_.erase(turns_.begin());
    turns_.push_back(state());
  }
  if (!text.empty() || options_.chat) {
    check(options_.chat ? generator_.add_message(OXB_ROLE_USER, text) : generator_.add(text),
          path_);
  }
  uint64_t pieces = 0, bytes = 0;
  const oxb::Expected<int32_t> end = generator_.run([&](std::string_view piece) {
    ++pieces;
    bytes += piece.size();
    return out_.write(piece) && !stop_wanted() && (options_.most == 0 || pieces < options_.most);
  });
  check(end.status(), path_);
  // An answer of nothing is a line too.
  if (bytes == 0) out_.write("\n");
  out_.end_line();
  if (*end == OXB_END_STREAM_FULL) {
    print_note("the stream is full; /reset begins anew, /undo takes a turn back");
  }
}

void Talk::undo() {
  if (turns_.empty()) {
    print_note("there is no turn to take back");
    return;
  }
  check(generator_.load(turns_.back()), path_);
  turns_.pop_back();
  tell_position("taken back");
}

void Talk::tell_position(const char* done) const {
  print_note(
      format("%s: at position %s", done, grouped_text(generator_.progress().position).c_str()));
}

void Talk::save(const std::string& file) {
  if (file.empty()) return print_note("/save needs the name of a file");
  // A slip of the finger is not the end of the conversation.
  try {
    refuse_overwriting(file, {path_});
    const std::vector<std::byte> bytes = state();
    write_state_file(file, bytes);
    print_note(format("saved, %s", bytes_text(bytes.size()).c_str()));
  } catch (const std::runtime_error& error) {
    print_note(printable(error.what(), 2000));
  }
}

void Talk::load(const std::string& file) {
  if (file.empty()) return print_note("/load needs the name of a file");
  std::vector<std::byte> bytes;
  try {
    bytes = read_state_file(file);
  } catch (const InputError& error) {
    return print_note(printable(error.what(), 2000));
  }
  const oxb::Status status = generator_.load(bytes);
  if (!status.ok()) return print_note(format("%s: %s", printable(file).c_str(), status.text()));
  turns_.clear();
  tell_position("loaded");
}

void Talk::print_stats() const {
  const oxb::Generation now = generator_.progress();
  print_note(format("position %s; prompt %s; answer %s", grouped_text(now.position).c_str(),
                    tokens_text(now.prompt_tokens, now.prompt_nanoseconds).c_str(),
                    tokens_text(now.tokens, now.token_nanoseconds).c_str()));
  print_note(format("arena %s, state %s, resident %s", bytes_text(session_.arena_bytes()).c_str(),
                    bytes_text(generator_.state_bytes()).c_str(),
                    bytes_text(resident_memory().bytes).c_str()));
}

}  // namespace oxbow::tools
