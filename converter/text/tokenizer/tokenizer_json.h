#pragma once

// What the readers of tokenizer.json, the file of Hugging Face's tokenizers library, share. The file is a program: a list
// of normalizers, one of pre-tokenizers, a model, one of decoders, and what is put around a text. A reader takes what its
// kind of tokenizer can do, in the order of the file; the rest is refused by name.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/text/tokenizer/pattern.h"
#include "converter/text/tokenizer/settings.h"

namespace oxbow::convert {

class TokenizerJson {
 public:
  using json = nlohmann::json;

  TokenizerJson(std::string path, const json& file, uint32_t tokens);

  [[noreturn]] void fail(const std::string& what) const;
  static std::string shown(const json& value);
  static const json& optional(const json& object, const char* key);
  const json& member(const json& object, const std::string& where, const char* key) const;
  std::string text(const json& value, const std::string& what) const;
  bool flag(const json& object, const char* key, bool fallback) const;
  /// Of a part that puts spaces before text: "always", "first", "never". Older files say whether, newer ones when.
  std::string prepend_scheme(const json& part) const;
  /// What a part of the file is, for messages too.
  static std::string type(const json& value);

  const std::string& path() const { return path_; }
  const json& model() const { return optional(file_, "model"); }
  /// The parts of a list, those inside of sequences included.
  std::vector<const json*> normalizers() const;
  std::vector<const json*> pre_tokenizers() const;
  std::vector<const json*> decoders() const;

  std::vector<AddedTokenSetting> added() const;
  /// Tokens around a text, and between two and behind the second; those of pairs are empty when there are none.
  struct Template {
    std::vector<uint32_t> before;
    std::vector<uint32_t> after;
    std::vector<uint32_t> pair_between;
    std::vector<uint32_t> pair_after;

    void write(schema::TokenizerT& tokenizer) const;
  };
  Template post_processor() const;

  /// Two texts, or in older files one with a space between them.
  std::vector<std::pair<std::string, std::string>> merges() const;

  /// The pattern of a pre-tokenizer that only cuts; refuses others.
  SplitPattern cut(const json& part) const;

 private:
  void flatten(const json& part, const std::string& where, const char* list, int depth,
               std::vector<const json*>& out) const;
  void add_processor(const json& processor, int depth, Template& out) const;
  uint32_t template_id(const json& id) const;
  uint32_t pair_id(const json& processor, const char* key) const;
  void read_single(const json& processor, Template& out) const;
  void read_pair(const json& processor, Template& out) const;
  /// `left`: how many more a template may have.
  std::vector<uint32_t> special_ids(const json& processor, const json& entry, size_t& left) const;

  std::string path_;
  const json& file_;
  uint32_t tokens_;
};

}  // namespace oxbow::convert
