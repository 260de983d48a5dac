// Any bytes as a table of vectors (oxbow_index.h): refused, or searched without harm, with results in their order.

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/api/oxbow_index.h"
#include "tests/fuzz/broken.h"

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
/// What a table needs, and a mapped file has.
constexpr size_t kAlignment = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oxbow::testing::broken;
  constexpr size_t kChoices = 2;
  if (size < kChoices) return 0;
  const size_t bytes = size - kChoices;
  const std::unique_ptr<void, Free> table(
      std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment));
  std::memcpy(table.get(), data + kChoices, bytes);
  oxb_error error = OXB_ERROR_INIT;
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  if (oxb_index_get_info(table.get(), bytes, &info, &error) != OXB_OK) {
    if (error.text[0] == '\0') broken("a refusal has words");
    return 0;
  }
  const uint32_t k = 1 + data[0] % 8;
  const uint64_t first = data[1] % (info.count + 1), count = info.count - first;
  std::array<std::vector<float>, 3> queries;
  for (size_t q = 0; q < queries.size(); ++q) {
    for (uint32_t i = 0; i < info.width; ++i) {
      queries[q].push_back(static_cast<float>(data[(q + i) % size]) - 128.0f);
    }
  }
  queries[2][0] = NAN;
  for (const std::vector<float>& query : queries) {
    std::vector<uint64_t> ids(k);
    std::vector<float> scores(k);
    if (oxb_index_search(table.get(), bytes, query.data(), 1, first, count, k, ids.data(),
                         scores.data(), &error) != OXB_OK) {
      broken("a table can be searched:", error.text);
    }
    for (uint32_t i = 0; i < k; ++i) {
      if (ids[i] != UINT64_MAX && (ids[i] < first || ids[i] >= first + count)) {
        broken("a result is of the range");
      }
      if (i > 0 && scores[i] > scores[i - 1]) broken("results are in their order");
    }
  }
  return 0;
}
