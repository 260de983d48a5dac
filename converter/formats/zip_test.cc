#include "converter/formats/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "converter/testing/torch_bytes.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using ::testing::HasSubstr;
using testing::little;
using testing::zip_bytes;
using testing::ZipMember;

std::map<std::string, std::string> read(const std::string& bytes) {
  std::map<std::string, std::string> out;
  for (const auto& [name, data] : read_zip("a.zip", std::as_bytes(std::span(bytes)))) {
    out[name] = std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }
  return out;
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("a.zip: "));
    return error.what();
  }
  return "accepted";
}

TEST(Zip, GivesMembersByName) {
  const std::map<std::string, std::string> expected = {{"x/a", "hello"}, {"x/b", ""}};
  EXPECT_EQ(read(zip_bytes({{.name = "x/", .data = ""},
                            {.name = "x/a", .data = "hello"},
                            {.name = "x/b", .data = ""}})),
            expected);
  EXPECT_EQ(read(zip_bytes({{.name = "x/a", .data = "hello", .wide = true},
                            {.name = "x/b", .data = "", .wide = true}})),
            expected);
}

TEST(Zip, FindsTheDirectoryByItsWideEndAndBehindAComment) {
  std::string zip = zip_bytes({{.name = "a", .data = "1"}, {.name = "b", .data = "22"}});
  std::string end = zip.substr(zip.size() - 22);
  zip.resize(zip.size() - 22);
  const uint64_t place = zip.size();
  uint32_t bytes = 0, begin = 0;
  std::memcpy(&bytes, end.data() + 12, 4);
  std::memcpy(&begin, end.data() + 16, 4);
  const auto wide_end = [&](uint64_t where) {
    return "PK\6\6" + little<uint64_t>(44) + std::string(12, '\0') + little<uint64_t>(2) +
           little<uint64_t>(2) + little<uint64_t>(bytes) + little<uint64_t>(begin) + "PK\6\7" +
           little<uint32_t>(0) + little(where) + little<uint32_t>(1);
  };
  std::string shown = end;
  std::memset(shown.data() + 8, 0xff, 12);
  EXPECT_EQ(read(zip + wide_end(place) + shown).size(), 2u);
  EXPECT_THAT(refusal(zip + wide_end(place + 1) + shown), HasSubstr("zip64 end"));
  EXPECT_THAT(refusal(zip + wide_end(UINT64_MAX - 3) + shown), HasSubstr("zip64 end"));
  EXPECT_THAT(refusal(zip + shown), HasSubstr("directory claims"));
  end[20] = 3;
  EXPECT_EQ(read(zip + end + "abc").size(), 2u);
  EXPECT_THAT(refusal(zip + end + "abcd"), HasSubstr("cut off"));
}

TEST(Zip, RefusesMembersByName) {
  struct Case {
    std::vector<ZipMember> members;
    std::string words;
  };
  const Case cases[] = {
      {{{.name = "a", .data = "1", .method = 8}}, "member a is compressed"},
      {{{.name = "a", .data = "1", .flags = 1}}, "member a is encrypted"},
      {{{.name = "a", .data = "1"}, {.name = "a", .data = "2"}}, "member a is in the file twice"},
      {{{.name = "a", .data = "1", .claimed_size = 1000}}, "member a claims 1000 bytes"},
      {{{.name = "a", .data = "1", .claimed_size = 0xfffffff0}}, "member a claims 4294967280"},
      {{{.name = "a", .data = "1", .claimed_place = 7}}, "member a is said to be at byte 7"},
      {{{.name = "a", .data = "1", .claimed_place = 0xfffffff0}}, "member a is said to be at byte"},
      {{{.name = "a", .data = "1", .claimed_size = 5}, {.name = "b", .data = "2"}},
       "members a and b overlap"},
      {{{.name = "a", .data = "1", .other_name = "b"}}, "member a has another name"},
      {{{.name = "b", .data = "1"}, {.name = "c", .data = "1", .other_name = "cc"}},
       "member c has another name"},
  };
  for (const Case& c : cases) EXPECT_THAT(refusal(zip_bytes(c.members)), HasSubstr(c.words));
}

TEST(Zip, CutOffAnywhereItIsRefused) {
  const std::string zip = zip_bytes({{.name = "a", .data = "1"}, {.name = "b", .data = "22"}});
  for (size_t size = 0; size < zip.size(); ++size) {
    EXPECT_NE(refusal(zip.substr(0, size)), "accepted") << size;
  }
}

}  // namespace
}  // namespace oxbow::convert
