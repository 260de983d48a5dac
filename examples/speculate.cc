// Speculation: a small model drafts some tokens, the large one judges them all in one run, and both go on behind the
// last that the large one would have written itself. The text is the large one's, most likely token by most likely
// token; only the time differs.
//
//   speculate large.oxb small.oxb "In the beginning" [tokens of a draft]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <oxbow/oxbow.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kTokens = 200;

// One model and its stream. The first of its errors ends the program.
class Stream {
 public:
  explicit Stream(const char* path)
      : model_(taken(oxb::Model::open(path))), session_(taken(oxb::Session::create(model_))) {
    logits_.resize(size_t{width()} * model_.info().max_segment);
  }

  const oxb::Model& model() const { return model_; }
  uint32_t width() const { return model_.info().output_width; }

  // The most likely token behind each of `ids`.
  std::vector<int32_t> run(std::span<const int32_t> ids) {
    const std::span<float> logits(logits_.data(), ids.size() * width());
    check(session_.run(ids, logits));
    std::vector<int32_t> best;
    for (auto row = logits.begin(); row != logits.end(); row += width()) {
      best.push_back(static_cast<int32_t>(std::max_element(row, row + width()) - row));
    }
    return best;
  }
  // All of a text, a segment at a time: what comes behind it.
  int32_t read(std::span<const int32_t> ids) {
    int32_t next = 0;
    const size_t most = model_.info().max_segment;
    for (; !ids.empty(); ids = ids.subspan(std::min(most, ids.size()))) {
      next = run(ids.first(std::min(most, ids.size()))).back();
    }
    return next;
  }

  void draft(size_t tokens) {
    memory_.resize(taken(session_.draft_bytes(tokens)));
    check(session_.draft(memory_, tokens));
  }
  void keep(size_t tokens) { check(session_.keep(tokens)); }
  void reset() { session_.reset(); }

 private:
  static void check(const oxb::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "speculate: %s\n", status.text());
    std::exit(1);
  }
  template <typename T>
  static T taken(oxb::Expected<T> value) {
    check(value.status());
    return std::move(*value);
  }

  oxb::Model model_;
  oxb::Session session_;
  std::vector<float> logits_;
  std::vector<std::byte> memory_;
};

std::vector<int32_t> alone(Stream& large, std::span<const int32_t> prompt) {
  std::vector<int32_t> text = {large.read(prompt)};
  while (text.size() < kTokens) text.push_back(large.run({&text.back(), 1})[0]);
  return text;
}

std::vector<int32_t> drafted(Stream& large, Stream& small, std::span<const int32_t> prompt,
                             size_t most, size_t* runs) {
  std::vector<int32_t> text = {large.read(prompt)};
  small.read(prompt);
  while (text.size() < kTokens) {
    // The last token is known and seen by neither; the draft goes on from it.
    std::vector<int32_t> draft = {text.back()};
    small.draft(most + 1);
    while (draft.size() <= most) draft.push_back(small.run({&draft.back(), 1})[0]);
    small.run({&draft.back(), 1});
    large.draft(draft.size());
    const std::vector<int32_t> best = large.run(draft);
    size_t right = 1;
    while (right < draft.size() && draft[right] == best[right - 1]) ++right;
    large.keep(right);
    small.keep(right);
    text.insert(text.end(), best.begin(), best.begin() + static_cast<ptrdiff_t>(right));
    ++*runs;
  }
  text.resize(kTokens);
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argv[3][0] == '\0') {
    std::fprintf(stderr, "usage: speculate large.oxb small.oxb PROMPT [TOKENS OF A DRAFT]\n");
    return 2;
  }
  Stream large(argv[1]), small(argv[2]);
  const size_t room = large.model().info().max_segment - 1;
  const size_t most = std::clamp<size_t>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 4, 1,
                                         std::max<size_t>(room, 1));
  if (large.width() != small.width() || room == 0) {
    std::fprintf(stderr,
                 "speculate: both models must have one vocabulary, and runs of two tokens\n");
    return 1;
  }
  auto encoder = oxb::Encoder::create(large.model());
  if (!encoder) return std::fprintf(stderr, "speculate: %s\n", encoder.status().text()), 1;
  const auto encoded = encoder->encode(argv[3]);
  if (!encoded) return std::fprintf(stderr, "speculate: %s\n", encoded.status().text()), 1;
  const std::vector<int32_t>& prompt = *encoded;

  auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> plain = alone(large, prompt);
  const double plain_seconds = seconds_since(start);
  large.reset();
  size_t runs = 0;
  start = std::chrono::steady_clock::now();
  const std::vector<int32_t> text = drafted(large, small, prompt, most, &runs);
  const double seconds = seconds_since(start);

  auto decoder = oxb::Decoder::create(large.model());
  if (!decoder) return std::fprintf(stderr, "speculate: %s\n", decoder.status().text()), 1;
  for (const int32_t token : text) {
    const auto piece = decoder->run(token);
    if (piece) std::fwrite(piece->data(), 1, piece->size(), stdout);
  }
  std::printf("\n\n%zu tokens in %zu runs of the large model, %.2f times as fast; %s\n",
              text.size(), runs, plain_seconds / seconds,
              text == plain ? "the same text" : "ANOTHER TEXT");
  return text == plain ? 0 : 1;
}
