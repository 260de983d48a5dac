#include "converter/formats/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "converter/testing/torch_bytes.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using testing::global;
using ::testing::HasSubstr;
using testing::integer;
using testing::little;
using testing::text;

Pickle read(const std::string& bytes) {
  return read_pickle("here", std::as_bytes(std::span(bytes)));
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("here, byte "));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

std::string repeated(const std::string& part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

/// The value as Python would print it.
std::string show(const Pickle& pickle, PickleRef ref) {
  const PickleNode& node = pickle[ref];
  std::string list;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const bool is_value = node.kind == PickleKind::kDict && i % 2 == 1;
    list += (i == 0 ? "" : is_value ? ": " : ", ") + show(pickle, node.items[i]);
  }
  switch (node.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return node.integer != 0 ? "True" : "False";
    case PickleKind::kInteger:
      return std::to_string(node.integer);
    case PickleKind::kHugeInteger:
      return "huge";
    case PickleKind::kReal:
      return std::to_string(node.real);
    case PickleKind::kText:
      return "'" + std::string(node.text) + "'";
    case PickleKind::kList:
      return "[" + list + "]";
    case PickleKind::kTuple:
      return "(" + list + ")";
    case PickleKind::kDict:
      return "{" + list + "}";
    case PickleKind::kGlobal:
      return std::string(node.text);
    case PickleKind::kCall:
      return std::string(node.text) + show(pickle, node.target);
    case PickleKind::kPersistent:
      return "id" + show(pickle, node.target);
  }
  return "?";
}
std::string shown(const std::string& bytes) {
  const Pickle pickle = read(bytes);
  EXPECT_EQ(pickle.size, bytes.size());
  return show(pickle, pickle.root);
}

TEST(Pickle, ReadsPlainValues) {
  using namespace std::string_literals;
  EXPECT_EQ(shown("\x80\x02(N\x88\x89K\xffM\xff\xffJ\xfe\xff\xff\xfft."s),
            "(None, True, False, 255, 65535, -2)");
  EXPECT_EQ(shown("(\x8a\x00\x8a\x01\xff\x8a\x02\xff\x00t."s), "(0, -1, 255)");
  EXPECT_EQ(shown("(\x8a\x09"s + std::string(9, '\1') + "\x8b\x01\0\0\0\x05t."s), "(huge, 5)");
  EXPECT_EQ(shown("G\x3f\xf8\0\0\0\0\0\0."s), "1.500000");
  EXPECT_EQ(shown("(U\x01"
                  "aC\x01"
                  "b\x8c\x01"
                  "cT\x01\0\0\0dB\x01\0\0\0eX\x01\0\0\0ft."s),
            "('a', 'b', 'c', 'd', 'e', 'f')");
  EXPECT_EQ(shown("\x80\x04\x95\0\0\0\0\0\0\0\0\x8d\x01\0\0\0\0\0\0\0z."s), "'z'");
}

TEST(Pickle, ReadsContainersAndWhatIsSharedOnce) {
  using namespace std::string_literals;
  EXPECT_EQ(shown("](K\1K\2e]a]q\7aK\3a."s), "[1, 2, [], [], 3]");
  EXPECT_EQ(shown("}X\1\0\0\0aK\1sX\1\0\0\0bK\2s."s), "{'a': 1, 'b': 2}");
  EXPECT_EQ(shown("(K\1K\2d."s), "{1: 2}");
  EXPECT_EQ(shown("(K\1K\2lK\1\x85\x86."s), "([1, 2], (1))");
  EXPECT_EQ(shown("K\1\x94K\2\x94h\1h\0\x87."s), "(2, 2, 1)");
  EXPECT_EQ(shown("K\1(K\2K\3"
                  "1K\4"
                  "02\x86."s),
            "(1, 1)");
}

TEST(Pickle, ReadsDictionariesOfClasses) {
  const std::string ordered = global("collections", "OrderedDict");
  EXPECT_EQ(shown(ordered + ")R(" + text("a") + "K\1u}" + text("_metadata") + "K\2sb."),
            "{'a': 1}");
  EXPECT_EQ(shown(ordered + "](](" + text("a") + "K\1ee\x85R."), "{'a': 1}");
  EXPECT_EQ(shown(global("argparse", "Namespace") + ")\x81}" + text("a") + "K\1sb."), "{'a': 1}");
  EXPECT_EQ(shown(text("collections") + text("OrderedDict") + "\x93)R."), "{}");
}

TEST(Pickle, WritesCallsDownWithoutMakingThem) {
  EXPECT_EQ(shown(global("torch._utils", "_rebuild_tensor_v2") + "K\1\x85R."),
            "_rebuild_tensor_v2(1)");
  EXPECT_EQ(shown(global("torch.cuda", "FloatStorage") + "\x85Q."), "id(torch.FloatStorage)");
}

TEST(Pickle, RefusesOtherGlobalsByName) {
  const std::string argument = text("echo") + "\x85";
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"posix", "system"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "eval"},
                                                        {"torch._utils", "_rebuild_qtensor"},
                                                        {"torch", "load"},
                                                        {"collections", "OrderedDict.fromkeys"},
                                                        {"torch.serialization", "FloatStorage"}}) {
    const std::string words = module + "." + name;
    EXPECT_THAT(refusal(global(module, name) + argument + "R."),
                HasSubstr("byte 0: names " + words + ", expected only"));
    EXPECT_THAT(refusal(text(module) + text(name) + "\x93" + argument + "R."),
                HasSubstr("names " + words));
    EXPECT_THAT(refusal("(" + text("echo") + "i" + module + "\n" + name + "\n."),
                HasSubstr("makes an object of " + words));
    EXPECT_THAT(refusal("(" + global(module, name) + text("echo") + "o."), HasSubstr(words));
    EXPECT_THAT(refusal(global(module, name) + argument + "\x81."), HasSubstr(words));
    EXPECT_THAT(refusal(global(module, name) + argument + "}\x92."), HasSubstr(words));
    EXPECT_THAT(refusal(global(module, name) + "."), HasSubstr(words));
  }
  EXPECT_THAT(refusal(global("a\tb", "c\x1b[31m")), HasSubstr("names a?b.c?[31m,"));
  EXPECT_THAT(refusal("(" + global("argparse", "Namespace") + "o."), HasSubstr("opcode 0x6f"));
}

TEST(Pickle, RefusesWhatIsNoDataByItsPlace) {
  using namespace std::string_literals;
  const std::string ordered = global("collections", "OrderedDict");
  const std::pair<std::string, std::string> cases[] = {
      {"", "byte 0: needs 1 more bytes"},
      {".", "empty stack"},
      {"N0.", "empty stack"},
      {"N(.", "inside a list"},
      {"N(0R.", "empty stack"},
      {"N(\x85.", "byte 2: takes a value from an empty stack"},
      {"t.", "without a beginning"},
      {"\x80\x06N.", "protocol 6"},
      {"\x8f.", "opcode 0x8f"},
      {"I1\n.", "opcode 0x49"},
      {"\x82\x01.", "opcode 0x82"},
      {"h\x05.", "value 5, never set"},
      {"j\xff\xff\xff\xff.", "value 4294967295, never set"},
      {"\x8b\xff\xff\xff\xff.", "negative length"},
      {"X\xff\xff\xff\x7f"s + "abc", "needs 2147483647 more bytes, there are 3"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s + "abc", "needs 18446744073709551615 more bytes"},
      {"cos", "name without end"},
      {"cos\nsystem", "name without end"},
      {"NK\1a.", "adds elements to what is not"},
      {"]K\1K\2s.", "adds elements to what is not"},
      {"}(K\1u.", "key without a value"},
      {"(K\1d.", "key without a value"},
      {"NN\x93.", "not a text"},
      {"N)R.", "calls what is not a function"},
      {ordered + "NR.", "calls without a tuple"},
      {ordered + "NN\x86R.", "more than one list"},
      {ordered + "N\x85R.", "not a list"},
      {ordered + "]Na\x85R.", "not pairs"},
      {global("torch", "FloatStorage") + ")R.", "calls torch.FloatStorage"},
      {global("argparse", "Namespace") + "N\x85R.", "Namespace of arguments"},
      {global("argparse", "Namespace") + ")R}K\1K\2sb}b.", "twice"},
      {global("argparse", "Namespace") + ")RNb.", "sets attributes"},
      {"]}b.", "sets attributes"},
  };
  for (const auto& [bytes, words] : cases) {
    EXPECT_THAT(refusal(bytes), HasSubstr(words)) << bytes;
  }
}

TEST(Pickle, StandsDepthCyclesAndBombs) {
  using namespace std::string_literals;
  // 100,000 tuples in each other.
  EXPECT_EQ(read(")" + repeated("\x85", 100000) + ".").nodes.size(), 100001u);
  EXPECT_THAT(refusal(repeated("(", 100000) + "."), HasSubstr("inside a list"));
  // A list that contains itself, and a dictionary that does.
  const Pickle cycle = read("]q\0h\0a."s);
  EXPECT_EQ(cycle[cycle.root].items, std::vector<PickleRef>{cycle.root});
  EXPECT_EQ(read("}q\0(K\1h\0u."s).nodes.size(), 2u);
  // Each list holds the one before twice: 2^1000 elements for who follows them all.
  EXPECT_EQ(read("]" + repeated("q\1](h\1h\1e", 1000) + ".").nodes.size(), 1001u);
  // The same dictionary again and again into new namespaces.
  const std::string big = "}(" + repeated("K\1K\1", 4000) + "uq\1" +
                          global("argparse", "Namespace") + "q\2" +
                          repeated("0h\2)\x81h\1b", 10000) + ".";
  EXPECT_THAT(refusal(big), HasSubstr("references"));
  EXPECT_THAT(refusal(repeated("N", 5000000)), HasSubstr("more than 4194304 values"));
  EXPECT_THAT(refusal("N" + repeated("2", 20000000)), HasSubstr("references"));
}

}  // namespace
}  // namespace oxbow::convert
