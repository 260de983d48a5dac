// Goes on where an earlier process stopped: resume model.oxb STATE [PROMPT]. Writes 50 tokens and saves the state.
#include <cstdio>
#include <cstdlib>
#include <fstream>
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
  if (argc != 3 && argc != 4) return 2;
  const auto model = need(oxb::Model::open(argv[1]));
  auto session = need(oxb::Session::create(model));
  auto generator = need(oxb::Generator::create(session));
  std::vector<std::byte> state(generator.state_bytes());
  auto* bytes = reinterpret_cast<char*>(state.data());
  const auto size = static_cast<std::streamsize>(state.size());
  if (argc == 4) {
    check(generator.add(argv[3]));
  } else {
    std::ifstream(argv[2], std::ios::binary).read(bytes, size);
    check(generator.load(state));
  }
  oxb::Piece piece;
  for (int i = 0; i < 50 && !piece.last(); ++i) {
    piece = need(generator.next());
    std::fwrite(piece.text, 1, piece.text_bytes, stdout);
  }
  check(generator.save(state));
  return std::ofstream(argv[2], std::ios::binary).write(bytes, size) ? 0 : 1;
}
