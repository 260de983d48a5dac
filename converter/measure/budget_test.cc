#include "converter/measure/budget.h"

#include <gtest/gtest.h>

#include "converter/convert.h"
#include "converter/testing/maker.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

/// Three matrices of 1,024 weights, of which "dear" loses most, and the ways to store them.
struct Case {
  testing::Maker m;
  MatrixCosts costs = {{"cheap", {1e-4, 0.1}}, {"dear", {1e-1, 0.1}}, {"free", {0, 0}}};
  std::vector<StoredMatrices> ways;

  Case() {
    for (const auto& [name, cost] : costs) {
      m.builder.weight(name, 32, 32, std::vector<float>(1024, 0.5f));
    }
    for (const auto& [format, bytes, error] :
         {std::tuple("int4", 576u, 0.1), {"int4min", 640u, 0.08}, {"int8", 1152u, 0.01}}) {
      StoredMatrices way{format, {}, {}};
      for (const auto& [name, cost] : costs) {
        way.bytes[name] = bytes;
        way.errors[name] = error;
      }
      ways.push_back(way);
    }
  }
  std::map<std::string, SpentBits> spend(double bits) const {
    return spend_bits(m.graph, costs, ways, bits);
  }
};

TEST(Budget, GoesWhereItSavesMost) {
  const Case c;
  const auto tight = c.spend(4.5), middle = c.spend(6), all = c.spend(9);
  for (const auto& [name, one] : tight) EXPECT_EQ(one.format, "int4") << name;
  EXPECT_EQ(middle.at("dear").format, "int8");
  EXPECT_EQ(middle.at("cheap").format, "int4");
  EXPECT_EQ(middle.at("free").format, "int4");
  EXPECT_EQ(all.at("dear").format, "int8");
  EXPECT_EQ(all.at("cheap").format, "int8");
  EXPECT_EQ(all.at("free").format, "int4") << "nothing is to be saved";
  EXPECT_EQ(all.at("dear").bits, 9);
  // Errors of a tenth lose a hundredth.
  EXPECT_NEAR(all.at("dear").loss, 1e-3, 1e-9);
}

TEST(Budget, OfTooFewBitsIsRefused) { EXPECT_THROW((void)Case().spend(4.4), UsageError); }

TEST(Budget, OfAModelIsKeptToAndTold) {
  const testing::TemporaryDirectory directory;
  ConvertOptions options;
  options.directory = testing::source_dir() + "/tests/golden/labml_compressive/c2_d96_l4_rate3";
  options.output = directory / "model.oxb";
  options.quantize.weights = "int4";
  options.budget = 6;
  convert(options);
  const Description d = describe_file(options.output);
  EXPECT_EQ(find_value(d.model.metadata->settings, "budget"), "6");
  std::map<schema::DataType, size_t> types;
  double bits = 0, weights = 0;
  for (const WeightError& weight : d.worst_weights) {
    ASSERT_TRUE(weight.loss.has_value()) << weight.name;
    for (const auto& tensor : d.model.tensors) {
      if (tensor->name != weight.name) continue;
      ++types[tensor->type];
      bits += 8.0 * static_cast<double>(tensor->bytes);
      weights += static_cast<double>(uint64_t{tensor->rows} * tensor->width);
    }
  }
  EXPECT_LE(bits, 6 * weights);
  EXPECT_GT(bits, 5 * weights);
  EXPECT_GT(types[schema::DataType::I4], 0u);
  EXPECT_GT(types[schema::DataType::I8], 0u);
}

}  // namespace
}  // namespace oxbow::convert
