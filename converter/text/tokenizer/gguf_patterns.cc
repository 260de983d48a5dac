#include "converter/text/tokenizer/gguf_patterns.h"

namespace oxbow::convert {
namespace {

#define OXB_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define OXB_ENDINGS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define OXB_WORDS(numbers) \
  R"([^\r\n\p{L}\p{N}]?\p{L}+|)" numbers R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OXB_LLAMA3(numbers) OXB_ENDINGS "|" OXB_WORDS(numbers)
// Words that begin with capitals or go on in small letters, of letters that are also `of`.
#define OXB_CASES(of, endings, numbers, behind_signs)                                         \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})" of R"(]*[\p{Ll}\p{Lm}\p{Lo}\p{M})" of \
  "]+" endings R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})" of                      \
  R"(]+[\p{Ll}\p{Lm}\p{Lo}\p{M})" of "]*" endings "|" numbers                                 \
  R"(| ?[^\s\p{L}\p{N}]+)" behind_signs R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2[] = {OXB_GPT2};
constexpr const char* kDigitsGpt2[] = {R"(\p{N})", OXB_GPT2};
constexpr const char* kLlama3[] = {OXB_LLAMA3(R"(\p{N}{1,3})")};
constexpr const char* kQwen2[] = {OXB_LLAMA3(R"(\p{N})")};
constexpr const char* kQwen35[] = {
    OXB_ENDINGS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char* kNoEndings[] = {OXB_WORDS(R"(\p{N})")};
constexpr const char* kMiniCpm5[] = {R"(\p{N}{1,3})", OXB_LLAMA3(R"(\p{N}+)")};
constexpr const char* kLaguna[] = {R"([^\n]+|\n+)", OXB_LLAMA3(R"(\p{N})")};
// Runs of white space by halves.
constexpr const char* kJais2[] = {
    OXB_ENDINGS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"};
constexpr const char* kExaoneMoe[] = {
    OXB_ENDINGS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kTekken[] = {OXB_CASES("", "", R"(\p{N})", R"([\r\n/]*)")};
constexpr const char* kGpt4o[] = {OXB_CASES("", OXB_ENDINGS "?", R"(\p{N}{1,3})", R"([\r\n/]*)")};
constexpr const char* kYoutu[] = {
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-"
    "ゟ゠-"
    "ヿ]"
    "+",
    OXB_CASES("", OXB_ENDINGS "?", R"(\p{N})", R"([\r\n/]*)")};
constexpr const char* kKimi[] = {
    R"([\p{Han}]+|)" OXB_CASES(R"(&&[^\p{Han}])", OXB_ENDINGS "?", R"(\p{N}{1,3})", R"([\r\n]*)")};
constexpr const char* kChameleon[] = {"<sentinel:[0-9]+>",       "IMGIMG[A-I]{1,4}Z",
                                      R"([\t\n]|    |  )",       R"(\p{N})",
                                      R"([\p{P}!-/:-@\[-`{-~])", OXB_GPT2};
constexpr const char* kFalcon[] = {OXB_GPT2, "[0-9][0-9][0-9]"};
constexpr const char* kDefault[] = {R"([\p{P}$+<=>^~|]+)", OXB_GPT2, R"(\p{N}+)",
                                    "[0-9][0-9][0-9]"};
constexpr const char* kDeepSeekLlm[] = {
    R"([\r\n])",
    // Letters of scripts that have capitals.
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)", R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N}+)"};
constexpr const char* kDeepSeekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                          R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};
constexpr const char* kDeepSeek3[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char* kSpark[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
    R"(\p{N})"};
constexpr const char* kBloom[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
constexpr const char* kViking[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"};
constexpr const char* kSuperBpe[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr const char* kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kSeedCoder[] = {
    OXB_ENDINGS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr GgufCut kCuts[] = {
    {.name = "default", .patterns = kDefault},
    {.name = "llama3", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "llama-v3", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "llama-bpe", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "falcon3", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "falcon-h1", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "pixtral", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "midm-2.0", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "lfm2", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "jina-v5-nano", .patterns = kLlama3, .whole_words = true, .adds_begin = true},
    {.name = "dbrx", .patterns = kLlama3},
    {.name = "smaug-bpe", .patterns = kLlama3},
    {.name = "chatglm-bpe", .patterns = kLlama3},
    {.name = "glm4", .patterns = kLlama3, .whole_words = true},
    {.name = "glm5", .patterns = kLlama3, .whole_words = true},
    {.name = "minicpm5", .patterns = kMiniCpm5, .whole_words = true},
    {.name = "jais-2", .patterns = kJais2},
    {.name = "qwen2", .patterns = kQwen2, .composes = true},
    {.name = "deepseek-r1-qwen", .patterns = kQwen2, .composes = true},
    {.name = "f2llmv2", .patterns = kQwen2, .composes = true},
    {.name = "qwen35", .patterns = kQwen35},
    {.name = "kormo", .patterns = kQwen2},
    {.name = "grok-2", .patterns = kQwen2},
    {.name = "solar-open", .patterns = kQwen2},
    {.name = "ufakzeka", .patterns = kNoEndings},
    {.name = "laguna", .patterns = kLaguna},
    {.name = "exaone-moe", .patterns = kExaoneMoe},
    {.name = "stablelm2", .patterns = kQwen2},
    {.name = "megrez", .patterns = kQwen2},
    {.name = "hunyuan", .patterns = kQwen2},
    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "phi-2", .patterns = kGpt2},
    {.name = "jina-es", .patterns = kGpt2},
    {.name = "jina-de", .patterns = kGpt2},
    {.name = "jina-v2-es", .patterns = kGpt2},
    {.name = "jina-v2-de", .patterns = kGpt2},
    {.name = "gigachat", .patterns = kGpt2},
    {.name = "a.x-4.0", .patterns = kGpt2},
    {.name = "mellum", .patterns = kGpt2},
    {.name = "exaone4", .patterns = kGpt2},
    {.name = "mpt", .patterns = kGpt2, .composes = true},
    {.name = "olmo", .patterns = kGpt2, .composes = true},
    {.name = "jais", .patterns = kGpt2},
    {.name = "trillion", .patterns = kGpt2},
    {.name = "granite-docling", .patterns = kGpt2},
    {.name = "modern-bert", .patterns = kGpt2, .composes = true},
    {.name = "roberta-bpe", .patterns = kGpt2},
    {.name = "jina-v1-en", .patterns = kGpt2},
    {.name = "jina-v2-code", .patterns = kGpt2},
    {.name = "starcoder", .patterns = kDigitsGpt2},
    {.name = "refact", .patterns = kDigitsGpt2},
    {.name = "command-r", .patterns = kDigitsGpt2, .composes = true},
    {.name = "smollm", .patterns = kDigitsGpt2},
    {.name = "codeshell", .patterns = kDigitsGpt2},
    {.name = "exaone", .patterns = kDigitsGpt2},
    {.name = "minerva-7b", .patterns = kDigitsGpt2},
    {.name = "mellum2", .patterns = kDigitsGpt2},
    {.name = "tekken", .patterns = kTekken, .whole_words = true, .adds_begin = true},
    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "llama4", .patterns = kGpt4o},
    {.name = "kanana2", .patterns = kGpt4o},
    {.name = "talkie", .patterns = kGpt4o},
    {.name = "minimax-m2", .patterns = kGpt4o},
    {.name = "granite-embed-multi-97m", .patterns = kGpt4o, .whole_words = true},
    {.name = "youtu", .patterns = kYoutu, .whole_words = true},
    {.name = "kimi-k2", .patterns = kKimi},
    {.name = "chameleon", .patterns = kChameleon, .adds_begin = true},
    {.name = "falcon", .patterns = kFalcon, .punctuation_apart = true},
    {.name = "deepseek-llm", .patterns = kDeepSeekLlm},
    {.name = "deepseek-coder", .patterns = kDeepSeekCoder},
    {.name = "deepseek-v3", .patterns = kDeepSeek3},
    {.name = "hunyuan-dense", .patterns = kDeepSeek3},
    {.name = "joyai-llm", .patterns = kDeepSeek3},
    {.name = "hy_v4", .patterns = kDeepSeek3},
    {.name = "spark2_5", .patterns = kSpark},
    {.name = "bloom", .patterns = kBloom},
    {.name = "poro-chat", .patterns = kBloom},
    {.name = "gpt3-finnish", .patterns = kBloom},
    {.name = "viking", .patterns = kViking},
    {.name = "bailingmoe", .patterns = kBailing},
    {.name = "bailingmoe2", .patterns = kBailing},
    {.name = "llada-moe", .patterns = kBailing},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "superbpe", .patterns = kSuperBpe},
};

}  // namespace

const GgufCut* find_gguf_cut(std::string_view name) {
  for (const GgufCut& cut : kCuts) {
    if (cut.name == name) return &cut;
  }
  return nullptr;
}

std::vector<SplitPattern> patterns_of(const GgufCut& cut) {
  std::vector<SplitPattern> out;
  if (cut.punctuation_apart) out.push_back({punctuation_pattern() + "+"});
  for (const char* pattern : cut.patterns) out.push_back({pattern});
  return out;
}

}  // namespace oxbow::convert
