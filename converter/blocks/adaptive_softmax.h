#pragma once

// Words by how often they occur (Grave et al. 2017, Baevski and Auli 2019): the frequent ones of the
// first cluster have wide embeddings, those of later clusters narrower ones, each cluster with a
// projection to the width of the model. The softmax at the other end has a head for the frequent words
// and one column for every other cluster.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/blocks/parts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct AdaptiveWords {
  uint32_t vocabulary = 0;
  /// Of the model, and of the first cluster's embeddings.
  uint32_t width = 0;
  uint32_t embedding_width = 0;
  /// First words of the clusters but the first.
  std::vector<uint32_t> cutoffs;
  /// Each cluster's embeddings are narrower by this factor. With 1 there is one table for all.
  uint32_t division = 1;
  /// The output has the embeddings' tables, and the projections of these clusters.
  bool tied_words = true;
  std::vector<bool> tied_projections;
  /// The head's columns for clusters are stored in the opposite order.
  bool reversed_clusters = false;
  /// In front of the tensors' names.
  std::string embedding_prefix;
  std::string head_prefix;
  /// The head's columns for clusters.
  std::string cluster_weight = "cluster_weight";
  std::string cluster_bias = "cluster_bias";

  size_t clusters() const { return cutoffs.size() + 1; }
  uint32_t first_word(size_t cluster) const { return cluster == 0 ? 0 : cutoffs[cluster - 1]; }
  uint32_t words(size_t cluster) const {
    return (cluster < cutoffs.size() ? cutoffs[cluster] : vocabulary) - first_word(cluster);
  }
};

/// Reads cutoffs, div_val, d_embed and tie_projs; the caller has set vocabulary and width, and the
/// defaults of the others.
void read_adaptive_words(const Checkpoint& checkpoint, AdaptiveWords* words);
/// Throws unless the clusters are words of the vocabulary, and their embeddings have a width. `cutoffs_key` and
/// `division_key` are the keys that told.
void check_adaptive_words(const Checkpoint& checkpoint, AdaptiveWords* words,
                          const std::string& cutoffs_key, const std::string& division_key);

/// Embeddings of this run's tokens times `scale`.
uint32_t embed_adaptive(const std::string& name, const AdaptiveWords& words, float scale,
                        GraphBuilder& builder, Parts& parts);

/// The logarithms of all words' probabilities from rows of the model's width.
void adaptive_head(const AdaptiveWords& words, uint32_t x, const Checkpoint& checkpoint,
                   GraphBuilder& builder, Parts& parts);

}  // namespace oxbow::convert
