#include "tools/commands.h"

#include <string>

namespace oxbow::tools {
namespace {

constexpr Command kCommands[] = {
    {"run", "continue a text", "continues a text, or does with it what the model is for",
     declare_run, run_command},
    {"chat", "ask and be answered, in turns",
     "asks a model that was trained to answer: each line is a question", declare_chat,
     chat_command},
    {"tokenize", "show a text as the tokens a model sees",
     "shows a text as the tokens a model sees, one in each line", declare_tokenize,
     tokenize_command},
    {"bench", "measure time and memory, also over long streams",
     "measures time and memory of a model; by default --prefill 128 --decode 128", declare_bench,
     bench_command},
    {"inspect", "show what is in a file and what it will need",
     "shows what is in a file and what it will need", declare_inspect, inspect_command},
    {"verify", "compare with the tensors of a reference",
     "compares a model with the tensors a reference implementation produced", declare_verify,
     verify_command},
    {"eval", "bits per byte of a text, also of two models",
     "measures how well a model predicts a text: bits per byte compare models whose tokens differ",
     declare_eval, eval_command},
    {"embed", "turn texts into rows of numbers to compare them by",
     "turns each text into one row of numbers, to compare texts by", declare_embed, embed_command},
    {"index", "make a table of vectors, and find the nearest in it",
     "makes a table of int8 vectors, and finds the nearest in it, exactly", declare_index,
     index_command},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

Args args_of(const Command& command) {
  Args args(std::string("oxbow ") + command.name, command.summary);
  command.declare(args);
  return args;
}

}  // namespace oxbow::tools
