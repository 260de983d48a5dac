#include "converter/blocks/adaptive_softmax.h"

#include <algorithm>
#include <map>

#include "host/errors.h"
#include "ops/adaptive_softmax/adaptive_softmax.h"

namespace oxbow::convert {
namespace {

/// Embedding width of a cluster; 0 when it was divided too often.
uint32_t cluster_width(const AdaptiveWords& words, size_t cluster) {
  uint32_t width = words.embedding_width;
  for (size_t i = 0; i < cluster; ++i) width /= words.division;
  return width;
}

/// With one table for all there is a projection only where widths differ.
bool has_projections(const AdaptiveWords& words) {
  return words.division != 1 || words.embedding_width != words.width;
}

/// The softmax at the end, whose tensors may be those of the embeddings.
class Head {
 public:
  Head(const AdaptiveWords& words, uint32_t x, const Checkpoint& checkpoint, GraphBuilder& builder,
       Parts& parts)
      : words_(words), x_(x), checkpoint_(checkpoint), builder_(builder), parts_(parts) {}

  void build() {
    const uint32_t head = first_cluster();
    std::vector<uint32_t> clusters;
    for (size_t i = 1; i < words_.clusters(); ++i) clusters.push_back(cluster(i));
    builder_.adaptive_logits(head, clusters);
  }

 private:
  /// The tensor that is in the checkpoint: `own`, or the one it is tied to.
  std::string stored(bool tied, const std::string& own, const std::string& embedding) {
    if (!tied) return own;
    checkpoint_.ignore_tensor(own);
    return embedding;
  }

  uint32_t projected(size_t cluster) {
    if (!has_projections(words_)) return x_;
    const bool tied = cluster < words_.tied_projections.size() && words_.tied_projections[cluster];
    const size_t shared = words_.division == 1 ? 0 : cluster;
    const std::string name =
        stored(tied, words_.head_prefix + "out_projs." + std::to_string(cluster),
               words_.embedding_prefix + "emb_projs." + std::to_string(shared));
    if (const auto found = projected_.find(name); found != projected_.end()) return found->second;
    const uint32_t in = words_.width, out = width(cluster);
    const uint32_t weight = builder_.weight(name + ".transposed", out, in,
                                            transposed(checkpoint_.matrix(name, in, out), in, out));
    return projected_[name] = builder_.linear("head" + std::to_string(cluster) + ".projected", x_,
                                              weight, GraphBuilder::kNone);
  }

  uint32_t width(size_t cluster) const { return cluster_width(words_, cluster); }

  std::string layer(size_t cluster) const {
    return "out_layers." + std::to_string(words_.division == 1 ? 0 : cluster);
  }
  std::string weight_name(size_t cluster) {
    const size_t table = words_.division == 1 ? 0 : cluster;
    return stored(words_.tied_words, words_.head_prefix + layer(cluster) + ".weight",
                  words_.embedding_prefix + "emb_layers." + std::to_string(table) + ".weight");
  }

  /// The cluster's rows of a tensor that holds those of all words if there is one table for all.
  std::vector<float> rows(size_t cluster, const std::vector<uint64_t>& row_shape,
                          const std::string& name) {
    const bool whole = words_.division != 1;
    std::vector<uint64_t> shape = {whole ? words_.words(cluster) : words_.vocabulary};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    std::vector<float> values = checkpoint_.tensor(name, shape);
    if (whole) return values;
    return rows_of(values, row_shape.empty() ? 1 : row_shape[0], words_.first_word(cluster),
                   words_.words(cluster));
  }

  /// Appends the rows of `tensor`, one for each cluster but the first, in the order of the clusters.
  void append_clusters(const std::string& tensor, const std::vector<uint64_t>& row_shape,
                       std::vector<float>* values) {
    if (words_.cutoffs.empty()) return;
    std::vector<uint64_t> shape = {words_.cutoffs.size()};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    const std::vector<float> stored_rows = checkpoint_.tensor(words_.head_prefix + tensor, shape);
    const size_t row_width = row_shape.empty() ? 1 : row_shape[0];
    for (size_t i = 0; i < words_.cutoffs.size(); ++i) {
      const size_t row = words_.reversed_clusters ? words_.cutoffs.size() - 1 - i : i;
      const std::vector<float> values_of_row = rows_of(stored_rows, row_width, row, 1);
      values->insert(values->end(), values_of_row.begin(), values_of_row.end());
    }
  }

  std::vector<float> bias(size_t cluster) {
    return rows(cluster, {}, words_.head_prefix + layer(cluster) + ".bias");
  }

  uint32_t first_cluster() {
    const uint32_t columns = words_.words(0) + static_cast<uint32_t>(words_.cutoffs.size());
    const uint32_t x = projected(0);
    std::vector<float> biases = bias(0);
    append_clusters(words_.cluster_bias, {}, &biases);
    const uint32_t bias_weight =
        builder_.weight(words_.head_prefix + "head.bias", 1, columns, std::move(biases));
    const std::string name = weight_name(0);
    // Without clusters this is the whole table, which the embedding may have read already.
    if (words_.cutoffs.empty()) {
      return builder_.linear("head0", x, parts_.matrix(name, columns, width(0)), bias_weight);
    }
    std::vector<float> values = rows(0, {width(0)}, name);
    append_clusters(words_.cluster_weight, {words_.embedding_width}, &values);
    return builder_.linear(
        "head0", x,
        builder_.weight(words_.head_prefix + "head.weight", columns, width(0), std::move(values)),
        bias_weight);
  }

  uint32_t cluster(size_t index) {
    const std::string label = "head" + std::to_string(index);
    const uint32_t count = words_.words(index);
    const std::string name = weight_name(index);
    const uint32_t weight = words_.division != 1
                                ? parts_.matrix(name, count, width(index))
                                : builder_.weight(words_.head_prefix + label + ".weight", count,
                                                  width(index), rows(index, {width(index)}, name));
    const uint32_t x = projected(index);
    return builder_.linear(
        label, x, weight,
        builder_.weight(words_.head_prefix + label + ".bias", 1, count, bias(index)));
  }

  const AdaptiveWords& words_;
  uint32_t x_;
  const Checkpoint& checkpoint_;
  GraphBuilder& builder_;
  Parts& parts_;
  /// By the name of the projection: clusters may share one.
  std::map<std::string, uint32_t> projected_;
};

}  // namespace

void read_adaptive_words(const Checkpoint& checkpoint, AdaptiveWords* words) {
  if (checkpoint.has_key("cutoffs")) words->cutoffs = checkpoint.sizes("cutoffs", 1, kMaxSize);
  words->division = checkpoint.size("div_val", 1, kMaxSize, words->division);
  words->embedding_width = checkpoint.size("d_embed", 1, kMaxSize, words->width);
  if (checkpoint.has_key("tie_projs")) words->tied_projections = checkpoint.flags("tie_projs");
  check_adaptive_words(checkpoint, words, "cutoffs", "div_val");
}

void check_adaptive_words(const Checkpoint& checkpoint, AdaptiveWords* words,
                          const std::string& cutoffs_key, const std::string& division_key) {
  std::vector<uint32_t>& cutoffs = words->cutoffs;
  if (cutoffs.size() > kMaxClusters) {
    checkpoint.refuse(cutoffs_key + " has " + std::to_string(cutoffs.size()) +
                      " elements, expected at most " + std::to_string(kMaxClusters));
    cutoffs.clear();
  }
  for (size_t i = 0; i < cutoffs.size(); ++i) {
    const uint32_t previous = words->first_word(i);
    if (cutoffs[i] > previous && cutoffs[i] < words->vocabulary) continue;
    checkpoint.refuse(cutoffs_key + " has " + std::to_string(cutoffs[i]) + " behind " +
                      std::to_string(previous) +
                      ", expected ascending numbers below the vocabulary's size, " +
                      std::to_string(words->vocabulary));
    cutoffs.clear();
  }
  if (cluster_width(*words, cutoffs.size()) == 0) {
    checkpoint.refuse(division_key + " is " + std::to_string(words->division) +
                      ", too much to divide the embeddings' width, " +
                      std::to_string(words->embedding_width) + ", by it " +
                      std::to_string(cutoffs.size()) + " times");
    cutoffs.clear();
  }
}

uint32_t embed_adaptive(const std::string& name, const AdaptiveWords& words, float scale,
                        GraphBuilder& builder, Parts& parts) {
  const auto table = [&](size_t cluster, uint32_t rows, uint32_t width) {
    return parts.matrix(
        words.embedding_prefix + "emb_layers." + std::to_string(cluster) + ".weight", rows, width);
  };
  const auto project = [&](const std::string& label, size_t cluster, uint32_t x, uint32_t width) {
    const std::string projection = words.embedding_prefix + "emb_projs." + std::to_string(cluster);
    return builder.linear(label, x, parts.matrix(projection, words.width, width),
                          GraphBuilder::kNone);
  };
  if (words.division == 1 || words.clusters() == 1) {
    const uint32_t weight = table(0, words.vocabulary, words.embedding_width);
    if (!has_projections(words)) return builder.embedding(name, builder.tokens(), weight, scale);
    const uint32_t narrow = builder.embedding(name + ".words", builder.tokens(), weight, scale);
    return project(name, 0, narrow, words.embedding_width);
  }
  // Rows of a word that is in another cluster are zeros, so the clusters' rows can be added.
  uint32_t sum = GraphBuilder::kNone;
  for (size_t i = 0; i < words.clusters(); ++i) {
    const std::string label = name + ".cluster" + std::to_string(i);
    const uint32_t width = cluster_width(words, i);
    const uint32_t rows =
        builder.partial_embedding(label + ".words", builder.tokens(),
                                  table(i, words.words(i), width), words.first_word(i), scale);
    const uint32_t wide = project(label, i, rows, width);
    const bool last = i + 1 == words.clusters();
    sum = i == 0 ? wide : builder.add(last ? name : label + ".sum", sum, wide);
  }
  return sum;
}

void adaptive_head(const AdaptiveWords& words, uint32_t x, const Checkpoint& checkpoint,
                   GraphBuilder& builder, Parts& parts) {
  Head(words, x, checkpoint, builder, parts).build();
}

}  // namespace oxbow::convert
