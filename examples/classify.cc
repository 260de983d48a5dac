// Tells the likeliest class of a text: classify model.oxb TEXT.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <oxbow/oxbow.hpp>
#include <vector>

// What was expected, or the words and the end of the program.
template <typename T>
T need(oxb::Expected<T> made) {
  if (made) return std::move(*made);
  std::fprintf(stderr, "%s: %s\n", made.status().name(), made.status().text());
  std::exit(1);
}
void check(const oxb::Status& status) {
  if (!status.ok()) need(oxb::Expected<int>(status));
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto model = need(oxb::Model::open(argv[1]));
  auto session = need(oxb::Session::create(model));
  auto encoder = need(oxb::Encoder::create(model));
  const std::vector<int32_t> tokens = need(encoder.encode(argv[2]));
  std::vector<float> logits(model.info().output_width);
  check(session.run(tokens, logits));
  const auto best =
      static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const char* label = oxb_model_label(model.get(), best);
  std::printf("%zu %s\n", best, label == nullptr ? "" : label);
}
