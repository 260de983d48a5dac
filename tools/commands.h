#pragma once

// The subcommands in one table: the program, --help, the manual and completion are made from it. They return an exit
// code or throw what host/errors.h declares.

#include <span>

#include "host/args.h"

namespace oxbow::tools {

struct Command {
  const char* name;
  /// In the list of commands.
  const char* help;
  /// Of its own --help.
  const char* summary;
  void (*declare)(Args& args);
  int (*run)(const Args& args);
};
std::span<const Command> commands();

/// Its arguments, declared.
Args args_of(const Command& command);

void declare_run(Args& args);
void declare_chat(Args& args);
void declare_tokenize(Args& args);
void declare_bench(Args& args);
void declare_inspect(Args& args);
void declare_verify(Args& args);
void declare_eval(Args& args);
void declare_embed(Args& args);
void declare_index(Args& args);

int run_command(const Args& args);
int chat_command(const Args& args);
int tokenize_command(const Args& args);
int bench_command(const Args& args);
int inspect_command(const Args& args);
int verify_command(const Args& args);
int eval_command(const Args& args);
int embed_command(const Args& args);
int index_command(const Args& args);

}  // namespace oxbow::tools
