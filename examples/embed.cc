// A text as numbers, the mean of its tokens' hidden states: embed model.oxb TEXT.
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
  const size_t width = model.info().output_width;
  std::vector<float> rows(tokens.size() * width);
  check(session.run(tokens, rows));
  for (size_t column = 0; column < width; ++column) {
    float sum = 0.0f;
    for (size_t row = 0; row < tokens.size(); ++row) sum += rows[row * width + column];
    std::printf("%.4f ", static_cast<double>(sum) / static_cast<double>(tokens.size()));
  }
  std::puts("");
}
