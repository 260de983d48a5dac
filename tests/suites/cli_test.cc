// The command line as users and scripts meet it: what it prints, what it refuses, its exit codes.

#include "tests/support/cli.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/testing/paths.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/text/utf8.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// ---- run ----------------------------------------------------------------------------------------

class CliText : public ::testing::Test {
 protected:
  static constexpr uint32_t kSegment = 8;

  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    with_vocabulary(256).write(*directory_ / "bytes");
    bytes_ = convert(*directory_ / "bytes", *directory_ / "bytes.oxb",
                     {"--tokenizer", "byte", "--max-segment", std::to_string(kSegment)});
    bytes_f32_ = convert(*directory_ / "bytes", *directory_ / "bytes_f32.oxb",
                         {"--tokenizer", "byte", "--weights", "f32", "--max-segment", "16"});
    TinyCheckpoint().write(*directory_ / "chars");
    write_text(*directory_ / "vocabulary.json", "[\"\\n\", \"a\", \"b\", \"é\", \"€\"]");
    chars_ = convert(*directory_ / "chars", *directory_ / "chars.oxb",
                     {"--tokenizer", (*directory_ / "vocabulary.json").string()});
    silent_ = convert(*directory_ / "chars", *directory_ / "silent.oxb", {});
  }
  static void TearDownTestSuite() { delete directory_; }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string bytes_, bytes_f32_, chars_, silent_;
};

TEST_F(CliText, TheSameSeedGivesTheSameText) {
  const Words words = {"run", bytes_, "--prompt", "Once", "--tokens", "100", "--seed", "5"};
  const CommandResult first = oxbow(words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_GE(first.out.size(), 100u);
  EXPECT_EQ(oxbow(words).out, first.out);
  Words others = words;
  others.back() = "6";
  EXPECT_NE(oxbow(others).out, first.out);
  others = words;
  others.insert(others.end(), {"--threads", "3"});
  EXPECT_EQ(oxbow(others).out, first.out);
  others = words;
  others.insert(others.end(), {"--backend", "reference"});
  EXPECT_EQ(oxbow(others).out, first.out);
}

TEST_F(CliText, TheSummaryIsOneLine) {
  const CommandResult result = oxbow({"run", bytes_, "--prompt", "abc", "--tokens", "5"});
  EXPECT_EQ(result.err.find("prompt 3 tokens"), 0u) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const char* part : {"generated 5 tokens", "arena", "resident"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
}

TEST_F(CliText, ALongPromptIsThePiecesOneAfterAnother) {
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += static_cast<char>('!' + i * 7 % 90);
  for (const size_t length : {1u, 7u, 8u, 9u, 16u, 17u, 100u}) {
    const std::string text = prompt.substr(0, length);
    // The same through the library, piece by piece.
    const oxb::Expected<oxb::Model> model = oxb::Model::open(bytes_.c_str());
    ASSERT_TRUE(model.ok()) << model.status().text();
    oxb::Expected<oxb::Session> session = oxb::Session::create(*model);
    ASSERT_TRUE(session.ok()) << session.status().text();
    std::vector<float> logits(256);
    for (size_t at = 0; at < text.size(); at += kSegment) {
      std::vector<int32_t> ids;
      for (const char c : text.substr(at, kSegment)) ids.push_back(static_cast<unsigned char>(c));
      ASSERT_TRUE(session->run(ids, logits).ok());
    }
    std::string expected;
    for (int i = 0; i < 20; ++i) {
      const auto id =
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      expected += (i ? " " : "") + std::to_string(id);
      ASSERT_TRUE(session->run({&id, 1}, logits).ok());
    }
    std::string ids;
    for (const char c : text) {
      ids += (ids.empty() ? "" : ",") + std::to_string(static_cast<unsigned char>(c));
    }
    const CommandResult result =
        oxbow({"run", bytes_, "--ids", ids, "--tokens", "20", "--temperature", "0"});
    EXPECT_EQ(result.out, expected + "\n") << length << " tokens";

    // And the same text from a file, which prints characters.
    write_text(*directory_ / "prompt.txt", text);
    EXPECT_EQ(
        oxbow({"run", bytes_, "--file", (*directory_ / "prompt.txt").string(), "--tokens", "20"})
            .out,
        oxbow({"run", bytes_, "--prompt=" + text, "--tokens", "20"}).out);
  }
}

TEST_F(CliText, ABytePieceNeverBreaksACharacter) {
  for (const char* seed : {"1", "2", "3"}) {
    const CommandResult result =
        oxbow({"run", bytes_, "--tokens", "400", "--temperature", "3", "--seed", seed});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (std::span<const char> rest(result.out); !rest.empty();) {
      const Utf8Character next = read_utf8(rest);
      ASSERT_EQ(next.kind, Utf8Character::Kind::kCharacter);
      rest = rest.subspan(next.bytes);
    }
  }
}

TEST_F(CliText, AnEmptyPromptStartsSomewhere) {
  for (const std::string& model : {bytes_, chars_}) {
    const CommandResult result = oxbow({"run", model, "--tokens", "10", "--temperature", "0"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(oxbow({"run", model, "--tokens", "10", "--temperature", "0", "--prompt", ""}).out,
              result.out);
    EXPECT_EQ(oxbow({"run", model, "--tokens", "10", "--temperature", "0", "--prompt", "\n"}).out,
              result.out);
  }
}

TEST_F(CliText, NoTokensAreNoText) {
  const CommandResult result = oxbow({"run", bytes_, "--prompt", "a", "--tokens", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(CliText, AModelWithoutTokenizerTakesIds) {
  const CommandResult refused = oxbow({"run", silent_, "--prompt", "a"});
  EXPECT_EQ(refused.exit_code, 3);
  expect_one_line(refused, "--tokenizer");
  const CommandResult ids = oxbow({"run", silent_, "--ids", "1,2,3", "--tokens", "4"});
  EXPECT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(std::count(ids.out.begin(), ids.out.end(), ' '), 3) << ids.out;
  for (const char* wrong : {"5", "-1", "1,,2", "1,", "x", "99999999999999999999"}) {
    EXPECT_EQ(oxbow({"run", silent_, std::string("--ids=") + wrong}).exit_code, 2) << wrong;
  }
}

TEST_F(CliText, ACharacterTheVocabularyLacksHasAPlace) {
  const CommandResult run = oxbow({"run", chars_, "--prompt", "ab\néx"});
  EXPECT_EQ(run.exit_code, 3);
  expect_one_line(run, "line 2, column 2 (byte 5): U+0078 'x'");
  write_text(*directory_ / "bad.txt", "ab\n\xff");
  const CommandResult file = oxbow({"run", chars_, "--file", (*directory_ / "bad.txt").string()});
  EXPECT_EQ(file.exit_code, 3);
  expect_one_line(file, "line 2, column 1 (byte 3)");
  write_text(*directory_ / "cut.txt", "ab\xe2\x82");
  expect_one_line(oxbow({"run", chars_, "--file", (*directory_ / "cut.txt").string()}),
                  "line 1, column 3 (byte 2)");
}

// ---- eval ---------------------------------------------------------------------------------------

TEST_F(CliText, EvalIsTheMeanSurprise) {
  const std::string allowed = "ab€é\nabbaé€€a\nbb\n";
  write_text(*directory_ / "text.txt", allowed);
  const CommandResult result =
      oxbow({"eval", chars_, "--text", (*directory_ / "text.txt").string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json quality = json::parse(result.out)["models"][0];

  // From the definition, token by token; the text fits in one segment.
  const oxb::Expected<oxb::Model> model = oxb::Model::open(chars_.c_str());
  ASSERT_TRUE(model.ok());
  oxb::Expected<oxb::Session> session = oxb::Session::create(*model);
  ASSERT_TRUE(session.ok());
  std::vector<int32_t> ids(64);
  oxb::Encoded encoded;
  oxb::Expected<oxb::Encoder> encoder = oxb::Encoder::create(*model);
  ASSERT_TRUE(encoder.ok());
  ASSERT_TRUE(encoder->run(allowed, true, ids, &encoded).ok());
  ids.resize(encoded.count);
  std::vector<float> logits(ids.size() * 5);
  ASSERT_TRUE(session->run(ids, logits).ok());
  double bits = 0.0;
  for (size_t i = 1; i < ids.size(); ++i) {
    const float* row = &logits[(i - 1) * 5];
    double sum = 0.0;
    for (int k = 0; k < 5; ++k) sum += std::exp(static_cast<double>(row[k]));
    bits -= std::log2(std::exp(static_cast<double>(row[ids[i]])) / sum);
  }
  const auto tokens = static_cast<double>(ids.size() - 1);
  EXPECT_EQ(quality["tokens"], ids.size() - 1);
  EXPECT_EQ(quality["characters"], ids.size() - 1);
  EXPECT_EQ(quality["bytes"], allowed.size() - 1);
  EXPECT_NEAR(quality["bits_per_token"], bits / tokens, 1e-6);
  EXPECT_NEAR(quality["bits_per_byte"], bits / static_cast<double>(allowed.size() - 1), 1e-6);
  EXPECT_NEAR(quality["perplexity"], std::exp2(bits / tokens), 1e-4);
}

TEST_F(CliText, EvalOfALongTextDoesNotDependOnHowItIsRead) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + i * i % 23);
  write_text(*directory_ / "long.txt", text);
  const std::string path = (*directory_ / "long.txt").string();
  const json both =
      json::parse(oxbow({"eval", bytes_, "--text", path, "--compare", bytes_f32_, "--json"}).out);
  ASSERT_EQ(both["models"].size(), 2u);
  // Compared in the segments both can take, so the first is what it is alone.
  EXPECT_EQ(both["models"][1]["segment"], kSegment);
  const json alone = json::parse(oxbow({"eval", bytes_, "--text", path, "--json"}).out);
  EXPECT_EQ(alone["models"][0]["bits_per_token"], both["models"][0]["bits_per_token"]);
  const double difference = both["difference"]["bits_per_character"];
  EXPECT_NEAR(difference,
              double{both["models"][1]["bits_per_character"]} -
                  double{both["models"][0]["bits_per_character"]},
              1e-9);
  EXPECT_LT(std::abs(difference), 0.2);
  const json& divergence = both["divergence"];
  EXPECT_LE(double{divergence["overturned_lead"]}, double{divergence["overturned_lead_largest"]});

  const json limited =
      json::parse(oxbow({"eval", bytes_, "--text", path, "--limit", "100", "--json"}).out);
  EXPECT_EQ(limited["models"][0]["tokens"], 99);
}

TEST_F(CliText, EvalCountsCharactersOfBytes) {
  write_text(*directory_ / "utf8.txt", "aé€");
  const json quality =
      json::parse(oxbow({"eval", bytes_, "--text", (*directory_ / "utf8.txt").string(), "--json"})
                      .out)["models"][0];
  EXPECT_EQ(quality["tokens"], 5);
  EXPECT_EQ(quality["bytes"], 5);
  EXPECT_EQ(quality["characters"], 2);
}

TEST_F(CliText, EvalSaysWhatItCannotRead) {
  write_text(*directory_ / "one.txt", "a");
  CommandResult result = oxbow({"eval", chars_, "--text", (*directory_ / "one.txt").string()});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "fewer than 2 tokens");
  write_text(*directory_ / "x.txt", "aaa\naxa");
  result = oxbow({"eval", chars_, "--text", (*directory_ / "x.txt").string()});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "line 2, column 2 (byte 5)");
  result = oxbow({"eval", silent_, "--text", (*directory_ / "x.txt").string()});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "--tokenizer");
  EXPECT_EQ(oxbow({"eval", chars_}).exit_code, 2);
  EXPECT_EQ(oxbow({"eval", chars_, "--text", (*directory_ / "none.txt").string()}).exit_code, 3);
}

// ---- bench --------------------------------------------------------------------------------------

TEST_F(CliText, BenchReportsWhatWasAsked) {
  json report = json::parse(oxbow({"bench", bytes_, "--json"}).out);
  EXPECT_EQ(report["prefill"]["tokens"], 128);
  EXPECT_EQ(report["decode"]["tokens"], 128);
  EXPECT_GT(report["decode"]["tokens_per_second"], 0.0);
  EXPECT_FALSE(report.contains("stream"));
  EXPECT_GT(report["arena"]["total"], 0);

  report = json::parse(oxbow({"bench", bytes_, "--prefill", "40", "--profile", "--json"}).out);
  EXPECT_EQ(report["prefill"]["tokens"], 40);
  EXPECT_FALSE(report.contains("decode"));
  EXPECT_GT(report["profile"]["ops"].size(), 4u);
  EXPECT_EQ(report["profile"]["steps"][0]["op"], "Embedding");
}

TEST_F(CliText, AStreamNeedsNoMoreMemoryAtItsEnd) {
  const std::string page = (*directory_ / "page.html").string();
  for (const char* input : {"random", "greedy"}) {
    const CommandResult result =
        oxbow({"bench", bytes_, "--stream", "20000", "--input", input, "--json", "--html", page});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json stream = json::parse(result.out)["stream"];
    EXPECT_EQ(stream["tokens"], 20000);
    EXPECT_EQ(stream["input"], input);
    EXPECT_TRUE(stream["memories_full"]);
    EXPECT_EQ(stream["blocks"].size(), 200u);
    uint64_t tokens = 0;
    for (const json& block : stream["blocks"]) tokens += uint64_t{block["tokens"]};
    EXPECT_EQ(tokens, 20000u);
    EXPECT_EQ(stream.value("heap_growth", 0), 0);
    EXPECT_GT(stream["first_tenth"]["median_seconds"], 0.0);
    uint64_t counted = 0;
    double edge = 0.0;
    for (const json& bin : stream["histogram"]) {
      counted += uint64_t{bin["count"]};
      EXPECT_GT(bin["to"], bin["from"]);
      EXPECT_DOUBLE_EQ(bin["from"], edge == 0.0 ? double{bin["from"]} : edge);
      edge = bin["to"];
    }
    EXPECT_EQ(counted, 20000u);
    const json& p = stream["percentiles"];
    EXPECT_GE(p["p50"], stream["histogram"][0]["from"]);
    EXPECT_LE(p["max"], edge);
    for (const auto& [less, more] : {std::pair("p50", "p90"),
                                     {"p90", "p95"},
                                     {"p95", "p99"},
                                     {"p99", "p999"},
                                     {"p999", "max"}}) {
      EXPECT_LE(p[less], p[more]);
    }
  }
  const std::vector<std::byte> bytes = read_bytes(page);
  const std::string html(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(html.find("\"stream\":{"), std::string::npos);
  EXPECT_NE(html.find("\"entry_points\":[{"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // Needs nothing from elsewhere.
}

TEST_F(CliText, AShortStreamIsFineToo) {
  for (const char* tokens : {"1", "7", "201", "1000"}) {
    const CommandResult result = oxbow({"bench", bytes_, "--stream", tokens, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(std::to_string(uint64_t{json::parse(result.out)["stream"]["tokens"]}), tokens);
  }
  EXPECT_EQ(oxbow({"bench", bytes_, "--stream", "100", "--profile"}).exit_code, 0);
}

// ---- inspect ------------------------------------------------------------------------------------

TEST_F(CliText, InspectShowsTheFile) {
  const CommandResult text = oxbow({"inspect", chars_, "--check"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"labml_compressive_transformer", "states", "mem.layer0", "settings",
                           "Attention", "max segment", "arena", "match their checksum"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
  const json all = json::parse(oxbow({"inspect", chars_, "--json"}).out);
  EXPECT_EQ(all["vocabulary"], 5);
  EXPECT_EQ(all["tokenizer"], "Char");
  EXPECT_FALSE(all["entry_points"][0]["steps"].empty());
  const std::string page = (*directory_ / "inspect.html").string();
  EXPECT_EQ(oxbow({"inspect", chars_, "--html", page}).exit_code, 0);
  EXPECT_GT(read_bytes(page).size(), 1000u);
}

TEST_F(CliText, ADamagedWeightIsFoundByTheCheckAlone) {
  std::vector<std::byte> bytes = read_bytes(bytes_);
  bytes[bytes.size() - 70] ^= std::byte{1};
  const std::string path = (*directory_ / "damaged.oxb").string();
  write_bytes(path, bytes);
  EXPECT_EQ(oxbow({"inspect", path}).exit_code, 0);
  const CommandResult result = oxbow({"inspect", path, "--check"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, path);
}

// ---- Usage --------------------------------------------------------------------------------------

TEST_F(CliText, WrongUsageIsExitCode2WithOneLine) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{},
       "expected one of convert, run, chat, tokenize, bench, inspect, verify, eval, embed, index"},
      {{"rnu"}, "did you mean run?"},
      {{"--json"}, "command '--json' is unknown"},
      {{"run"}, "model.oxb is missing"},
      {{"verify", chars_}, "io.safetensors is missing"},
      {{"run", chars_, "a", "more"}, "argument 'more' is one too many"},
      {{"run", chars_, "--promt", "x"}, "did you mean --prompt?"},
      {{"run", chars_, "--tokens", "-3"}, "--tokens"},
      {{"run", chars_, "--tokens", "many"}, "--tokens"},
      {{"run", chars_, "--temperature", "nan"}, "--temperature"},
      {{"run", chars_, "--temperature=-1"}, "--temperature"},
      {{"run", chars_, "--top-p", "0"}, "--top-p"},
      {{"run", chars_, "--top-p", "1.5"}, "--top-p"},
      {{"run", chars_, "--repetition-penalty", "0"}, "--repetition-penalty"},
      {{"run", chars_, "--prompt", "a", "--file", "b"},
       "one of --prompt, --file, --ids and --input"},
      {{"run", chars_, "--threads", "0"}, "--threads"},
      {{"run", chars_, "--threads", "1000"}, "--threads"},
      {{"bench", chars_, "--prefill", "0"}, "--prefill"},
      {{"bench", chars_, "--input", "zeros"}, "--input"},
      {{"bench", chars_, "--backend", "abacus"}, "--backend"},
      {{"bench", chars_, "--memory", "lots"}, "--memory"},
      {{"verify", chars_, "io", "--atol", "x"}, "--atol"},
      {{"verify", chars_, "io", "--min-cosine", "2"}, "--min-cosine"},
  };
  for (const auto& [words, part] : cases) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 2) << part << ": " << result.err;
    expect_one_line(result, part);
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CliText, BadInputIsExitCode3WithOneLine) {
  const std::string none = (*directory_ / "none.oxb").string();
  const std::string text = (*directory_ / "text.oxb").string();
  write_text(text, "this is no model\n");
  const std::string folder = directory_->path().string();
  for (const char* command : {"run", "bench", "inspect"}) {
    for (const std::string& path : {none, text, folder}) {
      const CommandResult result = oxbow({command, path});
      EXPECT_EQ(result.exit_code, 3) << command << " " << path << ": " << result.err;
      expect_one_line(result, path);
    }
  }
  for (const char* command : {"run", "bench", "inspect"}) {
    const CommandResult result = oxbow({command, bytes_, "--memory", "1K"});
    EXPECT_EQ(result.exit_code, 3);
    expect_one_line(result, "--memory allows 1.00 KiB (1,024 bytes)");
  }
  EXPECT_EQ(oxbow({"bench", bytes_, "--memory", "1G", "--decode", "3"}).exit_code, 0);
  EXPECT_EQ(oxbow({"bench", bytes_, "--decode", "1", "--html", "/nonexistent/page.html"}).exit_code,
            3);
}

TEST(CliOutputs, NoOutputDestroysAnInput) {
  const TemporaryDirectory directory;
  TinyCheckpoint().write(directory / "c");
  const std::string c = (directory / "c").string(), m = (directory / "m.oxb").string();
  const std::vector<std::byte> weights = read_bytes(directory / "c/model.safetensors");
  const auto refused = [&](const char* program, const Words& words) {
    const CommandResult result = run_program(program, words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    expect_one_line(result, "would destroy");
  };
  refused("oxbow-convert", {c, "-o", c + "/model.safetensors"});
  refused("oxbow-convert", {c, "-o", c + "/../c/config.json"});
  refused("oxbow-convert", {c, "-o", m, "--report", c + "/config.json"});
  refused("oxbow-convert", {c, "-o", m, "--report", m});
  EXPECT_EQ(read_bytes(directory / "c/model.safetensors"), weights);
  convert(directory / "c", m, {});
  convert(directory / "c", m, {});
  refused("oxbow", {"inspect", m, "--html", m});
  refused("oxbow", {"bench", m, "--html", m});
}

TEST(CliHelp, EveryCommandExplainsItself) {
  EXPECT_EQ(oxbow({"--help"}).exit_code, 0);
  EXPECT_EQ(oxbow({"--version"}).out, "oxbow 0.1.0\n");
  for (const char* command :
       {"run", "chat", "tokenize", "bench", "inspect", "verify", "eval", "embed"}) {
    const CommandResult result = oxbow({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out.find(std::string("usage: oxbow ") + command + " model.oxb"), 0u)
        << result.out;
    // Nothing is computed to tokenise.
    EXPECT_EQ(result.out.find("--threads") == std::string::npos,
              command == std::string("tokenize"));
    EXPECT_NE(oxbow({"--help"}).out.find(command), std::string::npos);
  }
}

// Whoever changes an option puts what `oxbow-convert --help` prints into docs/convert.md.
TEST(CliHelp, TheManualHasTheConvertersOptions) {
  const CommandResult help = run_program("oxbow-convert", {"--help"});
  ASSERT_EQ(help.exit_code, 0);
  std::ifstream file(source_dir() + "/docs/convert.md");
  const std::string manual(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(manual.find("$ oxbow-convert --help\n" + help.out + "```"), std::string::npos)
      << help.out;
}

}  // namespace
}  // namespace oxbow::testing
