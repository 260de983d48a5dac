// oxbow verify: expectations that do not hold, and files that are none. The packs are in golden_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "host/safetensors.h"
#include "tests/support/built_model.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

std::filesystem::path compressive() { return golden() / "labml_compressive/c1_d32_fullP"; }

/// A copy of an io file in which one tensor was changed.
class IoFile {
 public:
  explicit IoFile(const std::filesystem::path& path) {
    bytes_ = read_bytes(path);
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof(length));
    header_ = json::parse(std::string(reinterpret_cast<const char*>(bytes_.data()) + 8, length));
    data_.assign(bytes_.begin() + static_cast<ptrdiff_t>(8 + length), bytes_.end());
  }
  /// Empty, to be filled.
  IoFile() = default;
  void add(const std::string& name, const std::string& type, const std::vector<uint64_t>& shape,
           const std::vector<std::byte>& values) {
    const size_t begin = data_.size();
    data_.insert(data_.end(), values.begin(), values.end());
    header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  json& header() { return header_; }
  void set_float(const std::string& name, size_t index, float value) {
    const size_t begin = header_.at(name)["data_offsets"][0];
    std::memcpy(data_.data() + begin + index * 4, &value, 4);
  }
  void set_id(const std::string& name, size_t index, int64_t value) {
    const size_t begin = header_.at(name)["data_offsets"][0];
    std::memcpy(data_.data() + begin + index * 8, &value, 8);
  }
  void copy(const std::string& name, const std::string& new_name) {
    json entry = header_.at(name);
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1],
                 at = data_.size();
    const std::vector<std::byte> values(data_.begin() + static_cast<ptrdiff_t>(begin),
                                        data_.begin() + static_cast<ptrdiff_t>(end));
    data_.insert(data_.end(), values.begin(), values.end());
    entry["data_offsets"] = {at, data_.size()};
    header_[new_name] = entry;
  }
  void write(const std::filesystem::path& path) const {
    std::string text = header_.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t length = text.size();
    std::vector<std::byte> out(8 + text.size() + data_.size());
    std::memcpy(out.data(), &length, 8);
    std::memcpy(out.data() + 8, text.data(), text.size());
    std::copy(data_.begin(), data_.end(), out.begin() + static_cast<ptrdiff_t>(8 + text.size()));
    write_bytes(path, out);
  }

 private:
  std::vector<std::byte> bytes_, data_;
  json header_ = json::object();
};

class CliVerify : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    model_ = convert(compressive(), *directory_ / "m.oxb", {"--weights", "f32"});
  }
  static void TearDownTestSuite() { delete directory_; }

  CommandResult verify(const IoFile& io, Words options = {}) {
    const std::string path = (*directory_ / "io.safetensors").string();
    io.write(path);
    Words words = {"verify", model_, path};
    words.insert(words.end(), options.begin(), options.end());
    return oxbow(words);
  }
  /// The line of one tensor.
  static std::string line_of(const std::string& out, const std::string& name) {
    const size_t begin = out.find(name + " ");
    return begin == std::string::npos ? "" : out.substr(begin, out.find('\n', begin) - begin);
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string model_;
  IoFile io_{compressive() / "io.safetensors"};
  json others_ = json::object();
};

TEST_F(CliVerify, AWrongLogitIsFoundWithItsPlace) {
  io_.set_float("segment2.logits", (3 * 2 + 1) * 65 + 17, 50.0f);  // [3, 1, 17] of [7, 2, 65]
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, "1 of 39 tensors");
  const std::string line = line_of(result.out, "segment2.logits");
  EXPECT_NE(line.find("FAIL"), std::string::npos) << line;
  EXPECT_NE(line.find("[3, 1, 17]"), std::string::npos) << line;
}

TEST_F(CliVerify, AWrongMemoryIsFound) {
  io_.set_float("greedy.c_mem.layer1", 0, 50.0f);
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(line_of(result.out, "greedy.c_mem.layer1").find("FAIL"), std::string::npos)
      << result.out;
}

TEST_F(CliVerify, NotANumberFailsHoweverItIsJudged) {
  io_.set_float("segment1.logits", 5, std::nanf(""));
  EXPECT_EQ(verify(io_).exit_code, 1);
  EXPECT_EQ(verify(io_, {"--atol", "1e30"}).exit_code, 1);
  EXPECT_EQ(verify(io_, {"--min-cosine", "0"}).exit_code, 1);
}

TEST_F(CliVerify, ADifferentNumberOfRowsNamesBoth) {
  // Seven rows become a claim of six, with the last one left over elsewhere.
  json& entry = io_.header()["segment0.mem.layer0"];
  entry["shape"] = {6, 2, 32};
  const size_t begin = entry["data_offsets"][0];
  entry["data_offsets"] = {begin, begin + 6 * 2 * 32 * 4};
  io_.header()["segment0.left_over"] = {
      {"dtype", "F32"},
      {"shape", {1, 2, 32}},
      {"data_offsets", {begin + 6 * 2 * 32 * 4, begin + 7 * 2 * 32 * 4}}};
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(line_of(result.out, "segment0.mem.layer0").find("7 rows, expected 6"),
            std::string::npos)
      << result.out;
  EXPECT_NE(line_of(result.out, "segment0.left_over").find("not produced"), std::string::npos);
}

TEST_F(CliVerify, AnFp64AlternativeThatMatchesIsEnough) {
  io_.copy("segment1.logits", "segment1.logits.fp64");
  io_.set_float("segment1.logits", 5, 50.0f);
  CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(line_of(result.out, "segment1.logits").find("matches .fp64"), std::string::npos);
  EXPECT_NE(result.out.find("39 tensors checked"), std::string::npos) << result.out;

  io_.set_float("segment1.logits.fp64", 6, 50.0f);
  EXPECT_EQ(verify(io_).exit_code, 1);
}

TEST_F(CliVerify, AnFp64AlternativeAloneIsEnough) {
  for (const char* name : {"segment1.logits", "greedy.logits"}) {
    io_.header()[std::string(name) + ".fp64"] = io_.header()[name];
    io_.header().erase(name);
  }
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("39 tensors checked"), std::string::npos) << result.out;
}

TEST_F(CliVerify, AWrongChosenTokenIsFound) {
  const CommandResult before = verify(io_);
  EXPECT_NE(line_of(before.out, "greedy.next_ids").find("18 of 18 agree"), std::string::npos)
      << before.out;
  // The least likely token of the first step is nearly tied with nothing.
  const Safetensors golden_io((compressive() / "io.safetensors").string());
  const std::vector<float> logits = golden_io.floats("greedy.logits");
  const auto least = std::min_element(logits.begin(), logits.begin() + 65) - logits.begin();
  io_.set_id("greedy.next_ids", 0, least);
  for (const Words& options : {Words{}, Words{"--min-cosine", "0.9"}}) {
    const CommandResult result = verify(io_, options);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_NE(line_of(result.out, "greedy.next_ids").find("FAIL"), std::string::npos) << result.out;
  }
}

TEST_F(CliVerify, ACosineAndAnErrorThatWereAskedForBothHold) {
  EXPECT_EQ(verify(io_, {"--min-cosine", "0.9"}).exit_code, 0);
  EXPECT_EQ(verify(io_, {"--min-cosine", "0.9", "--atol", "1e-12"}).exit_code, 1);
}

TEST_F(CliVerify, AnEmptyMemoryIsComparedToo) {
  // A memory of one row whose rows leave by twos is empty after two tokens.
  TinyCheckpoint checkpoint;
  checkpoint.config["mem_len"] = 1;
  checkpoint.write(*directory_ / "tiny");
  const std::string model =
      convert(*directory_ / "tiny", *directory_ / "tiny.oxb", {"--weights", "f32"});
  IoFile io;
  io.add("segment0.input_ids", "I64", {2, 1}, std::vector<std::byte>(16));
  io.add("segment0.mem.layer0", "F32", {0, 1, 8}, {});
  const std::string path = (*directory_ / "tiny.safetensors").string();
  io.write(path);
  for (const Words& options : {Words{}, Words{"--json"}}) {
    Words words = {"verify", model, path, "--atol", "1e-5"};
    words.insert(words.end(), options.begin(), options.end());
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("segment0.mem.layer0"), std::string::npos) << result.out;
  }
}

TEST_F(CliVerify, IdsWithoutAStreamAreRefused) {
  IoFile io;
  io.add("segment0.input_ids", "I64", {7, 0}, {});
  io.add("segment0.logits", "F32", {7, 0, 65}, {});
  const CommandResult result = verify(io, {"--atol", "1"});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  expect_one_line(result, "at least one stream");
}

TEST_F(CliVerify, NothingToCheckIsAFailure) {
  for (auto it = io_.header().begin(); it != io_.header().end();) {
    const bool loss =
        it.key().ends_with("_loss") || it.key().ends_with("input_ids") || it.key()[0] == '_';
    if (loss) {
      ++it;
      continue;
    }
    // The bytes stay claimed, under a name no model produces.
    json entry = it.value();
    const std::string name = "other." + it.key();
    it = io_.header().erase(it);
    others_[name] = entry;
  }
  for (const auto& [name, entry] : others_.items()) io_.header()[name] = entry;
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  expect_one_line(result, "no output was checked");
}

// What the original gives token by token with past_buckets_states, behind a text read at once.
TEST(CliVerifyCached, AReformerGoesOnAsTheOriginalDoesWithItsBuckets) {
  const std::string io = (golden() / "reformer/rf1/cached.safetensors").string();
  const std::string model =
      golden_model("reformer/rf1", {"--weights", "f32", "--activations", "f32", "--context", "90"});
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--threads", "3"}, {"--backend", "reference"}}) {
    std::vector<std::string> words = {"verify", model, io};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("3 tensors checked"), std::string::npos) << result.out;
  }
  const std::string rounded =
      golden_model("reformer/rf1", {"--weights", "int8", "--context", "90"});
  // On the original's buckets, which int8 alone would miss here and there.
  const CommandResult result = oxbow({"verify", rounded, io, "--min-cosine", "0.9995"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(CliVerifyCached, AReformerTakesTheBucketsItIsGivenAndTellsItsOwn) {
  const std::filesystem::path io = golden() / "reformer/rf1/cached.safetensors";
  const std::string model = golden_model(
      "reformer/rf1",
      {"--weights", "f32", "--activations", "f32", "--context", "90", "--debug-outputs"});
  const CommandResult right = oxbow({"verify", model, io.string()});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_NE(right.out.find("9 tensors checked"), std::string::npos) << right.out;

  TemporaryDirectory directory;
  IoFile other(io);
  // All rows of the first run in one bucket, in both rounds.
  for (size_t i = 0; i < 4 * 2 * 21; ++i) {
    other.set_id("segment0.layer1.buckets", i, i / 21 % 2 == 0 ? 3 : 11);
  }
  other.write(directory / "io.safetensors");
  const json report =
      json::parse(oxbow({"verify", model, (directory / "io.safetensors").string(), "--json"}).out);
  EXPECT_FALSE(report["ok"]);
  for (const json& tensor : report["tensors"]) {
    const std::string name = tensor["name"];
    // What it hashes to is still the original's; what it gives is not, now and later.
    if (name == "segment0.layer1.buckets" || name == "segment0.logits" || name == "greedy.logits") {
      EXPECT_FALSE(tensor["ok"]) << name;
    }
  }
}

TEST(CliVerifyCached, AReformerEndsWithItsContext) {
  const std::string io = (golden() / "reformer/rf1/cached.safetensors").string();
  const std::string model = golden_model("reformer/rf1", {"--weights", "int8", "--context", "89"});
  const CommandResult result = oxbow({"verify", model, io, "--min-cosine", "0.99"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE((result.out + result.err).find("89"), std::string::npos) << result.out << result.err;
}

TEST_F(CliVerify, AToleranceMustComeFromSomewhere) {
  io_.header()["__metadata__"].erase("atol_fp32");
  const CommandResult result = verify(io_);
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "--atol");
  EXPECT_EQ(verify(io_, {"--atol", "1e-4"}).exit_code, 0);
}

TEST_F(CliVerify, ASegmentLongerThanTheModelTakesSaysHowToConvert) {
  const std::string small =
      convert(compressive(), *directory_ / "small.oxb", {"--weights", "f32", "--max-segment", "6"});
  const CommandResult result =
      oxbow({"verify", small, (compressive() / "io.safetensors").string()});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "convert with --max-segment 7");
}

/// An io file in which one tensor has fewer rows than it should.
IoFile with_fewer_rows(const std::filesystem::path& path, const std::string& name) {
  IoFile io(path);
  json& entry = io.header()[name];
  const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  const size_t streams = entry["shape"][0], rows = entry["shape"][1];
  const size_t row = (end - begin) / streams / rows;
  entry["shape"][1] = rows - 3;
  const size_t kept = begin + (rows - 3) * streams * row;
  entry["data_offsets"] = {begin, kept};
  io.header()["left_over"] = {
      {"dtype", "U8"}, {"shape", {end - kept}}, {"data_offsets", {kept, end}}};
  return io;
}

TEST(CliVerifyParts, TensorsThatDoNotFitTogetherAreFailuresAndNoMore) {
  const TemporaryDirectory directory;
  for (const auto& [pack, names] : std::vector<std::pair<std::string, Words>>{
           {"gpt2/g1_tied",
            {"masked.attention_mask", "masked.logits", "masked.position_ids", "greedy.input_ids",
             "greedy.logits", "greedy.next_ids", "input_ids", "hidden_states.1"}},
           {"mistral/ms1", {"greedy.sequence", "greedy.logits"}},
           {"marian/ma1",
            {"greedy.sequences", "beam.sequences", "decoder_input_ids", "attention_mask"}},
           {"lite_transformer/lt1_dynamic", {"greedy.tokens", "greedy.logits", "src_tokens"}},
           {"sparse_masks/sp1_fixed", {"value", "query", "mask", "block_layout"}}}) {
    const std::string model =
        golden_model(pack, {"--weights", "f32", "--activations", "f32", "--debug-outputs"});
    for (const std::string& name : names) {
      const std::string path = (directory / "io.safetensors").string();
      with_fewer_rows(golden() / pack / "io.safetensors", name).write(path);
      const CommandResult result = oxbow({"verify", model, path});
      EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 3 || result.exit_code == 0)
          << pack << " " << name << ": " << result.exit_code << result.err;
      // Without these, or with others, some tensors are only not produced.
      const bool optional = name == "masked.attention_mask" || name == "masked.position_ids" ||
                            name == "attention_mask" || name == "beam.sequences";
      EXPECT_TRUE(result.exit_code != 0 || optional) << pack << " " << name << "\n" << result.out;
    }
  }
}

TEST_F(CliVerify, TheIoOfAnotherModelIsRefusedOrFails) {
  const CommandResult result = oxbow(
      {"verify", model_, (golden() / "labml_compressive/c3_d64_rate4_b3/io.safetensors").string()});
  EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 3) << result.exit_code;
  EXPECT_EQ(oxbow({"verify", model_, model_}).exit_code, 3);
}

TEST(CliVerifyBuilt, PlainStatesAndFurtherOutputsAreComparedByName) {
  // Adds each token's embedding, (id, id), to a state that begins with (10, 20), and gives that and its double.
  convert::Graph graph;
  convert::GraphBuilder builder(graph);
  builder.begin_entry({.vocabulary = 3, .max_segment = 1});
  const uint32_t x =
      builder.embedding("x", builder.tokens(), builder.weight("table", 3, 2, {0, 0, 1, 1, 2, 2}));
  const uint32_t state =
      builder.state("state.layer0.sum", 1, 2, builder.weight("start", 1, 2, {10, 20}));
  const uint32_t row = builder.first_row("row", x);
  auto update = std::make_unique<schema::StepT>();
  update->op = schema::OpCode::Add;
  update->inputs = {state, row};
  update->outputs = {state};
  graph.main_entry().steps.push_back(std::move(update));
  builder.output("logits", state);
  builder.output("double", builder.add("twice", state, state));
  const TemporaryDirectory directory;
  const std::string model = (directory / "m.oxb").string();
  convert::write_model(model, build_file(graph));

  const auto bytes = [](const auto& values) {
    const auto all = std::as_bytes(std::span(values));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  IoFile io;
  float sum = 0.0f;
  for (const int64_t id : {2, 0, 1}) {
    sum += static_cast<float>(id);
    const std::string prefix = "segment" + std::to_string(id == 2 ? 0 : id == 0 ? 1 : 2) + ".";
    io.add(prefix + "input_ids", "I64", {1, 1}, bytes(std::vector<int64_t>{id}));
    io.add(prefix + "state.layer0.sum", "F32", {1, 2},
           bytes(std::vector<float>{10 + sum, 20 + sum}));
    io.add(prefix + "double", "F32", {1, 1, 2},
           bytes(std::vector<float>{20 + 2 * sum, 40 + 2 * sum}));
  }
  const std::string path = (directory / "io.safetensors").string();
  io.write(path);
  const CommandResult good = oxbow({"verify", model, path, "--atol", "1e-6"});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("6 tensors checked"), std::string::npos) << good.out;
  io.set_float("segment1.state.layer0.sum", 1, 7.0f);
  io.set_float("segment2.double", 0, 7.0f);
  io.write(path);
  const CommandResult bad = oxbow({"verify", model, path, "--atol", "1e-6"});
  EXPECT_EQ(bad.exit_code, 1);
  expect_one_line(bad, "2 of 6 tensors");
}

}  // namespace
}  // namespace oxbow::testing
