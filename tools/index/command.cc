// oxbow index: makes a table of vectors for exact search, and searches it.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "host/describe.h"
#include "host/io_file.h"
#include "host/safetensors.h"
#include "runtime/api/oxbow_index.h"
#include "tools/commands.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

constexpr size_t kAlignment = 64;

void check_index(oxb_status status, const oxb_error& error, const std::string& what) {
  if (status != OXB_OK) throw InputError(what + ": " + error.text);
}

struct Vectors {
  uint64_t count = 0;
  uint32_t width = 0;
  std::vector<float> values;
};

/// The tensor of this name, or the only one.
Vectors read_vectors(const std::string& path, const std::string& name) {
  const Safetensors file(path);
  if (name.empty() && file.tensors().size() != 1) {
    throw UsageError(path + " has " + std::to_string(file.tensors().size()) +
                     " tensors; choose one with --tensor NAME");
  }
  const std::string chosen = name.empty() ? file.tensors().begin()->first : name;
  const StoredTensor& tensor = file.at(chosen);
  if (tensor.shape.size() != 2 || tensor.shape[1] == 0 || tensor.shape[1] > OXB_INDEX_MAX_WIDTH) {
    throw InputError(path + ": " + chosen + " is " + tensor.describe() +
                     ", expected vectors of at most " + std::to_string(OXB_INDEX_MAX_WIDTH) +
                     " numbers, one in each row");
  }
  return {tensor.shape[0], static_cast<uint32_t>(tensor.shape[1]), file.floats(chosen)};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

int build(const Args& args) {
  const std::string path = *args.text("file"), output = args.text("output", "");
  if (output.empty()) throw UsageError("build needs -o FILE");
  refuse_overwriting(output, {path});
  const Vectors vectors = read_vectors(path, args.text("tensor", ""));
  const oxb_metric metric =
      args.choice("metric", "l2", {"l2", "dot"}) == "dot" ? OXB_METRIC_DOT : OXB_METRIC_L2;
  oxb_error error = OXB_ERROR_INIT;
  size_t bytes = 0;
  check_index(oxb_index_bytes(vectors.count, vectors.width, metric, &bytes, &error), error, path);
  const std::unique_ptr<void, Free> memory(
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  if (memory == nullptr) throw InputError(path + ": no memory for " + size_text(bytes));
  check_index(oxb_index_create(memory.get(), bytes, vectors.count, vectors.width, metric, &error),
              error, path);
  check_index(oxb_index_put(memory.get(), bytes, 0, vectors.values.data(), vectors.count, &error),
              error, path);
  const std::span<const std::byte> part(static_cast<const std::byte*>(memory.get()), bytes);
  write_atomically(output, std::span(&part, 1));
  std::printf("%s: %s of %u, %s\n", output.c_str(), count_text(vectors.count, "vector").c_str(),
              vectors.width, size_text(bytes).c_str());
  return kExitGood;
}

struct Results {
  std::vector<uint64_t> ids;
  std::vector<float> scores;
};

/// Each thread takes a range of the vectors; the best of all are the best of theirs.
Results search(std::span<const std::byte> table, const oxb_index_info& info, const Vectors& queries,
               uint32_t k, unsigned threads) {
  const size_t room = queries.count * k;
  std::vector<Results> parts(threads, {std::vector<uint64_t>(room), std::vector<float>(room)});
  std::vector<oxb_error> errors(threads);
  std::vector<oxb_status> statuses(threads, OXB_OK);
  const auto part = [&](unsigned t) {
    const uint64_t first = info.count / threads * t;
    const uint64_t end = t + 1 == threads ? info.count : info.count / threads * (t + 1);
    statuses[t] =
        oxb_index_search(table.data(), table.size(), queries.values.data(), queries.count, first,
                         end - first, k, parts[t].ids.data(), parts[t].scores.data(), &errors[t]);
  };
  std::vector<std::thread> workers;
  for (unsigned t = 1; t < threads; ++t) workers.emplace_back(part, t);
  part(0);
  for (std::thread& worker : workers) worker.join();
  for (unsigned t = 0; t < threads; ++t) check_index(statuses[t], errors[t], "search");
  Results all{std::vector<uint64_t>(room), std::vector<float>(room)};
  for (size_t q = 0; q < queries.count; ++q) {
    std::vector<size_t> at(threads, q * k);
    for (size_t i = q * k; i < (q + 1) * k; ++i) {
      // Ranges are in the order of ids: of equal ones the first stays in front.
      unsigned best = 0;
      for (unsigned t = 1; t < threads; ++t) {
        if (parts[t].scores[at[t]] > parts[best].scores[at[best]]) best = t;
      }
      all.ids[i] = parts[best].ids[at[best]];
      all.scores[i] = parts[best].scores[at[best]];
      if (at[best] + 1 < (q + 1) * k) ++at[best];
    }
  }
  return all;
}

int query(const Args& args) {
  const std::string path = *args.text("file");
  if (!args.has("queries")) throw UsageError("query needs QUERIES.safetensors");
  const MappedFile table(path);
  oxb_error error = OXB_ERROR_INIT;
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  check_index(oxb_index_get_info(table.bytes().data(), table.bytes().size(), &info, &error), error,
              path);
  const Vectors queries = read_vectors(*args.text("queries"), args.text("tensor", ""));
  if (queries.width != info.width) {
    throw InputError(*args.text("queries") + ": vectors of " + std::to_string(queries.width) +
                     ", the table has " + std::to_string(info.width));
  }
  const auto k = static_cast<uint32_t>(std::min<uint64_t>(
      args.integer("results", 2, 1, OXB_INDEX_MAX_RESULTS), std::max<uint64_t>(info.count, 1)));
  const auto threads = static_cast<unsigned>(args.integer("threads", 1, 1, 256));
  const Stopwatch watch;
  const Results results = search(table.bytes(), info, queries, k, threads);
  const double seconds = watch.seconds();
  if (args.has("json")) {
    nlohmann::json list = nlohmann::json::array();
    for (size_t q = 0; q < queries.count; ++q) {
      const auto begin = static_cast<ptrdiff_t>(q * k), end = begin + static_cast<ptrdiff_t>(k);
      list.push_back(
          {{"ids", std::vector<uint64_t>(results.ids.begin() + begin, results.ids.begin() + end)},
           {"scores",
            std::vector<float>(results.scores.begin() + begin, results.scores.begin() + end)}});
    }
    std::fputs(json_text({{"queries", list}, {"seconds", seconds}}).c_str(), stdout);
    return kExitGood;
  }
  for (size_t q = 0; q < queries.count; ++q) {
    for (size_t i = q * k; i < (q + 1) * k; ++i) {
      std::printf("%zu\t%llu\t%.6g\n", q, static_cast<unsigned long long>(results.ids[i]),
                  static_cast<double>(results.scores[i]));
    }
  }
  std::fprintf(stderr, "%s, %s; %.3f ms each\n",
               queries.count == 1 ? "1 query" : (grouped_text(queries.count) + " queries").c_str(),
               count_text(info.count, "vector").c_str(),
               1e3 * seconds / static_cast<double>(std::max<uint64_t>(queries.count, 1)));
  return kExitGood;
}

}  // namespace

void declare_index(Args& args) {
  args.positional("build|query", "make a table, or search one");
  args.positional("file",
                  "build: VECTORS.safetensors with one vector in each row; query: the table");
  args.positional("queries", "query: QUERIES.safetensors with one vector in each row", false);
  args.option("output", "FILE", "build: the table to write, by convention *.oxbx", 'o');
  args.option("tensor", "NAME", "which tensor of the .safetensors file (default: the only one)");
  args.option("metric", "NAME", "build: l2 (default), the nearest, or dot, the largest product");
  args.option("results", "K", "query: how many for each query (default 2)", 'k');
  args.option("threads", "N", "query: threads (default 1)");
  args.flag("json", "query: print JSON only");
}

int index_command(const Args& args) {
  const std::string what = *args.text("build|query");
  if (what == "build") return build(args);
  if (what == "query") return query(args);
  throw UsageError("word '" + printable(what) + "' is unknown; expected build or query");
}

}  // namespace oxbow::tools
