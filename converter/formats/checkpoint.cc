#include "converter/formats/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string_view>

#include "converter/formats/checkpoint_files.h"
#include "converter/formats/model_type.h"
#include "converter/formats/packed_tensors.h"
#include "host/args.h"
#include "host/errors.h"
#include "host/folder.h"
#include "host/json_file.h"
#include "host/number_text.h"
#include "host/sha256.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

/// Keys of an object, as outer.inner, that nobody asked for: those that say something, and those that do not.
struct UnknownKeys {
  std::vector<std::string> telling, silent;
};

void find_unknown_keys(const nlohmann::json& object, const std::string& prefix,
                       const std::set<std::string>& known, UnknownKeys* out) {
  for (const auto& [key, value] : object.items()) {
    // What is null, false or empty is a feature that is not there.
    const bool silent =
        value.is_null() || value == false || (!value.is_primitive() && value.empty());
    const std::string name = prefix + key;
    if (key.starts_with('_') || known.contains(name)) continue;
    const bool has_known_keys =
        std::any_of(known.begin(), known.end(),
                    [&](const std::string& other) { return other.starts_with(name + "."); });
    if (value.is_object() && has_known_keys) {
      find_unknown_keys(value, name + ".", known, out);
    } else {
      (silent ? out->silent : out->telling).push_back(name);
    }
  }
}

/// Tensors that are missing or do not fit and are told one by one.
constexpr size_t kMostTensors = 10;
constexpr const char* kAdvice =
    "remove what does not change the results, or use --ignore-key and --ignore-tensor";

/// A line each, of the first so many.
std::string lines_of(const std::vector<std::string>& problems, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), most); ++i) text += "\n  " + problems[i];
  if (problems.size() > most) {
    text += "\n  and " + std::to_string(problems.size() - most) + " more";
  }
  return text;
}

/// `problems` are of keys, or of what is too much; `tensors` are those that are missing or do not fit.
std::string problem_text(const std::string& where, const std::string& model_type,
                         const std::vector<std::string>& problems,
                         const std::vector<std::string>& tensors = {}) {
  constexpr size_t kMostLines = 20;
  const size_t count = problems.size() + tensors.size();
  return where + ": " + std::to_string(count) + " problems for model_type " +
         printable(model_type) + ":" + lines_of(tensors, kMostTensors) +
         lines_of(problems, kMostLines) + (problems.empty() ? "" : std::string("\n") + kAdvice);
}

/// Keys that no library's model reads, whatever it is: what a training or publishing tool left there. A *
/// at the end stands for any ending.
constexpr std::string_view kHarmlessKeys[] = {
    "is_llama_config", "transformers.js_config", "unsloth_*", "max_window_layers", "output_past",
    "eos_token_ids",   "gradient_checkpointing",
};

/// Elements that tensors may have which are not there, while problems are collected, beside as many as are there.
constexpr uint64_t kMostInvented = uint64_t{1} << 24;

bool is_harmless(const std::string& key) {
  return std::any_of(std::begin(kHarmlessKeys), std::end(kHarmlessKeys),
                     [&](std::string_view pattern) { return matches_pattern(pattern, key); });
}

}  // namespace

Checkpoint::Checkpoint(const std::string& directory, const std::string& extra,
                       const std::string& key, bool may_lack_tensors)
    : directory_(directory) {
  if (!file_exists(directory)) throw InputError("there is no directory or file " + directory);
  const auto has_ending = [&](const char* ending) { return directory.ends_with(ending); };
  const std::vector<const char*> endings = {".json", ".safetensors", ".bin", ".pt",
                                            ".pth",  ".ckpt",        ".onnx"};
  const bool is_member =
      !is_folder(directory) && std::any_of(endings.begin(), endings.end(), has_ending);
  const std::string gguf = is_member ? "" : find_gguf(directory);
  if (is_member) {
    const size_t slash = directory.rfind('/');
    directory_ = slash == std::string::npos ? "." : directory.substr(0, std::max<size_t>(slash, 1));
    // config.json names the directory; so does an index of shards.
    if (!has_ending(".json")) chosen_file_ = directory;
    // Where the same weights are there in several forms, this one is in a folder of its own.
    const std::string above = directory_ + "/..";
    const bool is_apart = std::filesystem::absolute(directory_).filename() == "onnx";
    if (has_ending(".onnx") && is_apart && !file_exists(directory_ + "/config.json") &&
        file_exists(above + "/config.json")) {
      directory_ = above;
    }
  }
  config_path_ = directory_ + "/config.json";
  if (!gguf.empty()) {
    open_gguf(gguf);
  } else if (file_exists(config_path_)) {
    read_config();
    read_quantization();
    assumes_tensors_ = may_lack_tensors && chosen_file_.empty() && !has_tensor_files(directory_);
    if (!assumes_tensors_) open_tensors(key);
    if (model_type_.empty()) guess_model_type();
    open_packed();
  } else {
    open_without_config(key);
  }
  if (!extra.empty()) add_file(open_tensor_file(extra, ""), true);
}

void Checkpoint::open_gguf(const std::string& path) {
  auto file = std::make_unique<GgufFile>(path);
  gguf_ = file.get();
  config_path_ = path + ", as config.json";
  config_ = gguf_->config();
  read_model_type();
  add_file(std::move(file), false);
}

void Checkpoint::open_without_config(const std::string& key) {
  const InputError missing(directory_ +
                           " has no config.json; expected a checkpoint directory, whose "
                           "config.json says what the model is: at least model_type and its sizes, "
                           "see docs/convert.md");
  config_ = nlohmann::json::object();
  if (const std::string params = directory_ + "/params.json"; file_exists(params)) {
    config_path_ = params;
    config_text_ = read_file(params);
    config_ = parse_json(params, config_text_);
    if (!config_.is_object()) throw InputError(params + " is not a JSON object");
  }
  try {
    open_tensors(key);
  } catch (const InputError&) {
    if (chosen_file_.ends_with(".onnx")) throw;
    throw missing;
  }
  if (onnx_ != nullptr) {
    derive_config();
  } else if (config_.contains("n_self_heads")) {
    model_type_ = "yoco";
  } else if (config_.empty() && has_tensor("blocks.0.att.r_k")) {
    model_type_ = "rwkv7";
  } else if (config_.empty() && has_tensor("blocks.0.att.time_mix_k") &&
             !has_tensor("blocks.0.att.ln_x.weight")) {
    model_type_ = "rwkv";
  } else {
    throw missing;
  }
}

void Checkpoint::derive_config() {
  std::string note;
  config_ = onnx_->derive_config(&note);
  config_path_ = onnx_->path() + ", as config.json";
  notes_.push_back(note);
  read_model_type();
}

void Checkpoint::read_model_type() {
  const nlohmann::json* type = key("model_type");
  if (type == nullptr) return;
  if (!type->is_string()) fail_key("model_type", "a text");
  model_type_ = type->get<std::string>();
}

void Checkpoint::guess_model_type() {
  model_type_ = model_type_of([&](const std::string& name) { return has_tensor(name); });
  if (model_type_.empty()) {
    throw InputError(config_path_ +
                     ": key model_type is missing, and the names of the tensors do not tell it");
  }
  notes_.push_back("config.json has no model_type; by its tensors it is " + model_type_);
}

void Checkpoint::read_quantization() {
  const nlohmann::json* settings = find("quantization_config");
  if (settings == nullptr || !settings->is_object()) return;
  if (is_word("quantization_config.quant_method", "bitnet")) {
    BitnetFormat format;
    format.online = choice("quantization_config.quantization_mode", "offline",
                           {"offline", "online"}) == "online";
    format.scale_multiplies = choice("quantization_config.linear_class", "bitlinear",
                                     {"bitlinear", "autobitlinear"}) == "autobitlinear";
    if (flag("quantization_config.use_rms_norm", false)) {
      fail_key("quantization_config.use_rms_norm", "false: norms inside of matrices are not read");
    }
    ignore_keys({"quantization_config.rms_norm_eps"});
    const std::string modules = "quantization_config.modules_to_not_convert";
    if (has_value(modules)) format.float_modules = texts(modules);
    bitnet_ = std::move(format);
    return;
  }
  // They are looked for once the tensors are there.
  if (PackedTensors::knows(*settings)) return ignore_keys({"quantization_config"});
  const auto method = settings->find("quant_method");
  throw InputError(config_path_ + ": quantization_config says that the weights are stored by " +
                   (method != settings->end() && method->is_string()
                        ? printable(method->get<std::string>())
                        : "some method of quantising") +
                   ", which is not read; convert the model it was made from, or a GGUF file of it");
}

void Checkpoint::drop_key(const std::string& name) {
  nlohmann::json* object = &config_;
  // A key may have a dot in its own name.
  if (!object->contains(name)) {
    const size_t dot = name.find('.');
    const auto outer = object->find(name.substr(0, dot));
    if (dot != std::string::npos && outer != object->end() && outer->is_object()) object = &*outer;
    if (object->erase(name.substr(dot == std::string::npos ? 0 : dot + 1)) == 0) {
      throw UsageError("--ignore-key " + name + ": " + config_path_ + " has no such key");
    }
    return;
  }
  object->erase(name);
}

void Checkpoint::drop_tensors(const std::string& pattern) {
  if (std::erase_if(tensors_, [&](const auto& t) { return matches_pattern(pattern, t.first); }) ==
      0) {
    throw UsageError("--ignore-tensor " + pattern + ": " + directory_ + " has no such tensor");
  }
}

void Checkpoint::open_tensors(const std::string& key) {
  const CheckpointFiles files = find_checkpoint_files(directory_, chosen_file_);
  notes_ = files.notes;
  index_name_ = base_name(files.index_path);
  for (const std::string& path : files.paths) {
    if (path.ends_with(".onnx")) {
      auto file = std::make_unique<OnnxFile>(path);
      onnx_ = file.get();
      add_file(std::move(file), false);
    } else {
      add_file(open_tensor_file(path, key), false);
    }
  }
  for (const auto& [tensor, file] : files.weight_map) {
    const auto there = tensors_.find(tensor);
    if (there == tensors_.end() || base_name(there->second.file->path()) != file) {
      throw InputError(files.index_path + ": tensor " + printable(tensor) + " is not in " +
                       printable(file));
    }
  }
}

void Checkpoint::add_file(std::unique_ptr<TensorFile> opened, bool extra) {
  files_.push_back(std::move(opened));
  const TensorFile& file = *files_.back();
  for (const std::string& note : file.notes()) {
    notes_.push_back(base_name(file.path()) + ": " + note);
  }
  for (const auto& [name, tensor] : file.tensors()) {
    const auto [place, is_new] = tensors_.try_emplace(name, Found{&tensor, &file, extra});
    if (is_new) continue;
    if (!extra) {
      throw InputError("tensor " + printable(name) + " is in both " + place->second.file->path() +
                       " and " + file.path());
    }
    place->second = {&tensor, &file, true};
  }
}

void Checkpoint::collect_problems() const {
  collects_ = true;
  // To go through the importer once more then costs no more than a conversion.
  can_invent_ = kMostInvented;
  for (const auto& [name, there] : tensors_) can_invent_ += there.tensor->count;
}

void Checkpoint::throw_problems() const {
  const std::string& where = tensor_problems_.empty() ? config_path_ : directory_;
  throw InputError(problem_text(where, model_type_, problems_, tensor_problems_));
}

void Checkpoint::fail_tensor(const std::string& path, const std::string& problem) const {
  if (!collects_) throw TensorError(path + ": " + problem);
  // Of a value that stands in for a wrong one nothing follows.
  if (failed_keys_.empty() && std::find(tensor_problems_.begin(), tensor_problems_.end(),
                                        problem) == tensor_problems_.end()) {
    tensor_problems_.push_back(problem);
  }
}

void Checkpoint::open_packed() {
  const nlohmann::json* settings = find("quantization_config");
  if (settings == nullptr || !settings->is_object() || !PackedTensors::knows(*settings)) return;
  std::vector<std::string> names;
  for (const auto& [name, unused] : tensors_) names.push_back(name);
  packed_ = std::make_shared<PackedTensors>(
      config_path_, *settings, names, [this](const std::string& name) -> const StoredTensor* {
        const auto found = tensors_.find(name);
        return found == tensors_.end() ? nullptr : found->second.tensor;
      });
  if (const std::string note = packed_->note(); !note.empty()) notes_.push_back(note);
}

bool Checkpoint::has_tensor(const std::string& name) const {
  return tensors_.contains(name) || (packed_ && packed_->has(name));
}

const Checkpoint::Found& Checkpoint::found(const std::string& name) const {
  used_tensors_.insert(name);
  const auto place = tensors_.find(name);
  if (place != tensors_.end()) return place->second;
  fail_missing(name);
  throw InputError("tensor " + printable(name) + " has no shape to go on with");
}

void Checkpoint::fail_missing(const std::string& name) const {
  std::vector<std::string> names;
  // Only for those that are told.
  if (tensor_problems_.size() < kMostTensors) {
    for (const auto& [there, unused] : tensors_) names.push_back(there);
  }
  const std::string guess = closest_match(name, names);
  const bool is_head = name.ends_with("lm_head.weight") || name.ends_with("embed_out.weight");
  fail_tensor(directory_,
              "tensor " + printable(name) + " is missing" +
                  (guess.empty() ? "" : "; the nearest name there is " + printable(guess)) +
                  (is_head ? "; if the words' table is the head too, config.json must have "
                             "tie_word_embeddings true"
                           : ""));
}

const std::vector<uint64_t>& Checkpoint::shape(const std::string& name) const {
  if (packed_ && packed_->has(name)) return packed_->shape(name);
  return found(name).tensor->shape;
}

std::vector<float> Checkpoint::bitnet_matrix(const std::string& name, uint64_t rows,
                                             uint64_t width) const {
  const Found& there = found(name);
  ternary_tensors_.insert(name);
  const std::string where = there.file->path() + ": tensor " + printable(name);
  std::vector<float> values = unpack_bitnet(where, *there.tensor, rows, width);
  const float scale = tensor(name + "_scale", {1})[0];
  const float step = bitnet_->scale_multiplies ? scale : 1 / scale;
  if (!(step > 0) || !std::isfinite(step)) {
    throw InputError(where + "_scale is " + number_text(scale) + ", expected a positive number");
  }
  for (float& value : values) value *= step;
  return values;
}

std::vector<float> Checkpoint::tensor(const std::string& name,
                                      const std::vector<uint64_t>& shape) const {
  check_can_build();
  const bool ternary = bitnet_ && bitnet_->is_matrix(name) && shape.size() == 2;
  if (assumes_tensors_ && !tensors_.contains(name)) {
    uint64_t count = 1;
    for (const uint64_t size : shape) {
      if (!checked_mul(count, size, &count)) {
        throw InputError(config_path_ + ": tensor " + printable(name) + " would have shape " +
                         shape_text(shape) + ", which no memory holds");
      }
    }
    if (used_tensors_.insert(name).second) assumed_elements_ += count;
    if (ternary) ternary_tensors_.insert(name);
    return std::vector<float>(count);
  }
  if (ternary && !bitnet_->online) return bitnet_matrix(name, shape[0], shape[1]);
  if (packed_ && packed_->has(name)) return packed_matrix(name, shape);
  if (collects_ && !tensors_.contains(name)) {
    used_tensors_.insert(name);
    fail_missing(name);
    return invented(name, shape);
  }
  const Found& there = found(name);
  if (!is_float(there.tensor->dtype)) {
    fail_tensor(there.file->path(), "tensor " + printable(name) + " is " +
                                        there.tensor->describe() + ", expected F32, F16 or BF16");
  } else if (there.tensor->shape != shape) {
    fail_tensor(there.file->path(), "tensor " + printable(name) + " has shape " +
                                        shape_text(there.tensor->shape) + ", expected " +
                                        shape_text(shape));
  }
  if (collects_) return invented(name, shape);
  const std::string where = there.file->path() + ": tensor " + printable(name);
  std::vector<float> values = to_floats(*there.tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw InputError(where + " has the value " + number_text(values[i]) + " at index " +
                       std::to_string(i) + ", expected finite numbers only");
    }
  }
  if (ternary) {
    ternary_tensors_.insert(name);
    round_like_bitnet(values);
  }
  return values;
}

std::vector<float> Checkpoint::invented(const std::string& name,
                                        const std::vector<uint64_t>& shape) const {
  uint64_t count = 1;
  for (const uint64_t size : shape) count = checked_mul(count, size, &count) ? count : UINT64_MAX;
  if (count > can_invent_) throw InputError("tensor " + printable(name) + " does not fit");
  can_invent_ -= count;
  return std::vector<float>(count);
}

std::vector<float> Checkpoint::packed_matrix(const std::string& name,
                                             const std::vector<uint64_t>& shape) const {
  const std::vector<uint64_t>& stored = packed_->shape(name);
  if (stored != shape) {
    fail_tensor(directory_, "tensor " + printable(name) + " has shape " + shape_text(stored) +
                                " when it is unpacked, expected " + shape_text(shape));
  }
  const uint64_t count = stored[0] * stored[1];
  // Its parts are no parameters.
  if (used_tensors_.insert(name).second) assumed_elements_ += count;
  for (const std::string& part : packed_->parts(name)) ignored_tensors_.insert(part);
  if (collects_) return invented(name, shape);
  std::vector<float> values = packed_->floats(name);
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
    throw InputError(directory_ + ": tensor " + printable(name) +
                     " is not finite when it is unpacked");
  }
  return values;
}

std::vector<std::string> Checkpoint::finish() const {
  UnknownKeys unknown;
  find_unknown_keys(config_, "", used_keys_, &unknown);
  // All that is wrong at once, so that it can be mended at once.
  std::vector<std::string> problems, harmless, floats, others;
  for (const std::string& name : unknown.telling) {
    if (is_harmless(name)) {
      harmless.push_back(name);
    } else {
      problems.push_back("unknown key " + printable(name));
    }
  }
  harmless.insert(harmless.end(), unknown.silent.begin(), unknown.silent.end());
  for (const auto& [name, there] : tensors_) {
    if (there.extra || used_tensors_.contains(name) || ignored_tensors_.contains(name)) continue;
    (is_float(there.tensor->dtype) ? floats : others).push_back(name);
  }
  const bool has_keys = !problems.empty();
  // Where a value was wrong, other tensors may have been looked for.
  if (!floats.empty() && failed_keys_.empty()) {
    problems.push_back("tensors that model_type " + printable(model_type_) +
                       " does not know: " + list_names(floats));
  }
  if (collects_) {
    problems_.insert(problems_.end(), problems.begin(), problems.end());
    return {};
  }
  const std::string& where = has_keys ? config_path_ : directory_;
  if (problems.size() == 1) throw InputError(where + ": " + problems[0] + "; " + kAdvice);
  if (!problems.empty()) throw InputError(problem_text(where, model_type_, problems));
  if (!harmless.empty()) {
    const std::string note =
        "config.json: passed over, since it changes no result: " + list_names(harmless);
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }
  return others;
}

std::set<std::string> Checkpoint::file_names() const {
  std::set<std::string> names = {"config.json", index_name_};
  for (const auto& file : files_) names.insert(base_name(file->path()));
  return names;
}

std::string Checkpoint::source_hash() const {
  Sha256 hash;
  const auto add = [&](const std::string& name, std::span<const std::byte> bytes) {
    hash.update(name + '\0' + std::to_string(bytes.size()) + '\0');
    hash.update(bytes);
  };
  if (gguf_ == nullptr) add("config.json", std::as_bytes(std::span(config_text_)));
  for (const auto& file : files_) add(base_name(file->path()), file->file_bytes());
  return hash.finish();
}

uint64_t Checkpoint::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, there] : tensors_) {
    if (!there.extra || used_tensors_.contains(name)) bytes += there.tensor->packed_bytes();
  }
  return bytes;
}

uint64_t Checkpoint::parameters() const {
  uint64_t count = assumed_elements_;
  for (const std::string& name : used_tensors_) {
    const auto there = tensors_.find(name);
    if (there != tensors_.end() && is_float(there->second.tensor->dtype)) {
      count += there->second.tensor->count;
    }
  }
  return count;
}

}  // namespace oxbow::convert
