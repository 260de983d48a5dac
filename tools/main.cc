// oxbow: the command line for model files, written as any user of the library would.

#include <cstdio>
#include <string>
#include <vector>

#include "host/args.h"
#include "host/errors.h"
#include "runtime/api/oxbow.h"
#include "tools/commands.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* help;
};

constexpr Command kCommands[] = {
    {"run", oxbow::tools::run_command, "continue a text"},
    {"chat", oxbow::tools::chat_command, "ask and be answered, in turns"},
    {"tokenize", oxbow::tools::tokenize_command, "show a text as the tokens a model sees"},
    {"bench", oxbow::tools::bench_command, "measure time and memory, also over long streams"},
    {"inspect", oxbow::tools::inspect_command, "show what is in a file and what it will need"},
    {"verify", oxbow::tools::verify_command, "compare with the tensors of a reference"},
    {"eval", oxbow::tools::eval_command, "bits per byte of a text, also of two models"},
    {"embed", oxbow::tools::embed_command, "turn texts into rows of numbers to compare them by"},
    {"index", oxbow::tools::index_command, "make a table of vectors, and find the nearest in it"},
};

void print_help(std::FILE* out) {
  std::fputs(
      "usage: oxbow COMMAND model.oxb [options]\n"
      "runs long-context transformers in a memory that is fixed before the first token\n\n",
      out);
  for (const Command& command : kCommands)
    std::fprintf(out, "  %-10s%s\n", command.name, command.help);
  std::fputs(
      "\n  oxbow COMMAND --help tells the options of one command; oxbow --version the version\n",
      out);
}

/// The part after the command was found; `argv` begins with the program.
int dispatch(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(stdout);
    return oxbow::kExitGood;
  }
  if (word == "--version") {
    const unsigned version = oxb_version();
    std::printf("oxbow %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
    return oxbow::kExitGood;
  }
  std::vector<std::string> names;
  std::string list;
  for (const Command& command : kCommands) {
    if (word == command.name) return command.run(argc, argv);
    names.push_back(command.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  if (word.empty()) throw oxbow::UsageError("no command; expected one of " + list);
  const std::string guess = oxbow::closest_match(word, names);
  throw oxbow::UsageError(
      "unknown command '" + oxbow::printable(word) + "'; " +
      (guess.empty() ? "expected one of " + list : "did you mean " + guess + "?"));
}

}  // namespace

int main(int argc, char** argv) {
  // The name in front of messages is "oxbow run" where there is a command.
  std::string program = "oxbow";
  for (const Command& command : kCommands) {
    if (argc > 1 && argv[1] == std::string(command.name))
      program += std::string(" ") + command.name;
  }
  return oxbow::run_program(program, dispatch, argc, argv);
}
