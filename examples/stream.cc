// Reads a text, keeps the state, and tries two continuations from the same place: checkpoint and
// rewind, in C++.
//
//   stream_cpp model.oxb "In the beginning"

#include <cstdio>
#include <oxbow/oxbow.hpp>
#include <string_view>
#include <vector>

namespace {

int fail(const oxb::Status& status) {
  std::fprintf(stderr, "stream: %s\n", status.text());
  return 1;
}

// Feeds all of `text`, a segment at a time; `logits` gets those of its last token.
oxb::Status feed(const oxb::Model& model, oxb::Session& session, std::string_view text,
                 std::span<float> logits) {
  auto encoder = oxb::Encoder::create(model);
  if (!encoder) return encoder.status();
  std::vector<int32_t> ids(model.info().max_segment);
  oxb::Encoded encoded;
  do {
    if (oxb::Status status = encoder->run(text, true, ids, &encoded); !status.ok()) return status;
    if (encoded.count == 0) break;
    if (oxb::Status status = session.run({ids.data(), encoded.count}, logits); !status.ok()) {
      return status;
    }
    text.remove_prefix(encoded.consumed);
  } while (encoded.count == ids.size());
  return {};
}

oxb::Status generate(const oxb::Model& model, oxb::Session& session, uint64_t seed,
                     std::vector<float> logits) {
  oxb::SamplerOptions options;
  options.seed = seed;
  auto sampler = oxb::Sampler::create(model.info().output_width, options);
  if (!sampler) return sampler.status();
  auto decoder = oxb::Decoder::create(model);
  if (!decoder) return decoder.status();
  for (int i = 0; i < 100; ++i) {
    const auto token = sampler->pick(logits);
    if (!token) return token.status();
    sampler->accept(*token);
    const auto piece = decoder->run(*token);
    if (!piece) return piece.status();
    std::fwrite(piece->data(), 1, piece->size(), stdout);
    if (oxb::Status status = session.run({&*token, 1}, logits); !status.ok()) return status;
  }
  std::puts("\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || argv[2][0] == '\0') {
    std::fprintf(stderr, "usage: stream_cpp model.oxb PROMPT\n");
    return 2;
  }
  auto model = oxb::Model::open(argv[1]);
  if (!model) return fail(model.status());
  auto session = oxb::Session::create(*model);
  if (!session) return fail(session.status());

  std::vector<float> logits(model->info().output_width);
  if (oxb::Status status = feed(*model, *session, argv[2], logits); !status.ok()) {
    return fail(status);
  }
  std::vector<std::byte> checkpoint(session->state_bytes());
  if (oxb::Status status = session->checkpoint(checkpoint); !status.ok()) return fail(status);
  for (const uint64_t seed : {1, 2}) {
    if (oxb::Status status = session->rewind(checkpoint); !status.ok()) return fail(status);
    if (oxb::Status status = generate(*model, *session, seed, logits); !status.ok()) {
      return fail(status);
    }
  }
}
