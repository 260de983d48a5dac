#pragma once

// The subcommands: argv[0] is the program, argv[1] the subcommand. They return an exit code or
// throw what host/errors.h declares.

namespace oxbow::tools {

int run_command(int argc, char** argv);
int chat_command(int argc, char** argv);
int tokenize_command(int argc, char** argv);
int bench_command(int argc, char** argv);
int inspect_command(int argc, char** argv);
int verify_command(int argc, char** argv);
int eval_command(int argc, char** argv);
int embed_command(int argc, char** argv);
int index_command(int argc, char** argv);

}  // namespace oxbow::tools
