#include "converter/text/tokenizer/normal_steps.h"

#include <array>
#include <utility>

#include "converter/text/tokenizer/char_map.h"
#include "converter/text/tokenizer/unicode.h"
#include "host/base64.h"
#include "host/errors.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using Decompose = NormalForm::Decompose;

constexpr size_t kMaxContent = 1024;
// What the normalizer Nmt leaves out, and what it makes spaces of.
constexpr CodePointRange kNmtRemoved[] = {{0x1, 0x8},   {0xb, 0xb},   {0xe, 0x1f},
                                          {0x7f, 0x7f}, {0x8f, 0x8f}, {0x9f, 0x9f}};
constexpr CodePointRange kNmtSpaces[] = {{0x9, 0xa},       {0xc, 0xd},       {0x1680, 0x1680},
                                         {0x200b, 0x200f}, {0x2028, 0x2029}, {0x2581, 0x2581},
                                         {0xfeff, 0xfeff}, {0xfffd, 0xfffd}};
// Marks of a cluster that are no marks by their category.
constexpr CodePointRange kJoiners[] = {
    {0x200c, 0x200d}, {0xe33, 0xe33}, {0xeb3, 0xeb3}, {0xff9e, 0xff9f}, {0x1f3fb, 0x1f3ff}};

std::string charsmap_bytes(const TokenizerJson& in, const std::string& text) {
  std::optional<std::string> bytes = decode_base64(text);
  if (!bytes) in.fail("precompiled_charsmap is not base64");
  return std::move(*bytes);
}

}  // namespace

schema::NormalStepT& NormalSteps::append() {
  done_.push_back(std::make_unique<schema::NormalStepT>());
  if (done_.size() >= kMaxNormalSteps) in_.fail("more normalizers than are supported");
  return *done_.back();
}

void NormalSteps::end_form() {
  if (form_.empty()) return;
  FormTables tables = make_form(form_, {});
  schema::NormalStepT& step = append();
  step.form = std::move(tables.form);
  step.classes = std::move(tables.classes);
  form_ = {};
}

void NormalSteps::add_before_text(const std::string& text) {
  // Compatible forms make spaces of other characters.
  if (!form_.prefix.empty() || form_.decompose == Decompose::kCompatible) end_form();
  form_.prefix = text;
  form_.prefix_unless_space = true;
}

void NormalSteps::replace(const SplitPattern& pattern, const std::string& content) {
  end_form();
  if (content.size() > kMaxContent) in_.fail("normalizer.content is too long");
  CompiledPatterns compiled = compile_patterns(in_.path(), {pattern});
  schema::NormalStepT& step = append();
  step.pattern = std::move(compiled.patterns[0]);
  step.classes = std::move(compiled.classes);
  step.class_count = compiled.class_count;
  step.content = content;
}

void NormalSteps::add_map(const std::map<std::string, std::string>& texts) {
  end_form();
  append().map = make_char_map(texts);
}

void NormalSteps::add_precompiled(const json& part) {
  const json& map = TokenizerJson::optional(part, "precompiled_charsmap");
  if (map.is_null() || map == "") return;
  end_form();
  std::unique_ptr<schema::CharMapT> made = split_char_map(
      in_.path(), charsmap_bytes(in_, in_.text(map, "normalizer.precompiled_charsmap")));
  if (!made) return;
  schema::NormalStepT& step = append();
  step.map = std::move(made);
  step.clusters = true;
  std::vector<ClassRule> rules = {{kJoiners, kWordCharacter}};
  std::array<std::vector<CodePointRange>, 7> sets;
  constexpr std::pair<const char*, uint8_t> kSets[] = {
      {"Mn", kWordCharacter}, {"Mc", kWordCharacter}, {"Me", kWordCharacter}, {"Cc", kIsolated},
      {"Cf", kIsolated},      {"Zl", kIsolated},      {"Zp", kIsolated}};
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i] = named_code_points(kSets[i].first).value_or(std::vector<CodePointRange>());
    rules.push_back({sets[i], kSets[i].second});
  }
  step.classes = std::make_unique<schema::CharClassesT>(build_char_classes(rules));
}

void NormalSteps::add_bert(const json& part) {
  const bool clean = in_.flag(part, "clean_text", true);
  const bool chinese = in_.flag(part, "handle_chinese_chars", true);
  const bool lower = in_.flag(part, "lowercase", true);
  std::map<std::string, std::string> texts;
  const auto each = [](std::span<const CodePointRange> ranges, const auto& use) {
    for (const CodePointRange& range : ranges) {
      for (uint32_t point = range.first; point <= range.last; ++point) use(point);
    }
  };
  if (chinese) {
    each(CodePoints::chinese(), [&](uint32_t point) {
      if (!clean || !contains(CodePoints::bert_controls(), point)) {
        texts[utf8(point)] = " " + utf8(point) + " ";
      }
    });
  }
  if (clean) {
    each(CodePoints::white_space(), [&](uint32_t point) {
      const bool control = contains(CodePoints::bert_controls(), point);
      if (point != ' ' && !control) texts[utf8(point)] = " ";
    });
  }
  if (!texts.empty()) add_map(texts);
  if (clean) {
    done_.back()->classes = std::make_unique<schema::CharClassesT>(
        build_char_classes(std::vector<ClassRule>{{CodePoints::bert_controls(), kRemoved}}));
  }
  end_form();
  form_.strip_accents = in_.flag(part, "strip_accents", lower);
  if (form_.strip_accents) form_.decompose = Decompose::kCanonical;
  form_.lower_case = lower;
  changes_letters_ |= lower || form_.strip_accents;
}

void NormalSteps::add(const json& part) {
  const std::string name = TokenizerJson::type(part);
  if (name == "NFC" || name == "NFD" || name == "NFKC" || name == "NFKD") {
    if (!form_.empty()) end_form();
    form_.decompose = name[2] == 'K' ? Decompose::kCompatible : Decompose::kCanonical;
    form_.compose = name.back() == 'C';
  } else if (name == "Lowercase") {
    if (!form_.prefix.empty()) end_form();
    form_.lower_case = true;
    changes_letters_ = true;
  } else if (name == "StripAccents") {
    if (!form_.prefix.empty() || form_.lower_case) end_form();
    form_.strip_marks = true;
    changes_letters_ = true;
  } else if (name == "Prepend") {
    if (!form_.prefix.empty()) end_form();
    form_.prefix = in_.text(TokenizerJson::optional(part, "prepend"), "normalizer.prepend");
    // The table's own limit.
    if (form_.prefix.size() > 24) in_.fail("normalizer.prepend is too long");
  } else if (name == "Replace") {
    const json& pattern = TokenizerJson::optional(part, "pattern");
    SplitPattern cut;
    cut.literal = TokenizerJson::optional(pattern, "String").is_string();
    cut.text = in_.text(TokenizerJson::optional(pattern, cut.literal ? "String" : "Regex"),
                        "normalizer.pattern");
    if (cut.literal && cut.text.empty()) in_.fail("normalizer.pattern is empty");
    replace(cut, in_.text(TokenizerJson::optional(part, "content"), "normalizer.content"));
  } else if (name == "Strip") {
    end_form();
    schema::NormalStepT& step = append();
    step.strip_left = in_.flag(part, "strip_left", true);
    step.strip_right = in_.flag(part, "strip_right", true);
    step.classes = std::make_unique<schema::CharClassesT>(
        build_char_classes(std::vector<ClassRule>{{CodePoints::white_space(), kSpace}}));
  } else if (name == "Precompiled") {
    add_precompiled(part);
  } else if (name == "BertNormalizer") {
    add_bert(part);
  } else if (name == "Nmt") {
    std::map<std::string, std::string> texts;
    for (const CodePointRange& range : kNmtRemoved) {
      for (uint32_t point = range.first; point <= range.last; ++point) texts[utf8(point)] = "";
    }
    for (const CodePointRange& range : kNmtSpaces) {
      for (uint32_t point = range.first; point <= range.last; ++point) texts[utf8(point)] = " ";
    }
    add_map(texts);
  } else {
    in_.fail("the normalizer " + name + " is not supported");
  }
}

std::vector<std::unique_ptr<schema::NormalStepT>> NormalSteps::take() {
  end_form();
  return std::move(done_);
}

}  // namespace oxbow::convert
