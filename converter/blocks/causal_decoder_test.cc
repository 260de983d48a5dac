// Decoders that keep keys and values: what --context, --ring and --sinks do to a stream, and which
// configurations are refused.

#include "converter/blocks/causal_decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "converter/convert.h"
#include "converter/testing/stream.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::Stream;
using testing::TemporaryDirectory;

constexpr const char* kLlama = "llama/l1_gqa";
constexpr const char* kGpt2 = "gpt2/g2_inner_relu";
constexpr const char* kMpt = "mpt/mp1";

EditableCheckpoint golden(const std::string& name) {
  return EditableCheckpoint::read(testing::source_dir() + "/tests/golden/" + name);
}

/// With one layer a key depends on its own token alone, so that a stream whose old keys are gone can be
/// compared with a new stream of the tokens that are left.
EditableCheckpoint one_layer(const std::string& name) {
  EditableCheckpoint checkpoint = golden(name);
  for (const char* key : {"num_hidden_layers", "n_layers", "n_layer"}) {
    if (checkpoint.config.contains(key)) checkpoint.config[key] = 1;
  }
  for (const char* layer : {".1.", ".2."}) {
    std::erase_if(checkpoint.tensors, [&](const auto& tensor) {
      return tensor.first.find(layer) != std::string::npos;
    });
  }
  return checkpoint;
}

struct Converted {
  explicit Converted(const EditableCheckpoint& checkpoint, const ImportOptions& import = {},
                     bool int8 = false) {
    checkpoint.write(directory / "in");
    ConvertOptions options;
    options.directory = directory / "in";
    options.output = directory / "model.oxb";
    options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
    options.import_options = import;
    options.tokenizer = "none";
    warnings = convert(options);
  }
  std::string path() const { return directory / "model.oxb"; }

  TemporaryDirectory directory;
  std::vector<std::string> warnings;
};

std::vector<int32_t> some_tokens(size_t count, uint32_t vocabulary) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int32_t>((i * 7919 + i * i * 31) % vocabulary);
  }
  return tokens;
}

/// All logits; runs of 1, 2, ... up to `longest` tokens and again.
std::vector<float> stream_logits(Stream& stream, std::span<const int32_t> tokens, size_t longest) {
  std::vector<float> all;
  for (size_t done = 0, turn = 0; done < tokens.size(); ++turn) {
    const size_t count = std::min(tokens.size() - done, 1 + turn % longest);
    const std::vector<float> logits = stream.run(tokens.subspan(done, count));
    all.insert(all.end(), logits.begin(), logits.end());
    done += count;
  }
  return all;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]} - b[i]));
  }
  return largest;
}

struct RingCase {
  const char* name;
  uint32_t context, sinks;
};

void PrintTo(const RingCase& c, std::ostream* out) {
  *out << c.name << ", context " << c.context << ", sinks " << c.sinks;
}

class Ring : public ::testing::TestWithParam<RingCase> {};

TEST_P(Ring, EachQuerySeesTheNewestKeysAndTheSinksAtTheirPlacesAmongThem) {
  const RingCase c = GetParam();
  const EditableCheckpoint checkpoint = one_layer(c.name);
  const Converted ring(checkpoint, {.context = c.context, .ring = true, .sinks = c.sinks});
  const Converted plain(checkpoint, {.context = c.context + c.sinks});
  Stream endless(ring.path());
  ASSERT_EQ(endless.info().capacity, 0u);
  const uint32_t vocabulary = endless.info().vocabulary;
  const std::vector<int32_t> tokens = some_tokens(100, vocabulary);
  const std::vector<float> logits =
      stream_logits(endless, tokens, std::min<size_t>(7, endless.info().max_segment));

  for (size_t last = 0; last < tokens.size(); last += 3) {
    // What is left of the stream when this token comes.
    std::vector<int32_t> kept;
    for (size_t i = 0; i <= last; ++i) {
      if (i < c.sinks || i + c.context > last) kept.push_back(tokens[i]);
    }
    Stream fresh(plain.path());
    const std::vector<float> expected = stream_logits(fresh, kept, fresh.info().max_segment);
    EXPECT_LE(largest_difference(std::span(logits).subspan(last * vocabulary, vocabulary),
                                 std::span(expected).last(vocabulary)),
              5e-5)
        << "token " << last;
  }
}

TEST_P(Ring, PiecesDoNotMatter) {
  const RingCase c = GetParam();
  const Converted ring(golden(c.name), {.context = c.context, .ring = true, .sinks = c.sinks});
  Stream one(ring.path()), many(ring.path());
  const std::vector<int32_t> tokens = some_tokens(150, one.info().vocabulary);
  const std::vector<float> single = stream_logits(one, tokens, 1);
  std::vector<float> whole;
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min<size_t>(many.info().max_segment, tokens.size() - done);
    const std::vector<float> logits = many.run(std::span(tokens).subspan(done, count));
    whole.insert(whole.end(), logits.begin(), logits.end());
    done += count;
  }
  EXPECT_LE(largest_difference(single, whole), 5e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Positions, Ring,
    ::testing::Values(RingCase{"llama/l1_gqa", 11, 0}, RingCase{"llama/l1_gqa", 11, 3},
                      RingCase{"llama/l1_gqa", 2, 1}, RingCase{"labml_rope/lr1", 9, 4},
                      RingCase{"bloom/bl1", 11, 0}, RingCase{"bloom/bl1", 11, 3},
                      RingCase{"mpt/mp1", 5, 6}, RingCase{"labml_alibi/la1_6heads", 9, 1},
                      RingCase{"mistral/ms1", 10, 0}, RingCase{"mistral/ms1", 6, 2}),
    [](const auto& test) {
      std::string name = test.param.name;
      for (char& letter : name) letter = std::isalnum(letter) != 0 ? letter : '_';
      return name + "_" + std::to_string(test.param.context) + "_" +
             std::to_string(test.param.sinks);
    });

TEST(CausalDecoder, WithoutARingTheStreamEndsWithTheContext) {
  const Converted converted(golden(kLlama), {.context = 9});
  Stream stream(converted.path());
  EXPECT_EQ(stream.info().capacity, 9u);
  EXPECT_EQ(stream.info().max_segment, 9u);
  const std::vector<int32_t> tokens = some_tokens(10, stream.info().vocabulary);
  EXPECT_NO_THROW(stream.run(std::span(tokens).first(9)));
  EXPECT_THROW(stream.run(std::span(tokens).last(1)), std::runtime_error);
}

TEST(CausalDecoder, TheContextIsTheModelsOwnUnlessGiven) {
  EXPECT_EQ(Stream(Converted(golden(kLlama)).path()).info().capacity, 64u);
  EXPECT_EQ(Stream(Converted(golden("bloom/bl1")).path()).info().capacity, kDefaultContext);
  EXPECT_EQ(Stream(Converted(golden("mistral/ms1")).path()).info().capacity, 0u);
  EditableCheckpoint checkpoint = golden("mistral/ms1");
  checkpoint.config["sliding_window"] = nullptr;
  EXPECT_EQ(Stream(Converted(checkpoint).path()).info().capacity, 128u);
}

TEST(CausalDecoder, ALongerContextThanThatOfTrainingIsWarnedOf) {
  EXPECT_TRUE(Converted(golden(kLlama)).warnings.empty());
  const Converted converted(golden(kLlama), {.context = 65});
  ASSERT_EQ(converted.warnings.size(), 1u);
  EXPECT_NE(converted.warnings[0].find("max_position_embeddings, 64"), std::string::npos);
}

TEST(CausalDecoder, LearnedPositionsAreCountedAgainInARing) {
  const Converted ring(golden(kGpt2), {.ring = true});
  ASSERT_EQ(ring.warnings.size(), 1u);
  EXPECT_NE(ring.warnings[0].find("48 learned positions"), std::string::npos);
  const Converted plain(golden(kGpt2));
  Stream endless(ring.path()), bounded(plain.path());
  const std::vector<int32_t> tokens = some_tokens(150, endless.info().vocabulary);
  const std::vector<float> logits = stream_logits(endless, tokens, 7);
  const std::vector<float> first = stream_logits(bounded, std::span(tokens).first(48), 5);
  EXPECT_LE(largest_difference(std::span(logits).first(first.size()), first), 5e-5);
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
}

TEST(CausalDecoder, Int8RingsAreNearFloatOnes) {
  const ImportOptions import = {.context = 11, .ring = true, .sinks = 2};
  const Converted exact(golden(kLlama), import), small(golden(kLlama), import, true);
  Stream a(exact.path()), b(small.path());
  const std::vector<int32_t> tokens = some_tokens(100, a.info().vocabulary);
  const std::vector<float> x = stream_logits(a, tokens, 5), y = stream_logits(b, tokens, 5);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += double{x[i]} * y[i];
    xx += double{x[i]} * x[i];
    yy += double{y[i]} * y[i];
  }
  EXPECT_GE(xy / std::sqrt(xx * yy), 0.99);
}

struct Refusal {
  const char* test;
  const char* checkpoint;
  std::function<void(nlohmann::json&)> edit;
  ImportOptions import;
  /// What the message must contain.
  const char* words;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.test; }

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithALineThatSaysWhatIsSupported) {
  const Refusal& refusal = GetParam();
  EditableCheckpoint checkpoint = golden(refusal.checkpoint);
  if (refusal.edit) refusal.edit(checkpoint.config);
  try {
    const Converted converted(checkpoint, refusal.import);
    ADD_FAILURE() << "was converted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(refusal.words), std::string::npos) << error.what();
  }
}

using Json = nlohmann::json;

const Refusal kRefusals[] = {
    {"RopeScalingType",
     kLlama,
     [](Json& c) {
       c["rope_scaling"] = {{"type", "ntk"}};
     },
     {},
     R"(rope_scaling.type is "ntk", expected one of: default, linear, llama3, dynamic, yarn)"},
    {"RopeType",
     kLlama,
     [](Json& c) {
       c["rope_scaling"] = {{"rope_type", "longrope"}};
     },
     {},
     "rope_scaling.short_factor has 0 numbers"},
    {"RopeScalingKey",
     kLlama,
     [](Json& c) {
       c["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}, {"beta", 1}};
     },
     {},
     "unknown key rope_scaling.beta"},
    {"DynamicRopeInARing",
     kLlama,
     [](Json& c) {
       c["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
     },
     {.ring = true},
     "rope_scaling is dynamic"},
    {"KeyHeads",
     kLlama,
     [](Json& c) { c["num_key_value_heads"] = 3; },
     {},
     "num_attention_heads is 8, expected a multiple of num_key_value_heads, 3"},
    {"OddHeads", kLlama, [](Json& c) { c["head_dim"] = 7; }, {}, "expected an even number"},
    {"Gpt2CrossAttention",
     kGpt2,
     [](Json& c) { c["add_cross_attention"] = true; },
     {},
     "unknown key add_cross_attention"},
    {"Gpt2Context", kGpt2, {}, {.context = 49}, "--context 49 is more than n_positions, 48"},
    {"Gpt2RingContext", kGpt2, {}, {.context = 49, .ring = true}, "n_positions, 48"},
    {"SmallRing", kLlama, {}, {.context = 1, .ring = true}, "expected at least 2"},
    {"MoreThanTheWindow", "mistral/ms1", {}, {.context = 11}, "more than the 10 keys"},
    {"MptHeads", kMpt, [](Json& c) { c["n_heads"] = 6; }, {}, "expected a power of two"},
    {"MptNestedKey",
     kMpt,
     [](Json& c) { c["attn_config"]["rope"] = true; },
     {},
     "unknown key attn_config.rope"},
    {"MptQueryNorm",
     kMpt,
     [](Json& c) { c["attn_config"]["qk_ln"] = true; },
     {},
     "unknown key attn_config.qk_ln"},
    {"MptAttentionType",
     kMpt,
     [](Json& c) { c["attn_config"]["attn_type"] = "multiquery_attention"; },
     {},
     "expected multihead_attention"},
    {"TurnedElements", "labml_rope/lr1", [](Json& c) { c["d_rope"] = 8; }, {}, "turns 6 elements"},
    {"SparseMode",
     "sparse_masks/sp1_fixed",
     [](Json& c) { c["attn_mode"] = "random"; },
     {},
     "expected one of: all, local, strided, fixed"},
    {"SparseSets",
     "sparse_masks/sp1_fixed",
     [](Json& c) { c["vertsize"] = 2; },
     {},
     "num_verts * vertsize is 8, expected at most 4"},
    {"SparseStride",
     "sparse_masks/sp2_strided",
     [](Json& c) { c["local_attn_ctx"] = 16; },
     {},
     "expected a multiple of blocksize"},
    {"ContextOfASparseAttention",
     "sparse_masks/sp2_strided",
     {},
     {.context = 8},
     "--context, --ring and --sinks are for decoders"},
    {"RingOfAModelWithMemories",
     "labml_xl/x2_d96_l4",
     {},
     {.ring = true},
     "--context, --ring and --sinks are for decoders"},
};

INSTANTIATE_TEST_SUITE_P(Configurations, Refused, ::testing::ValuesIn(kRefusals),
                         [](const auto& test) { return std::string(test.param.test); });

TEST(CausalDecoder, ClippingIsAppliedUnlessTheVersionForgotIt) {
  EditableCheckpoint checkpoint = golden(kMpt);
  const std::vector<int32_t> tokens = some_tokens(20, 83);
  const auto logits = [&](const Converted& converted) {
    Stream stream(converted.path());
    return stream.run(tokens);
  };
  const std::vector<float> plain = logits(Converted(checkpoint));
  checkpoint.config["attn_config"]["clip_qkv"] = 0.5;
  const Converted forgotten(checkpoint);
  EXPECT_EQ(forgotten.warnings.size(), 1u);
  EXPECT_EQ(logits(forgotten), plain);
  checkpoint.config["transformers_version"] = "4.42.0";
  const Converted clipped(checkpoint);
  EXPECT_TRUE(clipped.warnings.empty());
  EXPECT_GT(largest_difference(logits(clipped), plain), 0.1);
}

TEST(CausalDecoder, SlopesOfAnyNumberOfHeads) {
  EXPECT_EQ(alibi_slopes(1), (std::vector<float>{0x1p-8f}));
  EXPECT_EQ(alibi_slopes(2), (std::vector<float>{0x1p-4f, 0x1p-8f}));
  const std::vector<float> six = alibi_slopes(6);
  EXPECT_EQ(six, (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
}

}  // namespace
}  // namespace oxbow::convert
