#include "converter/formats/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "converter/formats/open_tensor_file.h"
#include "converter/testing/torch_bytes.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::dict_pickle;
using ::testing::ElementsAre;
using testing::global;
using ::testing::HasSubstr;
using testing::integer;
using testing::old_torch_bytes;
using testing::PickledTensor;
using testing::text;
using testing::torch_bytes;
using testing::tuple;

TorchContents read(const std::string& bytes, const std::string& key = "") {
  return read_torch("a.pt", std::as_bytes(std::span(bytes)), key);
}

std::string refusal(const std::string& bytes, const std::string& key = "") {
  try {
    read(bytes, key);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("a.pt"));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

std::vector<std::string> names(const TorchContents& contents) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : contents.tensors) out.push_back(name);
  return out;
}

std::string plain() { return dict_pickle({{"w", PickledTensor().bytes()}}); }

TEST(TorchFile, BothLayoutsGiveTheSame) {
  const std::string transposed =
      dict_pickle({{"w", PickledTensor{.sizes = {3, 2}, .strides = {1, 3}}.bytes()}});
  for (const std::string& bytes : {torch_bytes(transposed), old_torch_bytes(transposed)}) {
    const TorchContents contents = read(bytes);
    EXPECT_THAT(to_floats(contents.tensors.at("w")), ElementsAre(0, 3, 1, 4, 2, 5));
  }
}

TEST(TorchFile, ReadsViewsOfStoragesAsOlderVersionsWroteThem) {
  const auto view = [](int64_t offset, int64_t size) {
    return old_torch_bytes(dict_pickle(
        {{"w", PickledTensor{.offset = 1,
                             .sizes = {2},
                             .strides = {1},
                             .view = "(" + text("9") + integer(offset) + integer(size) + "t"}
                   .bytes()}}));
  };
  const std::string good = view(2, 3);
  EXPECT_THAT(to_floats(read(good).tensors.at("w")), ElementsAre(3, 4));
  EXPECT_THAT(refusal(view(2, 2)), HasSubstr("leaves its storage of 8 bytes"));
  EXPECT_THAT(refusal(view(4, 3)), HasSubstr("a part of a storage that leaves its 6 elements"));
  EXPECT_THAT(refusal(view(-1, 3)), HasSubstr("has the size -1"));
  EXPECT_THAT(refusal(view(INT64_MAX, INT64_MAX)), HasSubstr("leaves its 6 elements"));
}

TEST(TorchFile, ReadsParametersUntypedStoragesAndOldTensors) {
  const std::string id = "(" + text("storage") + global("torch.storage", "UntypedStorage") +
                         text("0") + text("cpu") + integer(24) + "tQ";
  const std::string rest = integer(1) + tuple({2}) + tuple({2});
  const std::string bytes = torch_bytes(dict_pickle({
      {"parameter", global("torch._utils", "_rebuild_parameter") + "(" + PickledTensor().bytes() +
                        "\x88" + global("collections", "OrderedDict") + ")RtR"},
      {"version3", global("torch._utils", "_rebuild_tensor_v3") + "(" + id + rest + "\x89" + "N" +
                       global("torch", "float32") + "}tR"},
      {"version1", global("torch._utils", "_rebuild_tensor") + "((" + text("storage") +
                       global("torch", "IntStorage") + text("0") + text("cpu") + integer(6) + "tQ" +
                       rest + "tR"},
  }));
  const TorchContents contents = read(bytes);
  EXPECT_THAT(to_floats(contents.tensors.at("parameter")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(to_floats(contents.tensors.at("version3")), ElementsAre(1, 3));
  EXPECT_EQ(contents.tensors.at("version1").describe(), "I32[2]");
}

TEST(TorchFile, RefusesTensorsThatLie) {
  const std::pair<PickledTensor, std::string> cases[] = {
      {{.sizes = {-2, 3}}, "tensor w has the size -2"},
      {{.strides = {-3, 1}}, "tensor w has the size -3"},
      {{.offset = -1}, "tensor w has the size -1"},
      {{.elements = -6}, "tensor w has the size -6"},
      {{.elements = 7}, "tensor w needs a storage of 7 elements, there are only 24 bytes"},
      {{.elements = INT64_MAX}, "tensor w needs a storage"},
      {{.elements = 5}, "tensor w has 20 bytes, expected 24 for F32[2, 3]"},
      {{.key = "1"}, "tensor w is in data/1, which is not in the file"},
      {{.key = "../data.pkl"}, "which is not in the file"},
      {{.sizes = {3, 3}}, "tensor w has 24 bytes, expected 36"},
      {{.sizes = {2}, .strides = {6}}, "leaves its storage"},
      {{.sizes = {2, 3, 1}}, "has 3 sizes and 2 strides"},
      {{.sizes = std::vector<int64_t>(17, 1)}, "17 sizes"},
      {{.sizes = {INT64_MAX, INT64_MAX}}, "64 bits"},
      {{.sizes = {INT64_MAX, 2}, .strides = {0, 1}}, "64 bits"},
      {{.sizes = {1 << 20, 2}, .strides = {0, 1}}, "repeated"},
      {{.storage = "float32"}, "has a storage of type torch.float32"},
  };
  for (const auto& [tensor, words] : cases) {
    EXPECT_THAT(refusal(torch_bytes(dict_pickle({{"w", tensor.bytes()}}))), HasSubstr(words));
  }
  std::string negative = PickledTensor().bytes();
  negative.insert(negative.size() - 2, "}" + text("neg") + "\x88s");
  EXPECT_THAT(refusal(torch_bytes(dict_pickle({{"w", negative}}))), HasSubstr("negative view"));
  const std::string call = global("torch._utils", "_rebuild_tensor_v2");
  const std::string parameter = global("torch._utils", "_rebuild_parameter");
  for (const std::string& value :
       {call + ")R", call + "N\x85R", call + "]\x85R", call + "NQ\x85R", call + ")Q\x85R",
        parameter + ")R", parameter + "N\x85R", parameter + parameter + ")R\x85R"}) {
    EXPECT_NE(refusal(torch_bytes(dict_pickle({{"w", value}}))), "accepted");
    EXPECT_NE(refusal(old_torch_bytes(dict_pickle({{"w", value}}))), "accepted");
  }
}

TEST(TorchFile, OldStoragesMustBeWhatTheirTensorsSay) {
  EXPECT_THAT(refusal(old_torch_bytes(plain(), 5)), HasSubstr("has 5 elements, expected 6"));
  EXPECT_THAT(refusal(old_torch_bytes(plain(), -1)), HasSubstr("elements, expected 6"));
  const PickledTensor huge{.elements = INT64_MAX};
  EXPECT_THAT(refusal(old_torch_bytes(dict_pickle({{"w", huge.bytes()}}), INT64_MAX)),
              HasSubstr("24 bytes left"));
  EXPECT_THAT(refusal(old_torch_bytes(
                  dict_pickle({{"w", PickledTensor().bytes()},
                               {"v", PickledTensor{.storage = "HalfStorage"}.bytes()}}))),
              HasSubstr("storage 0 has two types"));
  EXPECT_THAT(refusal(old_torch_bytes(dict_pickle({{"w", PickledTensor{.key = "1"}.bytes()}}))),
              HasSubstr("one that no tensor uses"));
}

TEST(TorchFile, FindsTheOnlyDictionaryWithWeights) {
  const std::string weights = "}(" + text("w") + PickledTensor().bytes() + "u";
  const std::string counter =
      PickledTensor{.storage = "ByteStorage", .sizes = {6}, .strides = {1}}.bytes();
  const TorchContents nested = read(torch_bytes(
      dict_pickle({{"epoch", "K\3"}, {"rng", counter}, {"a", "}(" + text("b") + weights + "u"}})));
  EXPECT_THAT(names(nested), ElementsAre("w"));
  EXPECT_THAT(nested.notes, ElementsAre("took the tensors of the dictionary a.b"));

  const std::string two = torch_bytes(
      dict_pickle({{"model", weights}, {"ema", "}(" + text("model") + weights + "u"}, {"x", "]"}}));
  EXPECT_THAT(refusal(two), HasSubstr("several dictionaries: model, ema.model; choose one with"));
  EXPECT_THAT(names(read(two, "ema.model")), ElementsAre("w"));
  EXPECT_THAT(names(read(two, "ema")), ElementsAre("w"));
  EXPECT_THAT(refusal(two, "emma"), HasSubstr("no dictionary emma"));
  EXPECT_THAT(refusal(two, "x"), HasSubstr("no dictionary x"));
  EXPECT_THAT(refusal(two, "model.w"), HasSubstr("no dictionary model.w"));
  EXPECT_THAT(refusal(two, "model."), HasSubstr("no dictionary model."));

  const std::string both =
      torch_bytes(dict_pickle({{"loss", PickledTensor().bytes()}, {"model", weights}}));
  EXPECT_THAT(refusal(both), HasSubstr("several dictionaries: ., model;"));
  EXPECT_THAT(names(read(both, ".")), ElementsAre("loss"));
  EXPECT_THAT(names(read(both, "model")), ElementsAre("w"));

  EXPECT_THAT(refusal(torch_bytes(dict_pickle({{"rng", counter}}))), HasSubstr("no dictionary"));
  EXPECT_THAT(refusal(torch_bytes("].")), HasSubstr("does not hold a dictionary"));
}

TEST(TorchFile, StandsDictionariesThatHoldThemselves) {
  const std::string weights = text("w") + PickledTensor().bytes();
  EXPECT_THAT(names(read(torch_bytes("}q\1(" + text("self") + "h\1" + weights + "u."))),
              ElementsAre("w"));
  // 100,000 dictionaries in each other, each under the same long name.
  std::string deep = text(std::string(10000, 'n')) + "q\1" + "0}";
  for (int i = 0; i < 100000; ++i) deep += "q\2}h\1h\2s";
  EXPECT_THAT(refusal(torch_bytes(deep + ".")), HasSubstr("no dictionary that holds"));
}

TEST(TorchFile, LeavesOutThePrefixOfParallelTraining) {
  const std::string tensor = PickledTensor().bytes();
  EXPECT_THAT(names(read(torch_bytes(dict_pickle({{"module.a", tensor}, {"module.b", tensor}})))),
              ElementsAre("a", "b"));
  EXPECT_THAT(names(read(torch_bytes(dict_pickle({{"module.a", tensor}, {"b", tensor}})))),
              ElementsAre("b", "module.a"));
  EXPECT_THAT(refusal(torch_bytes(dict_pickle({{"a", tensor}, {"a", tensor}}))),
              HasSubstr("tensor a is in the dictionary twice"));
}

TEST(TorchFile, LooksAtWhatElseAnArchiveSays) {
  const auto with = [](const std::string& name, const std::string& data) {
    return testing::zip_bytes({{.name = "x/data.pkl", .data = plain()},
                               {.name = "x/data/0", .data = std::string(24, '\0')},
                               {.name = name, .data = data}});
  };
  EXPECT_EQ(refusal(with("x/byteorder", "little")), "accepted");
  EXPECT_EQ(refusal(with("x/.data/serialization_id", "17")), "accepted");
  EXPECT_THAT(refusal(with("x/byteorder", "big")), HasSubstr("byte order big, expected little"));
  EXPECT_THAT(refusal(with("y/data.pkl", "")), HasSubstr("two members called data.pkl"));
  EXPECT_THAT(refusal(testing::zip_bytes({{.name = "xdata.pkl", .data = plain()}})),
              HasSubstr("a zip file without data.pkl"));
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_TRUE(looks_like_torch(std::as_bytes(std::span(tar))));
  EXPECT_THAT(refusal(tar), HasSubstr("save it again with torch.save"));
}

/// Nothing but an InputError may come of it; the values of what is accepted can be read.
void read_values(const std::string& bytes) {
  try {
    for (const auto& [name, tensor] : read(bytes).tensors) {
      is_float(tensor.dtype) ? void(to_floats(tensor)) : void(to_integers(tensor));
    }
  } catch (const InputError&) {
  }
}

TEST(TorchFile, CutOffAnywhereItIsRefused) {
  for (const std::string& bytes : {torch_bytes(plain()), old_torch_bytes(plain())}) {
    ASSERT_EQ(refusal(bytes), "accepted");
    for (size_t size = 4; size < bytes.size(); ++size) {
      // A copy of exactly this size, so that sanitizers see the first byte beyond it.
      const std::vector<char> exact(bytes.begin(), bytes.begin() + static_cast<long>(size));
      EXPECT_NE(refusal(std::string(exact.begin(), exact.end())), "accepted") << size;
    }
  }
}

TEST(TorchFile, StandsFlippedBits) {
  std::mt19937 random(11);
  for (const char* name : {"bin", "old_strided", "fairseq/checkpoint_best.pt"}) {
    std::string path = testing::source_dir() + "/tests/formats/cases/" + name;
    if (!path.ends_with(".pt")) path += "/pytorch_model.bin";
    const std::string good = read_file(path);
    ASSERT_EQ(refusal(good), "accepted");
    for (int i = 0; i < 3000; ++i) {
      std::string bad = good;
      for (int flips = 1 + i % 3; flips > 0; --flips) {
        bad[random() % bad.size()] ^= static_cast<char>(1u << (random() % 8));
      }
      read_values(bad);
    }
  }
}

TEST(TensorFile, IsOpenedByItsContentAndNotByItsName) {
  const testing::TemporaryDirectory directory;
  const auto written = [&](const std::string& name, const std::string& bytes) {
    testing::write_text(directory / name, bytes);
    return directory / name;
  };
  const auto refused = [](const std::string& path, const std::string& key = "") -> std::string {
    try {
      open_tensor_file(path, key);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(open_tensor_file(written("a.safetensors", torch_bytes(plain())))->at("w").count, 6u);
  EXPECT_EQ(open_tensor_file(written("b.safetensors", old_torch_bytes(plain())))->at("w").count,
            6u);
  const std::string safetensors =
      written("c.bin", testing::safetensors_bytes(testing::FloatTensors{{"w", {{2}, {1, 2}}}}));
  EXPECT_EQ(open_tensor_file(safetensors)->at("w").count, 2u);
  EXPECT_THAT(refused(safetensors, "model"), HasSubstr("leave out --key"));
  EXPECT_THAT(refused(written("d.bin", "version https://git-lfs.github.com/spec/v1\n")),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(refused(written("e.bin", "\x89HDF\r\n")), HasSubstr("HDF5"));
  EXPECT_THAT(refused(written("f.bin", "x")), HasSubstr("neither a safetensors file nor"));
  EXPECT_THAT(refused(written("g.bin", std::string(1000, 'x'))), HasSubstr("neither"));
}

}  // namespace
}  // namespace oxbow::convert
