#include "converter/formats/gguf.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "converter/testing/gguf.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/safetensors.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::GgufBuilder;
using testing::raw;
using testing::raw_text;

const std::string kFolder = testing::source_dir() + "/tests/formats/gguf/";

Gguf read(const std::string& bytes) { return {"t.gguf", std::as_bytes(std::span(bytes))}; }

/// The message it is refused with; empty: it is not.
std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("t.gguf"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  return "";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
  }
}

/// Two keys and two tensors.
GgufBuilder good() {
  GgufBuilder file;
  file.add("general.architecture", std::string("none"));
  file.add_texts("list", {"one", "", "three"});
  file.add_floats("first", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.add_tensor("second", {2}, 1, raw<uint16_t>(0x3c00) + raw<uint16_t>(0xc000));
  return file;
}

TEST(Gguf, ReadsValuesOfEveryType) {
  GgufBuilder file = good();
  const auto add = [&](const char* key, GgufType type, const std::string& value) {
    file.keys.push_back(raw_text(key) + testing::raw_type(type) + value);
  };
  add("u8", GgufType::kU8, raw<uint8_t>(200));
  add("i8", GgufType::kI8, raw<int8_t>(-3));
  add("u16", GgufType::kU16, raw<uint16_t>(60000));
  add("i16", GgufType::kI16, raw<int16_t>(300));
  add("i32", GgufType::kI32, raw<int32_t>(70000));
  add("u64", GgufType::kU64, raw<uint64_t>(UINT64_MAX));
  add("i64", GgufType::kI64, raw<int64_t>(5000000000));
  add("f64", GgufType::kF64, raw(0.1));
  file.add("f32", 0.5f);
  file.add("yes", true);
  file.add("no", false);
  file.add_array("integers", GgufType::kI16, 2, raw<int16_t>(-1) + raw<int16_t>(7));
  file.add_array("numbers", GgufType::kF32, 2, raw(1.5f) + raw(-2.0f));
  file.add_array("none", GgufType::kString, 0, "");
  const std::string bytes = file.bytes();
  const Gguf gguf = read(bytes);
  EXPECT_EQ(gguf.integer("u8"), 200u);
  EXPECT_EQ(gguf.number("i8"), -3);
  EXPECT_EQ(gguf.integer("u16"), 60000u);
  EXPECT_EQ(gguf.integer("i16"), 300u);
  EXPECT_EQ(gguf.integer("i32"), 70000u);
  EXPECT_EQ(gguf.integer("u64"), UINT64_MAX);
  EXPECT_EQ(gguf.integer("i64"), 5000000000u);
  EXPECT_EQ(gguf.number("f64"), 0.1);
  EXPECT_EQ(gguf.number("f32"), 0.5);
  EXPECT_EQ(gguf.flag("yes"), true);
  EXPECT_EQ(gguf.flag("no"), false);
  EXPECT_EQ(gguf.text("general.architecture"), "none");
  EXPECT_EQ(gguf.integers("integers"), (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(gguf.numbers("numbers"), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(gguf.texts("list"), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(gguf.texts("none"), std::vector<std::string>());
  EXPECT_EQ(gguf.integer("missing"), std::nullopt);
  EXPECT_EQ(gguf.texts("missing"), std::nullopt);
}

TEST(Gguf, RefusesValuesOfAnotherType) {
  GgufBuilder file = good();
  file.add_array("wide", GgufType::kU64, 1, raw(UINT64_MAX));
  file.add("malformed", std::string("a\xff"));
  file.keys.push_back(raw_text("below") + testing::raw_type(GgufType::kI8) + raw<int8_t>(-3));
  const std::string bytes = file.bytes();
  const Gguf gguf = read(bytes);
  const auto message = [](const std::function<void()>& ask) {
    try {
      ask();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  expect_words(message([&] { gguf.integer("below"); }), {"below", "int8 -3", "not negative"});
  expect_words(message([&] { gguf.integer("list"); }), {"list", "array of 3 x string", "integer"});
  expect_words(message([&] { gguf.texts("general.architecture"); }), {"'none'", "list of texts"});
  expect_words(message([&] { gguf.numbers("list"); }), {"list", "float32"});
  expect_words(message([&] { gguf.integers("wide"); }), {"wide", "integers"});
  expect_words(message([&] { gguf.flag("general.architecture"); }), {"'none'", "true or false"});
  expect_words(message([&] { gguf.text("malformed"); }), {"malformed", "UTF-8"});
  expect_words(message([&] { gguf.fail("missing", "a size"); }), {"missing is missing", "a size"});
}

TEST(Gguf, ReadsTensorsOutermostDimensionFirst) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder file = good();
    file.version = version;
    const std::string bytes = file.bytes();
    const Gguf gguf = read(bytes);
    ASSERT_EQ(gguf.tensors().size(), 2u);
    EXPECT_EQ(gguf.tensors().at("first").describe(), "F32[3, 2]");
    EXPECT_EQ(to_floats(gguf.tensors().at("first")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(to_floats(gguf.tensors().at("second")), (std::vector<float>{1, -2}));
  }
}

TEST(Gguf, HonoursTheAlignmentThatTheFileNames) {
  GgufBuilder file = good();
  file.add("general.alignment", 8u);
  file.tensors[1].offset = 24;
  file.data = file.data.substr(0, 24) + raw<uint16_t>(0x3c00) + raw<uint16_t>(0);
  // The builder aligns to 32, which 8 divides; only the place of the data may differ.
  std::string bytes = file.bytes();
  const size_t infos = bytes.find(raw_text("second")) + 8 + 6 + 4 + 8 + 4 + 8;
  bytes = bytes.substr(0, (infos + 7) / 8 * 8) + file.data;
  EXPECT_EQ(to_floats(read(bytes).tensors().at("second")), (std::vector<float>{1, 0}));
}

TEST(Gguf, BlocksHoldWhatTheReferenceMakesOfThem) {
  const MappedFile mapped(std::string(kFolder) + "blocks.gguf");
  const Gguf gguf(mapped.path(), mapped.bytes());
  const Safetensors expected(std::string(kFolder) + "blocks.safetensors");
  for (const char* name : {"Q8_0", "Q4_0"}) {
    const std::vector<float> want = expected.floats(name);
    const std::vector<float> got = to_floats(gguf.tensors().at(name));
    ASSERT_EQ(gguf.tensors().at(name).shape, expected.at(name).shape);
    ASSERT_EQ(got.size(), 1024u);
    // Bits, so that -0 is not 0.
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << name;
  }
}

struct Damage {
  const char* name;
  std::function<void(GgufBuilder&)> edit;
  std::vector<std::string> words;
};

class HostileGguf : public ::testing::TestWithParam<Damage> {};

TEST_P(HostileGguf, IsRefusedWithOneHelpfulLine) {
  GgufBuilder file = good();
  GetParam().edit(file);
  const std::string text = refusal(file.bytes());
  ASSERT_NE(text, "");
  expect_words(text, GetParam().words);
}

constexpr uint64_t kHuge = uint64_t{1} << 63;

const Damage kDamages[] = {
    {"Version1", [](GgufBuilder& f) { f.version = 1; }, {"version 1", "2 or 3"}},
    {"Version4", [](GgufBuilder& f) { f.version = 4; }, {"version 4"}},
    {"BigEndian", [](GgufBuilder& f) { f.version = 0x03000000; }, {"big-endian"}},
    {"KeyTwice", [](GgufBuilder& f) { f.keys.push_back(f.keys[0]); }, {"architecture", "twice"}},
    {"EmptyKey", [](GgufBuilder& f) { f.add("", 1u); }, {"empty"}},
    {"UnknownType",
     [](GgufBuilder& f) { f.keys.push_back(raw_text("key") + raw<uint32_t>(13)); },
     {"key", "unknown type 13"}},
    {"ArrayOfArrays",
     [](GgufBuilder& f) { f.add_array("key", GgufType::kArray, 0, ""); },
     {"key", "array of arrays"}},
    {"LongArray",
     [](GgufBuilder& f) { f.add_array("key", GgufType::kU64, kHuge, ""); },
     {"9223372036854775808 elements of key key", "cut off"}},
    {"ArrayWhoseBytesOverflow",
     [](GgufBuilder& f) { f.add_array("key", GgufType::kU64, (kHuge >> 2) + 1, raw(kHuge)); },
     {"elements of key key", "cut off"}},
    {"LongString",
     [](GgufBuilder& f) {
       f.keys.push_back(raw_text("key") + testing::raw_type(GgufType::kString) + raw(kHuge));
     },
     {"key", "9223372036854775808 bytes", "cut off"}},
    {"LongKey", [](GgufBuilder& f) { f.keys.push_back(raw(UINT64_MAX)); }, {"cut off"}},
    {"NoAlignment", [](GgufBuilder& f) { f.add("general.alignment", 0u); }, {"power of two"}},
    {"OddAlignment", [](GgufBuilder& f) { f.add("general.alignment", 24u); }, {"power of two"}},
    {"WideAlignment",
     [](GgufBuilder& f) { f.add("general.alignment", uint32_t{1} << 31); },
     {"tensor first has 0 bytes"}},
    {"AlignmentThatIsNone",
     [](GgufBuilder& f) { f.add("general.alignment", std::string("32")); },
     {"general.alignment"}},
    {"TensorTwice",
     [](GgufBuilder& f) { f.add_floats("first", {1}, {1}); },
     {"tensor first", "twice"}},
    {"EmptyName", [](GgufBuilder& f) { f.tensors[0].name = ""; }, {"empty"}},
    {"NoDimensions", [](GgufBuilder& f) { f.tensors[0].sizes = {}; }, {"first", "0 dimensions"}},
    {"FiveDimensions",
     [](GgufBuilder& f) {
       f.tensors[0].sizes = {2, 3, 1, 1, 1};
     },
     {"first", "5 dimensions", "1 to 4"}},
    {"SizeZero",
     [](GgufBuilder& f) {
       f.tensors[0].sizes = {2, 0};
     },
     {"first", "size 0"}},
    {"SizesThatOverflow",
     [](GgufBuilder& f) {
       f.tensors[0].sizes = {kHuge, 2, 1, 1};
     },
     {"first", "64 bits"}},
    {"BytesThatOverflow",
     [](GgufBuilder& f) { f.tensors[0].sizes = {kHuge >> 1}; },
     {"first", "64 bits"}},
    {"TooLarge", [](GgufBuilder& f) { f.tensors[1].sizes = {3}; }, {"second", "expected 6"}},
    {"OffsetOutside",
     [](GgufBuilder& f) { f.tensors[0].offset = 1 << 20; },
     {"first", "1048576", "cut off"}},
    {"OffsetAtTheEndOfNumbers",
     [](GgufBuilder& f) { f.tensors[0].offset = UINT64_MAX - 31; },
     {"first", "cut off"}},
    {"OffsetUnaligned", [](GgufBuilder& f) { f.tensors[1].offset = 34; }, {"second", "multiple"}},
    {"Overlap", [](GgufBuilder& f) { f.tensors[1].offset = 0; }, {"first", "second", "overlap"}},
    {"TypeOfALaterTime",
     [](GgufBuilder& f) { f.tensors[0].type = 1000; },
     {"first", "unknown type, number 1000"}},
    {"TypeThatIsNotRead",
     [](GgufBuilder& f) { f.tensors[0].type = 9; },
     {"first is Q8_1", "Q8_0", "llama-quantize"}},
    {"RowsOfPartialBlocks",
     [](GgufBuilder& f) { f.tensors[0].type = 8; },
     {"first", "whole blocks of 32"}},
};

INSTANTIATE_TEST_SUITE_P(All, HostileGguf, ::testing::ValuesIn(kDamages),
                         [](const auto& test) { return test.param.name; });

TEST(Gguf, CountsOfThingsThatCannotBeThereAreRefused) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1000}, kHuge, UINT64_MAX}) {
    for (const size_t place : {8u, 16u}) {
      std::string bytes = good().bytes();
      bytes.replace(place, 8, raw(count));
      EXPECT_NE(refusal(bytes), "") << count << " at " << place;
    }
  }
}

TEST(Gguf, IsRefusedWhereverItIsCutOff) {
  const std::string bytes = good().bytes();
  ASSERT_EQ(refusal(bytes), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "") << "cut to " << size << " bytes";
  }
}

// Flipped bits may mean something else, but never anything outside the file.
TEST(Gguf, StandsEveryFlippedBit) {
  const std::string bytes = good().bytes();
  size_t read_well = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      const Gguf gguf = read(changed);
      for (const auto& [name, tensor] : gguf.tensors()) static_cast<void>(to_floats(tensor));
      ++read_well;
    } catch (const InputError&) {
    }
  }
  // Those of names, texts and values.
  EXPECT_GT(read_well, 100u);
}

}  // namespace
}  // namespace oxbow::convert
