#include "converter/measure/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "converter/convert.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::TemporaryDirectory;

std::string golden(const std::string& name) {
  return testing::source_dir() + "/tests/golden/" + name;
}

double loss(const std::vector<float>& values, double scale) {
  double sum = 0;
  for (const float value : values) {
    const double code = std::fmax(-127, std::fmin(127, std::nearbyint(value / scale)));
    sum += (value - code * scale) * (value - code * scale);
  }
  return sum;
}

TEST(Spread, TheScaleIsAsGoodAsAnyThatClipsOrNot) {
  // A wide middle and a few that stick out: neither the largest value nor the middle alone is best.
  std::vector<float> values;
  for (int i = -5000; i <= 5000; ++i) values.push_back(static_cast<float>(i) * 1e-3f);
  values.insert(values.end(), {7.0f, -9.0f, 11.0f});
  Spread spread;
  spread.add(std::span(values).first(3000));
  spread.add(std::span(values).subspan(3000));
  const double chosen = loss(values, spread.best_scale());
  double best = INFINITY;
  for (double clip = 0.5; clip < 12; clip += 0.01) best = std::fmin(best, loss(values, clip / 127));
  // Bins of 1/32 of an octave move the clip, and what sticks out, by up to 1.6 %.
  EXPECT_LE(chosen, best * 1.05);
  EXPECT_LT(chosen, 0.95 * loss(values, 11.0 / 127)) << "the largest value alone is worse";
}

TEST(Spread, PassesOverWhatIsNotFiniteAndKnowsNothing) {
  Spread spread;
  EXPECT_EQ(spread.best_scale(), 0.0f);
  spread.add(std::vector<float>{0.0f, -0.0f, NAN, std::numeric_limits<float>::infinity()});
  EXPECT_EQ(spread.best_scale(), 0.0f);
  spread.add(std::vector<float>(100, -1.0f));
  EXPECT_NEAR(spread.best_scale(), 1.0 / 127, 0.04 / 127);
}

ConvertOptions static_options(const std::string& pack, const std::string& output) {
  ConvertOptions options;
  options.directory = golden(pack);
  options.output = output;
  options.quantize.static_scales = true;
  options.calibration_file = golden(pack) + "/io.safetensors";
  return options;
}

TEST(Calibrate, EveryMatrixOfAStaticFileHasScales) {
  // A stream with memories, a decoder with a limit, an encoder, a translator.
  for (const char* pack : {"labml_compressive/c1_d32_fullP", "gpt2/g2_inner_relu", "bert/b1_cls",
                           "t5/t5a_relu_tied"}) {
    SCOPED_TRACE(pack);
    const TemporaryDirectory directory;
    EXPECT_TRUE(convert(static_options(pack, directory / "model.oxb")).empty());
    const Description d = describe_file(directory / "model.oxb");
    EXPECT_EQ(find_value(d.model.metadata->settings, "activations"), "static");
    size_t matrices = 0;
    for (const auto& entry : d.model.entry_points) {
      for (const auto& step : entry->steps) {
        if (step->op != schema::OpCode::Linear) continue;
        const schema::TensorT& x = *d.model.tensors[step->inputs[0]];
        EXPECT_EQ(x.type, schema::DataType::I8) << x.name;
        EXPECT_TRUE(x.static_scale.has_value()) << x.name;
        EXPECT_TRUE(step->options.AsLinearOptions()->output_scale.has_value()) << x.name;
        ++matrices;
      }
    }
    EXPECT_GT(matrices, 5u);
    EXPECT_GT(std::stod(find_value(d.model.metadata->quality, "logits_cosine")), 0.99);
  }
}

TEST(Calibrate, StaticScalesNeedSomethingToCalibrateWith) {
  const TemporaryDirectory directory;
  ConvertOptions options = static_options("gpt2/g2_inner_relu", directory / "model.oxb");
  options.calibration_file.clear();
  EXPECT_THROW(convert(options), UsageError);
  options.calibration_file = golden("gpt2/g2_inner_relu") + "/model.safetensors";
  EXPECT_THROW(convert(options), InputError) << "no input_ids";
  testing::write_text(directory / "text.txt", "words");
  options.calibration_file = directory / "text.txt";
  EXPECT_THROW(convert(options), UsageError) << "no tokenizer";
}

TEST(Calibrate, TokensOfAnotherVocabularyAreRefused) {
  const TemporaryDirectory directory;
  ConvertOptions options =
      static_options("labml_compressive/c1_d32_fullP", directory / "model.oxb");
  options.calibration_file = golden("gpt2/g2_inner_relu") + "/io.safetensors";
  EXPECT_THROW(convert(options), InputError);
}

}  // namespace
}  // namespace oxbow::convert
