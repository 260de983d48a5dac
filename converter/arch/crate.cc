// CRATE (Yu et al. 2023) as in its authors' model/crate.py, a classifier of images whose layers are steps of an
// optimisation: attention with one projection for queries, keys and values, then one step towards a sparse code. There
// is no residual around that step.

#include "converter/blocks/image.h"
#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Crate {
  ImageGrid grid;
  uint32_t classes, width, layers, heads, head_width;
  float step, sparsity, epsilon;
  bool mean;
};

Crate read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Crate config;
  config.grid = read_image_grid(checkpoint, 224, 16, "channels");
  require_multiple(checkpoint, "image_size", config.grid.height, "patch_size",
                   config.grid.patch_height);
  require_multiple(checkpoint, "image_size", config.grid.width, "patch_size",
                   config.grid.patch_width);
  config.classes = checkpoint.size("num_classes", 1, kMaxSize);
  config.width = checkpoint.size("dim", 1, kMaxSize);
  config.layers = checkpoint.size("depth", 1, kMaxLayers);
  config.heads = checkpoint.size("heads", 1, kMaxSize);
  config.head_width = checkpoint.size("dim_head", 1, kMaxSize / config.heads, 64);
  config.step = static_cast<float>(checkpoint.number("ista", 0, 1e6, 0.1));
  config.sparsity = static_cast<float>(checkpoint.number("lambd", 0, 1e6, 0.1));
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-5));
  config.mean = checkpoint.choice("pool", "cls", {"cls", "mean"}) == "mean";
  if (options.max_segment != 0) {
    throw UsageError("--max-segment is for texts; the size of an image is the model's");
  }
  checkpoint.ignore_keys({"emb_dropout"});
  ignore_common_keys(checkpoint);
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Crate& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {}

  void build() {
    uint32_t x = embed();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      const std::string of = "transformer.layers." + std::to_string(i) + ".";
      x = sparse_step(name, attend(name, x, of + "0."), of + "1.");
      builder_.debug_output(x, name + ".out");
    }
    const uint32_t rows = config_.grid.patches() + 1;
    const uint32_t pooled =
        config_.mean ? builder_.mean_rows("pooled", x, 1, rows) : builder_.first_row("pooled", x);
    graph_.model.task = schema::Task::Classify;
    write_metadata(checkpoint_, graph_,
                   {{"channels", config_.grid.channels},
                    {"depth", config_.layers},
                    {"dim", config_.width},
                    {"heads", config_.heads},
                    {"image_height", config_.grid.height},
                    {"image_width", config_.grid.width},
                    {"patches", config_.grid.patches()}});
    graph_.model.metadata->labels = checkpoint_.labels(config_.classes);
    builder_.logits(norm("head.normed", pooled, "mlp_head.0"),
                    parts_.matrix("mlp_head.1.weight", config_.classes, config_.width),
                    parts_.vector("mlp_head.1.bias", config_.classes));
  }

 private:
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.layer_norm(name, x, of, config_.width, config_.epsilon);
  }

  /// Columns in the order row, column, channel become channel, row, column.
  std::vector<float> planar(const std::vector<float>& matrix) const {
    const ImageGrid& grid = config_.grid;
    const size_t size = grid.patch_size(), pixels = size / grid.channels;
    std::vector<float> result(matrix.size());
    for (size_t i = 0; i < matrix.size(); ++i) {
      const size_t column = i % size;
      const size_t to = column % grid.channels * pixels + column / grid.channels;
      result[i - column + to] = matrix[i];
    }
    return result;
  }

  uint32_t embed() {
    const std::string of = "to_patch_embedding.";
    const uint32_t size = config_.grid.patch_size();
    const auto row = [&](const std::string& name) {
      return builder_.weight(name, 1, size, planar(checkpoint_.vector(name, size)));
    };
    const uint32_t patches = begin_image(builder_, "image", config_.grid);
    const uint32_t normed = builder_.layer_norm("patches.normed", patches, row(of + "1.weight"),
                                                row(of + "1.bias"), config_.epsilon);
    const uint32_t matrix =
        builder_.weight(of + "2.weight", config_.width, size,
                        planar(checkpoint_.matrix(of + "2.weight", config_.width, size)));
    const uint32_t x =
        builder_.linear("projected", normed, matrix, parts_.vector(of + "2.bias", config_.width));
    return add_class_and_positions(checkpoint_, builder_, norm("projected.normed", x, of + "3"),
                                   "cls_token", "pos_embedding", config_.grid.patches() + 1,
                                   config_.width);
  }

  uint32_t attend(const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t inner = config_.heads * config_.head_width;
    const uint32_t w = parts_.linear(name + ".qkv", norm(name + ".normed", x, of + "norm"),
                                     of + "fn.qkv", config_.width, inner, false);
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.heads;
    attention.scale = attention_scale(config_.head_width);
    attention.sources = {{w, w}};
    attention.pattern.kind = schema::PatternKind::Full;
    uint32_t y = builder_.attention(name + ".attention", w, attention);
    // One head as wide as the model needs no projection.
    if (config_.heads != 1 || config_.head_width != config_.width) {
      y = parts_.linear(name + ".out", y, of + "fn.to_out.0", inner, config_.width);
    }
    return builder_.add(name + ".sum", x, y);
  }

  /// relu(y + step (W^T y - W^T W y) - step lambda) of the normed y, with W^T - W^T W as one matrix.
  uint32_t sparse_step(const std::string& name, uint32_t x, const std::string& of) {
    const size_t n = config_.width;
    const std::vector<float> w = checkpoint_.matrix(of + "fn.weight", n, n);
    std::vector<double> sums(n);
    std::vector<float> matrix(n * n);
    for (size_t i = 0; i < n; ++i) {
      // Row i of W^T W is the sum over k of W[k][i] times row k of W.
      std::fill(sums.begin(), sums.end(), 0.0);
      for (size_t k = 0; k < n; ++k) {
        const double factor = w[k * n + i];
        for (size_t j = 0; j < n; ++j) sums[j] += factor * w[k * n + j];
      }
      for (size_t j = 0; j < n; ++j) {
        matrix[i * n + j] = static_cast<float>(double{config_.step} * (w[j * n + i] - sums[j]));
      }
    }
    const uint32_t y = norm(name + ".ista.normed", x, of + "norm");
    const uint32_t gradient = builder_.linear(
        name + ".gradient", y,
        builder_.weight(of + "fn.weight", config_.width, config_.width, std::move(matrix)),
        builder_.weight(of + "fn.threshold", 1, config_.width,
                        std::vector<float>(n, -config_.step * config_.sparsity)));
    return builder_.activate(name + ".code", builder_.add(name + ".moved", gradient, y),
                             schema::Activation::Relu);
  }

  const Checkpoint& checkpoint_;
  const Crate& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
};

}  // namespace

void import_crate(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Crate config = read(checkpoint, options);
  Model(checkpoint, config, graph).build();
}

}  // namespace oxbow::convert
