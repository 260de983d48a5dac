#include "tests/support/hub_folder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>

#include "converter/text/tokenizer/sentencepiece_model.h"
#include "host/safetensors.h"
#include "host/testing/paths.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kTests = fs::path(testing::source_dir()) / "tests";

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void write_json(const fs::path& path, const json& value) { write_text(path, value.dump(2) + "\n"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A golden case whose vocabulary has another size.
TinyCheckpoint with_vocabulary(const std::string& golden, uint32_t vocabulary) {
  const fs::path directory = kTests / "golden" / golden;
  TinyCheckpoint out;
  out.config = json::parse(read_text(directory / "config.json"));
  out.tensors.clear();
  const uint64_t old = out.config["vocab_size"].get<uint64_t>();
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0f, 0.3f);
  const Safetensors file((directory / "model.safetensors").string());
  for (const auto& [name, stored] : file.tensors()) {
    if (!is_float(stored.dtype)) continue;
    TinyTensor tensor;
    tensor.values = file.floats(name);
    bool grown = false;
    for (const uint64_t size : stored.shape) {
      grown = grown || size == old;
      tensor.shape.push_back(static_cast<uint32_t>(size == old ? vocabulary : size));
    }
    if (grown) {
      tensor.values.resize(tensor.values.size() / old * vocabulary);
      for (float& value : tensor.values) value = normal(random);
    }
    out.tensors[name] = std::move(tensor);
  }
  for (const char* key : {"vocab_size", "decoder_vocab_size"}) {
    if (out.config.contains(key)) out.config[key] = vocabulary;
  }
  return out;
}

void rename_tensors(TinyCheckpoint& checkpoint, const std::string& from, const std::string& to) {
  std::map<std::string, TinyTensor> renamed;
  for (auto& [name, tensor] : checkpoint.tensors) {
    renamed[replaced(name, from, to)] = std::move(tensor);
  }
  checkpoint.tensors = std::move(renamed);
}

void copy_tokenizer(const std::string& from, const std::vector<std::string>& files,
                    const fs::path& directory) {
  for (const std::string& file : files) {
    fs::copy_file(kTests / "tokenizers" / from / file, directory / file,
                  fs::copy_options::overwrite_existing);
  }
}

void make_gpt2(const fs::path& directory) {
  const json vocabulary = json::parse(read_text(kTests / "tokenizers/gpt2/latin/vocab.json"));
  const auto size = static_cast<uint32_t>(vocabulary.size());
  const uint32_t end = vocabulary.at("<|endoftext|>").get<uint32_t>();
  TinyCheckpoint checkpoint = with_vocabulary("gpt2/g1_tied", size);
  // The hub's file has no prefix and carries the triangles of its attention.
  rename_tensors(checkpoint, "transformer.", "");
  const uint32_t context = checkpoint.config["n_positions"].get<uint32_t>();
  for (int layer = 0; layer < 3; ++layer) {
    checkpoint.tensors["h." + std::to_string(layer) + ".attn.bias"] = {
        {1, 1, context, context}, std::vector<float>(size_t{context} * context, 1.0f)};
  }
  checkpoint.config.update(
      {{"architectures", {"GPT2LMHeadModel"}},
       {"bos_token_id", end},
       {"eos_token_id", end},
       {"n_ctx", context},
       {"resid_pdrop", 0.1},
       {"task_specific_params", {{"text-generation", {{"do_sample", true}, {"max_length", 50}}}}}});
  checkpoint.write(directory);
  copy_tokenizer("gpt2/latin", {"vocab.json", "merges.txt"}, directory);
  write_json(directory / "tokenizer_config.json", {{"model_max_length", context}});
  write_json(directory / "generation_config.json", {{"_from_model_config", true},
                                                    {"bos_token_id", end},
                                                    {"eos_token_id", end},
                                                    {"transformers_version", "4.26.0.dev0"}});
}

void make_bert(const fs::path& directory) {
  const std::string words = read_text(kTests / "tokenizers/wordpiece/latin/vocab.txt");
  const auto size = static_cast<uint32_t>(std::count(words.begin(), words.end(), '\n'));
  TinyCheckpoint checkpoint = with_vocabulary("bert/b2_mlm", size);
  // Old names of the hub's file, and the head of a task nobody uses.
  rename_tensors(checkpoint, "LayerNorm.weight", "LayerNorm.gamma");
  rename_tensors(checkpoint, "LayerNorm.bias", "LayerNorm.beta");
  const uint32_t width = checkpoint.config["hidden_size"].get<uint32_t>();
  checkpoint.tensors["bert.pooler.dense.weight"] = {
      {width, width}, std::vector<float>(size_t{width} * width, 0.1f)};
  checkpoint.tensors["bert.pooler.dense.bias"] = {{width}, std::vector<float>(width, 0.1f)};
  checkpoint.tensors["cls.seq_relationship.weight"] = {{2, width},
                                                       std::vector<float>(2 * width, 0.1f)};
  checkpoint.tensors["cls.seq_relationship.bias"] = {{2}, {0.1f, 0.1f}};
  checkpoint.config.update({{"architectures", {"BertForMaskedLM"}},
                            {"gradient_checkpointing", false},
                            {"hidden_dropout_prob", 0.1}});
  checkpoint.config.erase("id2label");
  checkpoint.config.erase("label2id");
  checkpoint.write(directory);
  copy_tokenizer("wordpiece/latin", {"vocab.txt", "tokenizer_config.json"}, directory);
}

void make_llama(const fs::path& directory) {
  const auto pieces = convert::read_sentencepiece_model(
      (kTests / "tokenizers/spbpe/latin/tokenizer.model").string());
  TinyCheckpoint checkpoint =
      with_vocabulary("llama/l1_gqa", static_cast<uint32_t>(pieces.pieces.size()));
  checkpoint.config.update({{"architectures", {"LlamaForCausalLM"}}, {"torch_dtype", "float16"}});
  checkpoint.write(directory);
  copy_tokenizer("spbpe/latin", {"tokenizer.model"}, directory);
  write_json(directory / "tokenizer_config.json",
             {{"add_bos_token", true},
              {"add_eos_token", false},
              {"bos_token", {{"__type", "AddedToken"}, {"content", "<s>"}}},
              {"eos_token", {{"__type", "AddedToken"}, {"content", "</s>"}}},
              {"unk_token", {{"__type", "AddedToken"}, {"content", "<unk>"}}},
              {"legacy", false},
              {"model_max_length", 64},
              {"sp_model_kwargs", json::object()},
              {"tokenizer_class", "LlamaTokenizer"},
              {"chat_template",
               "{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + "
               "'[INST] ' + message['content'].strip() + ' [/INST]' }}{% elif message['role'] == "
               "'assistant' %}{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}"
               "{% endfor %}"}});
  write_json(directory / "special_tokens_map.json",
             {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
  write_json(directory / "generation_config.json", {{"bos_token_id", 1},
                                                    {"eos_token_id", 2},
                                                    {"do_sample", true},
                                                    {"temperature", 0.6},
                                                    {"top_p", 0.9},
                                                    {"transformers_version", "4.31.0"}});
}

/// The joint vocabulary of both languages: the end, the unknown word, the pieces, padding.
json joint_vocabulary(const std::string& model) {
  json vocabulary = {{"</s>", 0}, {"<unk>", 1}};
  size_t next = vocabulary.size();
  for (const auto& piece : convert::read_sentencepiece_model(model).pieces) {
    const bool elsewhere = piece.text == "<s>" || piece.text == "<pad>";
    if (!elsewhere && !vocabulary.contains(piece.text)) vocabulary[piece.text] = next++;
  }
  vocabulary["<pad>"] = next;
  return vocabulary;
}

void make_marian(const fs::path& directory) {
  // Both languages are of the group that this one was made for.
  const fs::path pieces = kTests / "tokenizers/unigram/latin/spiece.model";
  const json vocabulary = joint_vocabulary(pieces.string());
  const auto size = static_cast<uint32_t>(vocabulary.size());
  TinyCheckpoint checkpoint = with_vocabulary("marian/ma1", size);
  checkpoint.config.update({{"architectures", {"MarianMTModel"}},
                            {"bad_words_ids", {{size - 1}}},
                            {"bos_token_id", 0},
                            {"pad_token_id", size - 1},
                            {"decoder_start_token_id", size - 1},
                            {"forced_eos_token_id", 0},
                            {"max_length", 512},
                            {"num_beams", 4}});
  checkpoint.write(directory);
  for (const char* name : {"source.spm", "target.spm"}) {
    fs::copy_file(pieces, directory / name, fs::copy_options::overwrite_existing);
  }
  write_json(directory / "vocab.json", vocabulary);
  write_json(directory / "tokenizer_config.json", {{"source_lang", "en"}, {"target_lang", "fr"}});
}

void make_t5(const fs::path& directory) {
  const auto pieces = convert::read_sentencepiece_model(
      (kTests / "tokenizers/unigram/latin/spiece.model").string());
  constexpr uint32_t kExtra = 20;
  const auto known = static_cast<uint32_t>(pieces.pieces.size());
  // Rounded up, as the hub's is.
  TinyCheckpoint checkpoint =
      with_vocabulary("t5/t5a_relu_tied", (known + kExtra + 127) / 128 * 128);
  checkpoint.tensors["encoder.embed_tokens.weight"] = checkpoint.tensors.at("shared.weight");
  checkpoint.tensors["decoder.embed_tokens.weight"] = checkpoint.tensors.at("shared.weight");
  checkpoint.config.update(
      {{"architectures", {"T5ForConditionalGeneration"}},
       {"eos_token_id", 2},
       {"pad_token_id", 3},
       {"decoder_start_token_id", 3},
       {"n_positions", 512},
       {"output_past", true},
       {"task_specific_params", {{"translation_en_to_de", {{"prefix", "translate: "}}}}}});
  checkpoint.write(directory);
  copy_tokenizer("unigram/latin", {"spiece.model"}, directory);
  json extra = json::array();
  for (uint32_t i = 0; i < kExtra; ++i) extra.push_back("<extra_id_" + std::to_string(i) + ">");
  write_json(directory / "tokenizer_config.json", {{"eos_token", "</s>"},
                                                   {"unk_token", "<unk>"},
                                                   {"pad_token", "<pad>"},
                                                   {"extra_ids", kExtra},
                                                   {"additional_special_tokens", extra},
                                                   {"tokenizer_class", "T5Tokenizer"}});
  write_json(directory / "generation_config.json", {{"_from_model_config", true},
                                                    {"decoder_start_token_id", 3},
                                                    {"eos_token_id", 2},
                                                    {"pad_token_id", 3}});
}

const std::map<std::string, void (*)(const fs::path&)> kMakers = {{"gpt2", make_gpt2},
                                                                  {"bert", make_bert},
                                                                  {"llama", make_llama},
                                                                  {"marian", make_marian},
                                                                  {"t5", make_t5}};

}  // namespace

std::vector<std::string> hub_folder_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : kMakers) names.push_back(name);
  return names;
}

void make_hub_folder(const std::string& name, const fs::path& directory) {
  const auto maker = kMakers.find(name);
  if (maker == kMakers.end()) throw std::runtime_error("no folder called " + name);
  fs::create_directories(directory);
  maker->second(directory);
  write_text(directory / "README.md", "A model card.\n");
  write_text(directory / ".gitattributes", "*.safetensors filter=lfs\n");
}

}  // namespace oxbow::testing
