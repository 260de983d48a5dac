#pragma once

// A checkpoint as importers see it: config.json with typed access, and tensors by name
// with the shape the caller expects. Every refusal names the key or tensor, what it is, and what
// was expected. The object remembers what was asked for, so that finish() can tell what an importer
// did not understand.

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/formats/bitnet.h"
#include "converter/formats/gguf_model.h"
#include "converter/formats/onnx_model.h"
#include "converter/formats/open_tensor_file.h"
#include "host/errors.h"

namespace oxbow::convert {

class PackedTensors;

/// Keys of config.json that are missing, have a value that is not possible, or contradict each other.
class KeyError : public InputError {
 public:
  using InputError::InputError;
};

/// A tensor that is missing, or has another shape or type than config.json makes expect.
class TensorError : public InputError {
 public:
  using InputError::InputError;
};

class Checkpoint {
 public:
  /// `directory` may also be a GGUF file, or have one and nothing else: see gguf_model.h. Otherwise
  /// reads `directory`/config.json, which RWKV-7 does without and YOCO calls params.json, and maps the tensor
  /// files beside it; see checkpoint_files.h. An ONNX file can do without one. A file of such a directory stands for the directory, a tensor
  /// file also for the choice of that file.
  /// `extra`, when not empty, is a tensor file whose tensors complete or replace those by name. `key`
  /// is for the files of the directory, as in open_tensor_file(). `may_lack_tensors`: where there are none, those that
  /// are asked for by their shapes are taken to be there, and zero. Throws InputError.
  explicit Checkpoint(const std::string& directory, const std::string& extra = "",
                      const std::string& key = "", bool may_lack_tensors = false);

  /// Forgets a key of config.json, or all tensors that match a pattern of * and ?, before an importer
  /// looks. Throws UsageError when there is none.
  void drop_key(const std::string& name);
  void drop_tensors(const std::string& pattern);

  /// What was chosen or left out and the user may want to know. finish() adds to them.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Tensors are taken to be there.
  bool assumes_tensors() const { return assumes_tensors_; }
  const std::string& model_type() const { return model_type_; }

  // -- config.json. A key that was asked for counts as understood. "outer.inner" is a key of an
  // object. A key whose value is null counts as missing.

  /// True for null as well.
  bool has_key(const std::string& key) const;
  /// There is such a key, and it is not null.
  bool has_value(const std::string& key) const;
  uint32_t size(const std::string& key, uint32_t min, uint32_t max) const;
  uint32_t size(const std::string& key, uint32_t min, uint32_t max, uint32_t fallback) const;
  double number(const std::string& key, double min, double max, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& choices) const;
  /// The key's value is this text, where it may as well be something else.
  bool is_word(const std::string& key, const std::string& word) const;
  /// A list of sizes; empty when the key is missing.
  std::vector<uint32_t> sizes(const std::string& key, uint32_t min, uint32_t max) const;
  /// A list of numbers, infinite ones as Python writes them; empty when the key is missing.
  std::vector<double> numbers(const std::string& key) const;
  /// A list of texts; empty when the key is missing or null.
  std::vector<std::string> texts(const std::string& key) const;
  /// A list of true and false; empty when the key is missing.
  std::vector<bool> flags(const std::string& key) const;
  /// A token id, or -1 for null and -1; `fallback` when the key is missing. The first of a list of ids.
  int32_t token(const std::string& key, int32_t fallback) const;
  /// A list of lists of token ids; empty when the key is missing or null.
  std::vector<std::vector<int32_t>> token_lists(const std::string& key) const;
  /// A list of `count` sizes, or one size for all of them.
  std::vector<uint32_t> size_for_each(const std::string& key, uint32_t min, uint32_t max,
                                      size_t count) const;
  /// A list of sizes, or one size alone.
  std::vector<uint32_t> size_or_sizes(const std::string& key, uint32_t min, uint32_t max) const;
  /// A text nothing depends on, such as the licence; empty when missing or no text.
  std::string note(const std::string& key) const;
  /// Names of a classifier's classes from id2label, in order; empty when the key is missing or null.
  std::vector<std::string> labels(uint32_t classes) const;
  /// Throws unless the key is missing, null or an object.
  void require_object(const std::string& key) const;
  /// Keys that change no result.
  void ignore_keys(const std::vector<std::string>& keys) const;

  // -- Tensors, as finite floats.

  bool has_tensor(const std::string& name) const;
  /// Throws when it is missing.
  const std::vector<uint64_t>& shape(const std::string& name) const;
  std::vector<float> tensor(const std::string& name, const std::vector<uint64_t>& shape) const;
  std::vector<float> matrix(const std::string& name, uint64_t rows, uint64_t width) const {
    return tensor(name, {rows, width});
  }
  std::vector<float> vector(const std::string& name, uint64_t count) const {
    return tensor(name, {count});
  }
  /// Whether this one, which has been read, has three values by nature.
  bool is_ternary(const std::string& name) const { return ternary_tensors_.contains(name); }
  /// Tensors this importer knows and does not need.
  void ignore_tensor(const std::string& name) const { ignored_tensors_.insert(name); }

  /// Call when the importer is done. Throws for keys and float tensors nobody asked for: they would
  /// change the results. Tensors of `extra` are exempt, and keys that change no result of any model, or say nothing,
  /// are only noted. Returns the integer tensors left over, to be warned of.
  std::vector<std::string> finish() const;

  /// To find all that is wrong with a checkpoint: from here on a value that is not possible is collected, finish()
  /// collects unknown keys, and an importer gets a possible value instead, and zeros for what tensors have. What is wrong
  /// with tensors is collected as long as no value was, since they may fit to what is meant.
  void collect_problems() const;
  /// What importers find wrong with the configuration by themselves, e.g. two keys that contradict each other: throws
  /// KeyError, or collects it. Who calls it goes on with what is possible; the first tensor that is asked for then throws, for
  /// what would be built of values that contradict each other may have no sizes.
  void refuse(const std::string& problem) const;
  /// Throws InputError with all that were collected, a line each.
  [[noreturn]] void throw_problems() const;
  size_t problem_count() const { return problems_.size() + tensor_problems_.size(); }

  /// SHA-256 over the names and bytes of the files.
  std::string source_hash() const;
  /// Bytes of all tensors, as the checkpoint stores them; of `extra` only those that were asked for.
  uint64_t tensor_bytes() const;
  /// Elements of all float tensors that were asked for.
  uint64_t parameters() const;
  const std::string& directory() const { return directory_; }
  /// Names of the directory's files that were read.
  std::set<std::string> file_names() const;
  /// Null unless this is one.
  const GgufFile* gguf() const { return gguf_; }

 private:
  void add_problem(const std::string& problem) const;
  /// Throws TensorError, or collects. `path`: of the file or folder.
  void fail_tensor(const std::string& path, const std::string& problem) const;
  void fail_missing(const std::string& name) const;
  /// Zeros, while problems are collected. Throws InputError when it is too many of them.
  std::vector<float> invented(const std::string& name, const std::vector<uint64_t>& shape) const;
  void check_can_build() const;
  struct Found {
    const StoredTensor* tensor;
    const TensorFile* file;
    bool extra;
  };

  void read_config();
  void read_model_type();
  /// Models that are published without one, known by their tensors or by another file of settings.
  void open_without_config(const std::string& key);
  void derive_config();
  void open_gguf(const std::string& path);
  void guess_model_type();
  /// Reads how the weights are stored if they are not plain, and tells what to do instead when nobody reads it here.
  void read_quantization();
  /// A matrix of BitNet's layers.
  std::vector<float> bitnet_matrix(const std::string& name, uint64_t rows, uint64_t width) const;
  /// The matrices that others have quantised, when config.json says so.
  void open_packed();
  std::vector<float> packed_matrix(const std::string& name,
                                   const std::vector<uint64_t>& shape) const;
  void open_tensors(const std::string& key);
  void add_file(std::unique_ptr<TensorFile> file, bool extra);
  const nlohmann::json* find(const std::string& name) const;
  /// The same, marked as understood; nothing for null.
  const nlohmann::json* key(const std::string& name) const;
  const Found& found(const std::string& name) const;
  /// Throws KeyError, or collects.
  void fail_key(const std::string& name, const std::string& expected) const;

  std::string directory_;
  /// The tensor file that was named instead of its directory; empty otherwise.
  std::string chosen_file_;
  /// Of shards; empty otherwise.
  std::string index_name_;
  mutable std::vector<std::string> notes_;
  std::string config_path_;
  std::string config_text_;
  nlohmann::json config_;
  std::string model_type_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  const GgufFile* gguf_ = nullptr;
  bool assumes_tensors_ = false;
  /// Elements of those.
  mutable uint64_t assumed_elements_ = 0;
  /// Null unless the tensors are those of one.
  const OnnxFile* onnx_ = nullptr;
  std::map<std::string, Found> tensors_;
  // What was asked for: bookkeeping that leaves the checkpoint itself as it is.
  mutable std::set<std::string> used_keys_;
  mutable std::set<std::string> used_tensors_;
  mutable std::set<std::string> ignored_tensors_;
  mutable std::set<std::string> ternary_tensors_;
  mutable bool collects_ = false;
  mutable std::vector<std::string> problems_, tensor_problems_;
  /// Keys whose values were wrong, and whether others contradict each other.
  mutable std::set<std::string> failed_keys_;
  mutable bool contradicts_ = false;
  std::optional<BitnetFormat> bitnet_;
  /// Null unless others have quantised the matrices.
  std::shared_ptr<const PackedTensors> packed_;
  /// Elements of tensors that may still be made up while problems are collected.
  mutable uint64_t can_invent_ = 0;
};

}  // namespace oxbow::convert
