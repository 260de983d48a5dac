// Reads a text once and goes on from it several times: rewind model.oxb TEXT CONTINUATION...
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
  if (argc < 4) return 2;
  const auto model = need(oxb::Model::open(argv[1]));
  auto session = need(oxb::Session::create(model));
  oxb::GeneratorOptions options;
  options.max_tokens = 30;
  auto generator = need(oxb::Generator::create(session, options));
  check(generator.add(argv[2]));
  std::vector<std::byte> checkpoint(generator.state_bytes());
  check(generator.save(checkpoint));
  for (int i = 3; i < argc; ++i) {
    check(generator.load(checkpoint));
    check(generator.add(argv[i]));
    need(generator.run(print));
    std::puts("");
  }
}
