#pragma once

// Manual pages and completion for shells, from what a program declares for --help.

#include <string>
#include <utility>
#include <vector>

#include "host/args.h"

namespace oxbow {

struct ManualSection {
  std::string title, text;
};

/// A page for man(1), in mdoc. "oxbow run" is called oxbow-run(1).
std::string manual_page(const Args& args, const std::vector<std::string>& see_also,
                        const std::vector<ManualSection>& sections = {});

/// A page about a program that has commands: name and help of each, every one with a page of its own.
std::string manual_of_commands(const std::string& program, const std::string& summary,
                               const std::vector<std::pair<std::string, std::string>>& commands,
                               const std::vector<std::string>& see_also);

/// The arguments of a program, or of one of its commands.
struct Completed {
  /// Empty: the program has no commands.
  std::string command;
  std::string help;
  const Args* args = nullptr;
};

/// A script for bash-completion, and a function for zsh's fpath.
std::string bash_completion(const std::string& program, const std::vector<Completed>& all);
std::string zsh_completion(const std::string& program, const std::vector<Completed>& all);

}  // namespace oxbow
