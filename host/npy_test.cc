#include "host/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "host/errors.h"

namespace oxbow {
namespace {

std::string npy(const std::string& descr, const std::string& order, const std::string& shape,
                const std::string& data, char version = 1) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(header.size());
  file += std::string(version == 1 ? 1 : 3, '\0');
  return file + header + data;
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

StoredTensor read(const std::string& file) {
  return read_npy("a.npy", std::as_bytes(std::span(file)));
}

std::string refusal(const std::string& file) {
  try {
    read(file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Npy, WhatIsWrittenIsRead) {
  const std::string file = npy_bytes({{1, -2.5f, 3}, {4, 5, 6}});
  EXPECT_EQ(file.size() % 64, 24u);
  const StoredTensor tensor = read(file);
  EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(to_floats(tensor), (std::vector<float>{1, -2.5f, 3, 4, 5, 6}));
}

TEST(Npy, ReadsBothOrdersAndVersions) {
  const std::string data = floats({1, 2, 3, 4, 5, 6});
  const std::string rows = npy("<f4", "False", "(2, 3)", data);
  const StoredTensor by_rows = read(rows);
  EXPECT_EQ(by_rows.shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(to_floats(by_rows), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::string columns = npy("<f4", "True", "(2, 3)", data, 2);
  EXPECT_EQ(to_floats(read(columns)), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  const std::string vector = npy("<f4", "False", "(6,)", data, 3);
  EXPECT_EQ(read(vector).shape, (std::vector<uint64_t>{6}));
  const std::string bytes = npy("|u1", "False", "(3,)", "\x01\x02\xff");
  EXPECT_EQ(to_integers(read(bytes)), (std::vector<int64_t>{1, 2, 255}));
}

TEST(Npy, RefusesWhatIsNoArray) {
  const std::string data = floats({1, 2, 3, 4, 5, 6});
  const std::string good = npy("<f4", "False", "(2, 3)", data);
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_NE(refusal(good.substr(0, cut)), "accepted") << cut;
  }
  EXPECT_NE(refusal(npy(">f4", "False", "(2, 3)", data)).find("little-endian"), std::string::npos);
  EXPECT_NE(refusal(npy("O", "False", "(2, 3)", data)).find("'O'"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "False", "(2, x)", data)).find("'x'"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "False", "2", data)).find("tuple"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "False", "(4294967296, 4294967296, 2)", data)), "accepted");
  EXPECT_NE(refusal(npy("<f4", "True", "(4294967296, 4294967296, 2)", data)), "accepted");
  EXPECT_NE(refusal(npy("<f4", "False", "(2, 3)", data, 9)).find("version"), std::string::npos);
}

}  // namespace
}  // namespace oxbow
