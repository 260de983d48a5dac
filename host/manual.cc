#include "host/manual.h"

#include <algorithm>

namespace oxbow {
namespace {

constexpr const char* kDate = "November 18, 2026";

constexpr size_t kLineBytes = 78;

/// Text of a page in short lines: none begins with a control character, no backslash means anything.
std::string roff(const std::string& text) {
  std::string out, line;
  const auto end_line = [&] {
    if (line.starts_with(".") || line.starts_with("'")) out += "\\&";
    out += line;
    line.clear();
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (!line.empty() && line.size() + 1 + end - begin > kLineBytes) {
      end_line();
      out += "\n";
    }
    if (!line.empty()) line += " ";
    for (const char c : text.substr(begin, end - begin)) {
      line += c == '\\' ? std::string("\\e") : std::string(1, c);
    }
    begin = end + 1;
  }
  end_line();
  return out;
}

/// Text in an argument of a macro: what mdoc would take as a macro or a delimiter is text.
std::string word(const std::string& text) {
  std::string out = "\"\\&";
  for (const char c : text) out += c == '"' ? "\\(dq" : c == '\\' ? "\\e" : std::string(1, c);
  return out + "\"";
}

std::string page_name(std::string program) {
  std::replace(program.begin(), program.end(), ' ', '-');
  return program;
}

std::string head(const std::string& name, const std::string& summary) {
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return std::string(".Dd ") + kDate + "\n.Dt " + upper + " 1\n.Os\n.Sh NAME\n.Nm " + name +
         "\n.Nd " + roff(summary) + "\n";
}

std::string foot(std::vector<std::string> see_also) {
  std::string out =
      ".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nAll is well.\n.It 1\nA check that was asked for "
      "failed.\n.It 2\nThe command line is wrong.\n.It 3\nA file or text that was given is "
      "wrong.\n.It 130\nSomebody interrupted it.\n.El\n.Sh SEE ALSO\n";
  std::sort(see_also.begin(), see_also.end());
  for (size_t i = 0; i < see_also.size(); ++i) {
    out += ".Xr " + see_also[i] + " 1" + (i + 1 < see_also.size() ? " ,\n" : "\n");
  }
  return out;
}

/// Values that are names of files, by what --help calls them.
bool is_file(const Args::Declared& declared) {
  const std::string& name = declared.value_name;
  for (const char* part : {"FILE", "DIR", "EXTRA", ".oxb", ".safetensors", "file"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> names_of(const Args::Declared& option) {
  std::vector<std::string> names = {"--" + option.name};
  if (!option.alias.empty()) names.push_back("--" + option.alias);
  if (option.letter != 0) names.push_back(std::string("-") + option.letter);
  return names;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string function_of(std::string program) {
  std::replace(program.begin(), program.end(), '-', '_');
  return "_" + program;
}

/// The names of options in three lists: all, those with files, those with other values.
std::string bash_lists(const Args& args, const std::string& indent) {
  std::vector<std::string> all = {"--help"}, files, values;
  for (const Args::Declared& option : args.options()) {
    for (const std::string& name : names_of(option)) {
      if (name.starts_with("--")) all.push_back(name);
      if (option.takes_value()) (is_file(option) ? files : values).push_back(name);
    }
  }
  return indent + "options='" + joined(all, " ") + "'\n" + indent + "files=' " +
         joined(files, " ") + " '\n" + indent + "values=' " + joined(values, " ") + " '\n";
}

/// Between single quotes, in a specification of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += {'\\', c};
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_arguments(const Args& args, const std::string& indent) {
  std::string out = indent + "_arguments -s -S";
  const auto add = [&](const std::string& spec) { out += " \\\n" + indent + "  '" + spec + "'"; };
  for (const Args::Declared& option : args.options()) {
    for (const std::string& name : names_of(option)) {
      add((option.repeated ? "*" : "") + name + "[" + zsh_text(option.help) + "]" +
          (option.takes_value()
               ? ":" + zsh_text(option.value_name) + ":" + (is_file(option) ? "_files" : "")
               : ""));
    }
  }
  add("(-h --help)--help[print this and exit]");
  size_t place = 0;
  for (const Args::Declared& positional : args.positionals()) {
    add((positional.repeated ? "*" : std::to_string(++place)) + (positional.required ? ":" : "::") +
        zsh_text(positional.name) + ":" + (is_file(positional) ? "_files" : ""));
  }
  return out + "\n";
}

}  // namespace

std::string manual_page(const Args& args, const std::vector<std::string>& see_also,
                        const std::vector<ManualSection>& sections) {
  const std::string name = page_name(args.program());
  std::string summary = args.summary();
  while (!summary.empty() && summary.back() == '.') summary.pop_back();
  std::string out = head(name, summary) + ".Sh SYNOPSIS\n.Nm " + args.program() + "\n";
  for (const Args::Declared& p : args.positionals()) {
    out += (p.required ? ".Ar " : ".Op Ar ") + word(p.name) + (p.repeated ? " ...\n" : "\n");
  }
  out += ".Op Ar options\n.Sh DESCRIPTION\n.Bl -tag -width Ds\n";
  for (const Args::Declared& p : args.positionals()) {
    out += ".It Ar " + word(p.name) + "\n" + roff(p.help) + ".\n";
  }
  for (const Args::Declared& o : args.options()) {
    const std::string value = o.takes_value() ? " Ar " + word(o.value_name) : "";
    std::string item;
    if (o.letter != 0) item += std::string("Fl ") + o.letter + value + " , ";
    item += "Fl -" + o.name + value;
    if (!o.alias.empty()) item += " , Fl -" + o.alias + value;
    out += ".It " + item + "\n" + roff(o.help) + ".\n";
  }
  out += ".It Fl h , Fl -help\nPrint this and exit.\n.El\n";
  for (const ManualSection& section : sections) {
    out += ".Ss " + section.title + "\n" + roff(section.text) + "\n";
  }
  return out + foot(see_also);
}

std::string manual_of_commands(const std::string& program, const std::string& summary,
                               const std::vector<std::pair<std::string, std::string>>& commands,
                               const std::vector<std::string>& see_also) {
  std::string out = head(program, summary) + ".Sh SYNOPSIS\n.Nm " + program +
                    "\n.Ar command\n.Ar model.oxb\n.Op Ar options\n.Sh DESCRIPTION\n.Bl -tag "
                    "-width Ds\n";
  std::vector<std::string> pages = see_also;
  for (const auto& [name, help] : commands) {
    out += ".It Cm " + name + "\n" + roff(help) + ".\n";
    pages.push_back(program + "-" + name);
  }
  return out + ".El\n" + foot(pages);
}

std::string bash_completion(const std::string& program, const std::vector<Completed>& all) {
  const std::string function = function_of(program);
  std::string out = "# bash completion for " + program + ", made from its tables of options\n" +
                    function +
                    "() {\n"
                    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "  local options='--help --version' files=' ' values=' '\n"
                    "  COMPREPLY=()\n";
  if (all.size() == 1 && all[0].command.empty()) {
    out += bash_lists(*all[0].args, "  ");
  } else {
    std::vector<std::string> names;
    for (const Completed& each : all) names.push_back(each.command);
    out +=
        "  if [ \"$COMP_CWORD\" -eq 1 ] && [[ $cur != -* ]]; then\n"
        "    mapfile -t COMPREPLY < <(compgen -W '" +
        joined(names, " ") +
        "' -- \"$cur\")\n"
        "    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
    for (const Completed& each : all) {
      out += "    " + each.command + ")\n" +
             (each.args != nullptr ? bash_lists(*each.args, "      ") : "") + "      ;;\n";
    }
    out += "  esac\n";
  }
  return out +
         "  if [[ $values == *\" $prev \"* ]]; then return; fi\n"
         "  if [[ $cur == -* && $files != *\" $prev \"* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "  else\n"
         "    compopt -o filenames 2> /dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -F " +
         function + " " + program + "\n";
}

std::string zsh_completion(const std::string& program, const std::vector<Completed>& all) {
  std::string out = "#compdef " + program + "\n# Made from the program's tables of options.\n";
  if (all.size() == 1 && all[0].command.empty()) return out + zsh_arguments(*all[0].args, "");
  out += "local -a commands\ncommands=(\n";
  for (const Completed& each : all) {
    out += "  '" + each.command + ":" + zsh_text(each.help) + "'\n";
  }
  out +=
      ")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  return\nfi\n"
      "local command=$words[2]\n"
      // _arguments counts from the word in front of the first argument.
      "shift words\n(( CURRENT-- ))\ncase $command in\n";
  for (const Completed& each : all) {
    out += "  " + each.command + ")\n" +
           (each.args != nullptr ? zsh_arguments(*each.args, "    ") : "    _files\n") + "    ;;\n";
  }
  return out + "esac\n";
}

}  // namespace oxbow
