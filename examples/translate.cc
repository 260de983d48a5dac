// Translates a text: translate model.oxb TEXT.
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

bool print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto model = need(oxb::Model::open(argv[1]));
  auto session = need(oxb::Session::create(model));
  oxb::GeneratorOptions options;
  options.max_tokens = 60;
  auto generator = need(oxb::Generator::create(session, options));
  auto encoder = need(oxb::Encoder::create(model));
  check(session.encode(need(encoder.encode(argv[2]))));
  need(generator.run(print));
  std::puts("");
}
