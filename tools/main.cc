// oxbow: the command line for model files, written as any user of the library would.

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host/args.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/manual.h"
#include "runtime/api/oxbow.h"
#include "tools/commands.h"

namespace oxbow::tools {
namespace {

constexpr const char* kSummary =
    "runs long-context transformers in a memory that is fixed before the first token";
/// Not about a model file, so not among the commands: help and version, and these.
constexpr const char* kConvert = "convert";
constexpr const char* kConvertHelp = "turn a checkpoint into a model file, as oxbow-convert does";

void print_help(std::FILE* out) {
  std::fprintf(out, "usage: oxbow COMMAND model.oxb [options]\n%s\n\n", kSummary);
  std::fprintf(out, "  %-10s%s\n", kConvert, kConvertHelp);
  for (const Command& command : commands())
    std::fprintf(out, "  %-10s%s\n", command.name, command.help);
  std::fputs(
      "\n  oxbow COMMAND --help tells the options of one command; oxbow --version the version\n"
      "  oxbow man [COMMAND] prints a manual page, oxbow completion bash|zsh what a shell wants\n",
      out);
}

/// Becomes oxbow-convert: the one beside this program, or any on the path.
[[noreturn]] void become_converter(char** argv) {
  std::string beside(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", beside.data(), beside.size());
  if (length > 0) {
    beside.resize(static_cast<size_t>(length));
    beside = beside.substr(0, beside.rfind('/') + 1) + "oxbow-convert";
    std::vector<char*> words(argv + 1, argv + 1);
    words.push_back(beside.data());
    for (char** word = argv + 2; *word != nullptr; ++word) words.push_back(*word);
    words.push_back(nullptr);
    ::execv(beside.c_str(), words.data());
    words[0] = beside.data() + beside.rfind('/') + 1;
    ::execvp("oxbow-convert", words.data());
  }
  throw InputError(std::string("oxbow-convert is neither beside this program nor on the path: ") +
                   std::strerror(errno));
}

const Command* find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::string manual_of(const Command& command) {
  return manual_page(args_of(command), {"oxbow", "oxbow-convert"});
}

std::string manual_of_all() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Command& command : commands()) list.emplace_back(command.name, command.help);
  return manual_of_commands("oxbow", kSummary, list, {"oxbow-convert"});
}

/// Of one command or of all of them; --all DIR writes every page into a directory, as an installation wants them.
int print_manual(const std::string& name, const std::string& directory) {
  if (name == "--all") {
    if (directory.empty()) throw UsageError("man --all needs a directory");
    write_atomically(directory + "/oxbow.1", manual_of_all());
    for (const Command& command : commands()) {
      write_atomically(directory + "/oxbow-" + command.name + ".1", manual_of(command));
    }
    return kExitGood;
  }
  const Command* command = find_command(name);
  if (command == nullptr && !name.empty()) {
    throw UsageError("command '" + printable(name) + "' has no manual page");
  }
  std::fputs((command != nullptr ? manual_of(*command) : manual_of_all()).c_str(), stdout);
  return kExitGood;
}

int print_completion(const std::string& shell) {
  std::vector<Args> args;
  args.reserve(commands().size());
  std::vector<Completed> all = {{kConvert, kConvertHelp, nullptr}};
  for (const Command& command : commands()) {
    args.push_back(args_of(command));
    all.push_back({command.name, command.help, &args.back()});
  }
  if (shell != "bash" && shell != "zsh") throw UsageError("completion is for bash or zsh");
  std::fputs((shell == "bash" ? bash_completion : zsh_completion)("oxbow", all).c_str(), stdout);
  return kExitGood;
}

int dispatch(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(stdout);
    return kExitGood;
  }
  if (word == "--version") {
    const unsigned version = oxb_version();
    std::printf("oxbow %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
    return kExitGood;
  }
  if (word == kConvert) become_converter(argv);
  if (word == "man") return print_manual(second, argc > 3 ? argv[3] : "");
  if (word == "completion") return print_completion(second);
  if (const Command* command = find_command(word)) {
    Args args = args_of(*command);
    args.parse(argc, argv, 2);
    if (!args.help_wanted()) return command->run(args);
    std::fputs(args.help().c_str(), stdout);
    return kExitGood;
  }
  std::vector<std::string> names = {kConvert};
  for (const Command& command : commands()) names.push_back(command.name);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (word.empty()) throw UsageError("the command is missing; expected one of " + list);
  const std::string guess = closest_match(word, names);
  throw UsageError("command '" + printable(word) + "' is unknown; " +
                   (guess.empty() ? "expected one of " + list : "did you mean " + guess + "?"));
}

}  // namespace
}  // namespace oxbow::tools

int main(int argc, char** argv) {
  // The name in front of messages is "oxbow run" where there is a command.
  std::string program = "oxbow";
  if (argc > 1 && oxbow::tools::find_command(argv[1]) != nullptr)
    program += std::string(" ") + argv[1];
  return oxbow::run_program(program, oxbow::tools::dispatch, argc, argv);
}
