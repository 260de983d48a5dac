// The command line as people feel it: pipes, Ctrl-C, a terminal, what is tried before work begins, and words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "converter/importers.h"
#include "host/testing/paths.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/terminal.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class CliAlive : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    with_vocabulary(256).write(*directory_ / "bytes");
    bytes_ = convert(*directory_ / "bytes", *directory_ / "bytes.oxb",
                     {"--tokenizer", "byte", "--max-segment", "8"});
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string path(const char* name) { return (*directory_ / name).string(); }
  static std::string text_of(const std::string& file) {
    const std::vector<std::byte> bytes = read_bytes(file);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static CommandResult piped(const Words& words, const std::string& input) {
    PipedProgram program("oxbow", words);
    EXPECT_TRUE(program.write(input));
    return program.finish();
  }
  /// Interrupts it once it has begun, which its options make it take hours.
  static CommandResult interrupted(const Words& words) {
    PipedProgram program("oxbow", words);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    program.interrupt();
    return program.finish();
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string bytes_;
};

// ---- The prompt ---------------------------------------------------------------------------------

TEST_F(CliAlive, APromptComesFromAnOptionAPlaceAPipeOrAFile) {
  const std::string expected =
      oxbow({"run", bytes_, "--prompt", "hello", "--tokens", "20", "--seed", "3"}).out;
  EXPECT_EQ(oxbow({"run", bytes_, "hello", "-n", "20", "--seed", "3"}).out, expected);
  EXPECT_EQ(oxbow({"run", bytes_, "-p", "hello", "-n", "20", "--seed", "3", "-t", "2"}).out,
            expected);
  EXPECT_EQ(piped({"run", bytes_, "-n", "20", "--seed", "3"}, "hello").out, expected);
  // Only where nothing else was given: it may have ended before anything is written to it.
  PipedProgram program("oxbow", {"run", bytes_, "hello", "-n", "20", "--seed", "3"});
  (void)program.write("other");
  EXPECT_EQ(program.finish().out, expected);
  EXPECT_EQ(oxbow({"run", bytes_, "hello", "--prompt", "hello"}).exit_code, 2);
}

TEST_F(CliAlive, AFifoIsReadWhereSomebodyWritesAndElseRefused) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const Words& words :
       {Words{"run", bytes_, "--file", fifo}, Words{"eval", bytes_, "--text", fifo},
        Words{"tokenize", bytes_, "--file", fifo}}) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 3);
    expect_one_line(result, "a FIFO to which nobody writes");
  }
  // What a shell puts in the place of a command's output.
  const std::string command = "bash -c '" + program_dir() + "/oxbow run " + bytes_ +
                              " --file <(sleep 0.2; printf hello) -n 20 --seed 3 2> /dev/null'";
  std::FILE* const shell = ::popen(command.c_str(), "r");
  ASSERT_NE(shell, nullptr);
  std::string out;
  for (int byte = 0; (byte = std::fgetc(shell)) != EOF;) out.push_back(static_cast<char>(byte));
  EXPECT_EQ(::pclose(shell), 0);
  EXPECT_EQ(out, oxbow({"run", bytes_, "hello", "-n", "20", "--seed", "3"}).out);
}

TEST_F(CliAlive, WhatCallsItselfARegularFileIsNotWaitedFor) {
  const char* const log = "/proc/kmsg";
  if (::access(log, R_OK) != 0) GTEST_SKIP() << log << " cannot be read here";
  const CommandResult result = oxbow({"tokenize", bytes_, "--file", log});
  // An empty log at once; one with lines behind them.
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("cannot read /proc/kmsg"));
}

TEST_F(CliAlive, EchoAndJsonTellThePromptToo) {
  const std::string text = oxbow({"run", bytes_, "hello", "-n", "9"}).out;
  EXPECT_EQ(oxbow({"run", bytes_, "hello", "-n", "9", "--echo"}).out, "hello" + text);
  EXPECT_EQ(piped({"run", bytes_, "-n", "9", "--echo"}, "hello").out, "hello" + text);
  const CommandResult result = oxbow({"run", bytes_, "hello", "-n", "9", "--json"});
  EXPECT_EQ(result.err, "");
  const json report = json::parse(result.out);
  EXPECT_EQ(report["format"], 1);
  EXPECT_EQ(report["prompt"], "hello");
  EXPECT_EQ(report["prompt_tokens"], 5);
  EXPECT_EQ(report["tokens"].size(), 9u);
  EXPECT_EQ(report["end"], "tokens");
  EXPECT_THAT(oxbow({"run", bytes_, "a", "-n", "1", "--temperature", "0.7", "--json"}).out,
              HasSubstr("\"temperature\": 0.7,"));
}

TEST_F(CliAlive, ATextThatWasSavedIsLoaded) {
  const std::string state = path("state");
  // Tokens, as the bytes of a character may come from both sides of the cut.
  const auto tokens = [](Words words) {
    words.push_back("--json");
    return json::parse(oxbow(words).out)["tokens"].get<std::vector<int>>();
  };
  std::vector<int> both = tokens({"run", bytes_, "a", "-n", "11", "--save", state});
  for (const char* option : {"--load", "--resume"}) {
    const std::vector<int> rest = tokens({"run", bytes_, "-n", "19", option, state});
    EXPECT_EQ(rest.size(), 19u);
    if (both.size() == 11) both.insert(both.end(), rest.begin(), rest.end());
  }
  EXPECT_EQ(both, tokens({"run", bytes_, "a", "-n", "30"}));
  // What was read and written before is not told as this program's work.
  const std::string told = oxbow({"run", bytes_, "-n", "19", "--load", state}).err;
  EXPECT_THAT(told, HasSubstr("generated 19 tokens, "));
  EXPECT_THAT(told, Not(HasSubstr("prompt")));
}

// ---- Ctrl-C -------------------------------------------------------------------------------------

TEST_F(CliAlive, CtrlCInABenchmarkKeepsWhatWasMeasured) {
  const CommandResult result =
      interrupted({"bench", bytes_, "--stream", "1000000000", "--json", "--html", path("b.html")});
  EXPECT_EQ(result.exit_code, 130) << result.err;
  const json stream = json::parse(result.out)["stream"];
  EXPECT_TRUE(stream["stopped_early"]);
  EXPECT_GT(stream["tokens"], 0);
  // One stretch of many: nothing says that its end is as quick as its beginning.
  ASSERT_EQ(stream["blocks"].size(), 1u);
  EXPECT_FALSE(stream.contains("last_over_first_median"));
  EXPECT_THAT(text_of(path("b.html")), HasSubstr("\"stream\":{"));
}

TEST_F(CliAlive, CtrlCInAnEvaluationJudgesWhatWasRead) {
  std::ofstream file(path("long.txt"));
  for (int i = 0; i < 2'000'000; ++i) file << "abcdefgh\n";
  file.close();
  const CommandResult result = interrupted({"eval", bytes_, "--text", path("long.txt"), "--json"});
  EXPECT_EQ(result.exit_code, 130) << result.err;
  const json report = json::parse(result.out);
  EXPECT_TRUE(report["interrupted"]);
  // Bytes are tokens here: what was counted is what was fed.
  EXPECT_EQ(report["models"][0]["tokens"], report["models"][0]["bytes"]);
}

TEST_F(CliAlive, CtrlCInATextEndsItAndSaysSo) {
  const CommandResult result = interrupted({"run", bytes_, "a", "-n", "1000000000"});
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("generated "));
}

// ---- Before the work ----------------------------------------------------------------------------

TEST_F(CliAlive, PathsAreTriedBeforeTheWork) {
  const auto refused = [&](const Words& words) {
    const auto start = std::chrono::steady_clock::now();
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 3) << result.err;
    expect_one_line(result, "cannot write");
    EXPECT_EQ(result.out, "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  };
  const std::string nowhere = path("none/file"), folder = directory_->path().string();
  for (const std::string& bad : {nowhere, folder}) {
    refused({"bench", bytes_, "--stream", "1000000000", "--html", bad});
    refused({"bench", bytes_, "--stream", "1000000000", "--profile-csv", bad});
    refused({"run", bytes_, "a", "-n", "1000000000", "--save", bad});
  }
  EXPECT_FALSE(std::filesystem::exists(nowhere));
}

// ---- Words --------------------------------------------------------------------------------------

TEST_F(CliAlive, MessagesHaveSizesAndNumbersPeopleRead) {
  EXPECT_THAT(oxbow({"run", bytes_, "-n", "x"}).err, Not(HasSubstr("18446744073709551615")));
  EXPECT_THAT(oxbow({"run", bytes_, "--memory", "x"}).err, Not(HasSubstr("18446744073709551615")));
  EXPECT_THAT(oxbow({"eval", bytes_, "--jso"}).err, HasSubstr("did you mean --json?"));
  EXPECT_THAT(oxbow({"tokenize", bytes_, "--stpo"}).err, Not(HasSubstr("did you mean")));
  const CommandResult one = oxbow({"run", bytes_, "a", "-n", "1"});
  EXPECT_THAT(one.err, HasSubstr("prompt 1 token,"));
  EXPECT_THAT(one.err, HasSubstr("generated 1 token;"));
  EXPECT_THAT(one.err, HasSubstr("iB; resident"));
  EXPECT_THAT(oxbow({"bench", bytes_, "--decode", "2"}).out, HasSubstr("KiB ("));
}

TEST_F(CliAlive, TheListOfTypesIsSpelledAsConfigurationsSpellThem) {
  const std::vector<std::string> types = convert::supported_model_types();
  EXPECT_THAT(types, ::testing::Contains("transfo-xl"));
  EXPECT_THAT(types, Not(::testing::Contains("transfo_xl")));
  EXPECT_THAT(run_program("oxbow-convert", {"--list"}).out, HasSubstr("\ntransfo-xl\n"));
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_dir() + "/tests/golden")) {
    if (entry.path().filename() != "config.json") continue;
    const json config = json::parse(text_of(entry.path().string()), nullptr, false);
    if (!config.is_object() || !config.contains("model_type")) continue;
    EXPECT_THAT(types, ::testing::Contains(config["model_type"].get<std::string>()))
        << entry.path();
  }
}

TEST_F(CliAlive, ConvertIsACommandToo) {
  EXPECT_EQ(oxbow({"convert", "--list"}).out, run_program("oxbow-convert", {"--list"}).out);
  EXPECT_EQ(oxbow({"convert"}).exit_code, 2);
}

// ---- Busy machines ------------------------------------------------------------------------------

TEST_F(CliAlive, AStreamIsJudgedInTurnsByProcessorTime) {
  const json report = json::parse(oxbow({"bench", bytes_, "--stream", "20000", "--json"}).out);
  const json& turns = report["stream"]["turns"];
  EXPECT_GT(turns["turns"], 2);
  EXPECT_LT(turns["early_position"], turns["late_position"]);
  EXPECT_EQ(turns["late_position"], 20000 + report["stream"]["warmup_tokens"].get<uint64_t>());
  EXPECT_GT(turns["early_processor_seconds"], 0.0);
  // Whatever else the machine does: nothing but the position differs.
  EXPECT_NEAR(turns["late_over_early_processor"].get<double>(), 1.0, 0.25);
  EXPECT_GE(report["involuntary_switches"], 0);
}

TEST_F(CliAlive, ABusyMachineIsTold) {
  const TemporaryDirectory machine;
  std::filesystem::create_directories(machine / "proc");
  const auto stat = [&](unsigned long long user) {
    std::ofstream(machine / "proc/stat") << "cpu  " << user << " 0 0 9 9 0 0 0 0 0\ncpu0 1 2\n";
  };
  stat(1000);
  ::setenv("OXB_DEVICE_ROOT", machine.path().c_str(), 1);
  const CommandResult quiet = oxbow({"bench", bytes_, "--decode", "3"});
  EXPECT_THAT(quiet.out, HasSubstr("quiet: 0 % of a core for other programs"));
  PipedProgram program("oxbow", {"bench", bytes_, "--decode", "10000000", "--max-seconds", "3"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  stat(100'000'000);
  EXPECT_THAT(program.finish().out, HasSubstr("this machine was busy: "));
  std::ofstream(machine / "proc/stat") << "cpu  1 2\n";
  EXPECT_THAT(oxbow({"bench", bytes_, "--decode", "3"}).out, Not(HasSubstr("of a core")));
  ::unsetenv("OXB_DEVICE_ROOT");
}

// ---- A terminal ---------------------------------------------------------------------------------

TEST_F(CliAlive, WhoGivesNoPromptIsAskedForOne) {
  TerminalProgram program("oxbow", {"run", bytes_, "-n", "5", "--temperature", "0"},
                          {"TERM=xterm", "NO_COLOR="});
  ASSERT_TRUE(program.wait_for("/help tells")) << program.shown();
  ASSERT_TRUE(program.wait_for("> "));
  // Left twice and an insertion: "abc".
  program.type("ac\033[Db\r");
  ASSERT_TRUE(program.wait_for("abc")) << program.shown();
  ASSERT_TRUE(program.wait_for("> "));
  program.type("/stats\r");
  ASSERT_TRUE(program.wait_for("prompt 3 tokens")) << program.shown();
  ASSERT_TRUE(program.wait_for("arena "));
  program.type("/undo\r/stats\r/undo\r");
  ASSERT_TRUE(program.wait_for("taken back: at position 0")) << program.shown();
  // What was not measured is not told as nothing per second.
  ASSERT_TRUE(program.wait_for("position 0; prompt 0 tokens; answer 0 tokens")) << program.shown();
  ASSERT_TRUE(program.wait_for("there is no turn to take back")) << program.shown();
  // What was typed comes back with the arrow.
  program.type("\033[A\033[A\033[A\033[A\033[A");
  ASSERT_TRUE(program.wait_for("abc")) << program.shown();
  program.type("\003/save " + path("typed.state") + "\r");
  ASSERT_TRUE(program.wait_for("saved, ")) << program.shown();
  program.type("/load " + path("none") + "\r");
  ASSERT_TRUE(program.wait_for("none")) << program.shown();
  program.type("/load " + path("typed.state") + "\r");
  ASSERT_TRUE(program.wait_for("loaded: at position 0")) << program.shown();
  program.type("/reset\r/unod\r");
  ASSERT_TRUE(program.wait_for("begun anew: at position 0")) << program.shown();
  ASSERT_TRUE(program.wait_for("did you mean /undo?")) << program.shown();
  // Until it asks again the terminal would take this key for itself.
  ASSERT_TRUE(program.wait_for("> "));
  program.type("\004");
  EXPECT_EQ(program.finish(), 0) << program.shown();
  EXPECT_THAT(program.shown(), HasSubstr("\033[1;36m> "));
}

TEST_F(CliAlive, APipeThatTakesLongIsToldAndIsNoSpeed) {
  // Something comes all the time, and never as much as is read at once.
  const std::string line =
      "{ for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf ab; sleep 0.2; done; } | " + emulator() +
      " " + program_dir() + "/oxbow run " + bytes_ + " -n 1";
  TerminalProgram program("/bin/sh", {"-c", line}, {"TERM=xterm", "NO_COLOR=1"});
  ASSERT_TRUE(program.wait_for("waiting for standard input: ")) << program.shown();
  ASSERT_TRUE(program.wait_for("prompt 24 tokens, ")) << program.shown();
  EXPECT_EQ(program.finish(), 0);
  // More than two seconds were waited: 24 tokens in them would be ten a second.
  const std::string told = program.shown().substr(program.shown().find("24 tokens, ") + 11);
  EXPECT_GT(std::stod(told), 100.0) << told;
  EXPECT_THAT(program.shown().substr(0, program.shown().find("prompt 24")), Not(HasSubstr("/s")));
}

TEST_F(CliAlive, ThereAreNoColoursWhereTheyAreNotWanted) {
  TerminalProgram program("oxbow", {"run", bytes_, "a", "-n", "5"}, {"NO_COLOR=1", "TERM=xterm"});
  EXPECT_EQ(program.finish(), 0);
  EXPECT_THAT(program.shown(), Not(HasSubstr("\033[2m")));
  TerminalProgram coloured("oxbow", {"run", bytes_, "a", "-n", "5"}, {"NO_COLOR=", "TERM=xterm"});
  EXPECT_EQ(coloured.finish(), 0);
  EXPECT_THAT(coloured.shown(), HasSubstr("\033[2m"));
  EXPECT_THAT(oxbow({"run", bytes_, "a", "-n", "5"}).err, Not(HasSubstr("\033")));
}

TEST_F(CliAlive, CtrlCEndsAnAnswerAndNotTheTalk) {
  TerminalProgram program("oxbow", {"run", bytes_, "-n", "1000000000", "--seed", "4"},
                          {"TERM=dumb"});
  ASSERT_TRUE(program.wait_for("> "));
  program.type("ab\r");
  ASSERT_TRUE(program.wait_for("ab\r\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.type("\003");
  ASSERT_TRUE(program.wait_for("\r\n\r\033[K> "));
  program.type("/stats\r");
  ASSERT_TRUE(program.wait_for("position "));
  program.type("/quit\r");
  EXPECT_EQ(program.finish(), 0);
}

/// The rows of a terminal on which `shown` was written: what it does with the few sequences that are written to it.
std::vector<std::string> rows_of(const std::string& shown, size_t columns) {
  std::vector<std::string> rows(1);
  size_t column = 0;
  for (size_t i = 0; i < shown.size(); ++i) {
    const char byte = shown[i];
    size_t count = 0, end = i + 2;
    if (byte == '\n') {
      rows.emplace_back();
      column = 0;
    } else if (byte == '\r') {
      column = 0;
    } else if (byte == '\033') {
      for (; end < shown.size() && shown[end] >= '0' && shown[end] <= '9'; ++end) {
        count = count * 10 + static_cast<size_t>(shown[end] - '0');
      }
      if (end < shown.size() && shown[end] == 'D') column -= std::min(column, count);
      if (end < shown.size() && shown[end] == 'K') rows.back().resize(column);
      i = end;
    } else {
      if (column == columns) {
        rows.emplace_back();
        column = 0;
      }
      rows.back().resize(std::max(rows.back().size(), column + 1), ' ');
      rows.back()[column++] = byte;
    }
  }
  return rows;
}

TEST_F(CliAlive, NoWordIsCutWhereATerminalsRowEnds) {
  // Rows of 80: in none of 79 does the last word end where the row does.
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += std::string(static_cast<size_t>(3 + i % 17), 'w') + " ";
  prompt += std::string(200, 'x');
  TerminalProgram program("oxbow", {"run", bytes_, prompt, "-n", "0", "--echo"},
                          {"TERM=xterm", "NO_COLOR=1"});
  EXPECT_EQ(program.finish(), 0);
  std::vector<std::string> rows = rows_of(program.shown(), 80), words;
  size_t full = 0;
  for (const std::string& row : rows) {
    full += row.size() == 79;
    if (row.find("prompt ") == 0) break;  // What is told at the end.
    std::istringstream stream(row);
    for (std::string word; stream >> word;) words.push_back(word);
  }
  std::istringstream stream(prompt);
  for (size_t i = 0; i < 100; ++i) {
    std::string word;
    stream >> word;
    ASSERT_LT(i, words.size());
    EXPECT_EQ(words[i], word) << i;
  }
  // A word that no row has room for fills two.
  EXPECT_GE(full, 2u);
  // A pipe gets the bytes as they are.
  EXPECT_EQ(oxbow({"run", bytes_, prompt, "-n", "0", "--echo"}).out, prompt);
}

TEST_F(CliAlive, ATerminalObeysNothingThatATextSays) {
  const std::string hostile =
      "a\033[2Jb\033]0;title\007c\xc2\x9b"
      "31md\re\xe2\x80\xae"
      "f";
  for (const char* kind : {"TERM=xterm", "TERM=dumb"}) {
    TerminalProgram program("oxbow", {"run", bytes_, hostile, "-n", "0", "--echo"},
                            {kind, "NO_COLOR=1"});
    EXPECT_EQ(program.finish(), 0);
    const std::string mark = "\xef\xbf\xbd";
    EXPECT_THAT(program.shown(), ::testing::StartsWith("a" + mark + "[2Jb" + mark + "]0;title" +
                                                       mark + "c" + mark + "31mde" + mark + "f"));
  }
  EXPECT_EQ(oxbow({"run", bytes_, hostile, "-n", "0", "--echo"}).out, hostile);
}

}  // namespace
}  // namespace oxbow::testing
