// Every struct that begins with its size, one field shorter and one field longer than today's: the first is as an older
// program has it, the second as a newer one. Each lies in memory of exactly its size, so that the address sanitizer sees a
// byte too many. Usage: structs GENERATOR CLASSIFIER

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/api/oxbow.h"
#include "runtime/api/oxbow_index.h"

namespace {

int failures = 0;
void expect_at(bool good, int line, const char* what, const char* name) {
  if (good) return;
  std::fprintf(stderr, "structs.cc:%d: %s: %s\n", line, name, what);
  ++failures;
}
#define EXPECT(condition, name) expect_at(condition, __LINE__, #condition, name)

constexpr size_t kMore = 24;
constexpr unsigned char kMark = 0xab;

/// The bytes of one struct, or of several one after the other.
struct Bytes {
  Bytes(const void* from, size_t known, size_t each, size_t count = 1)
      : size(each), data(static_cast<unsigned char*>(std::malloc(each * count))) {
    for (size_t i = 0; i < count; ++i) {
      unsigned char* to = data + i * size;
      std::memset(to, kMark, size);
      const auto* source = static_cast<const unsigned char*>(from) + i * known;
      std::memcpy(to, source, known < size ? known : size);
      std::memcpy(to, &size, sizeof(size));
    }
  }
  ~Bytes() { std::free(data); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  size_t size;
  unsigned char* data;
};

/// Calls with today's size, without the last field, with one more, and with the sizes that nothing has. `good` is what
/// the first three give.
template <typename T>
void each_size(const char* name, const T& init, size_t last_field,
               const std::function<oxb_status(T*)>& call, oxb_status good = OXB_OK) {
  for (const size_t size : {sizeof(T), last_field, sizeof(T) + kMore}) {
    Bytes bytes(&init, sizeof(T), size);
    EXPECT(call(reinterpret_cast<T*>(bytes.data)) == good, name);
    size_t after = 0;
    std::memcpy(&after, bytes.data, sizeof(after));
    EXPECT(after == size, name);
    for (size_t i = sizeof(T); i < size; ++i) EXPECT(bytes.data[i] == kMark, name);
  }
  for (const size_t size : {size_t{0}, SIZE_MAX}) {
    T wrong = init;
    wrong.size = size;
    EXPECT(call(&wrong) == OXB_INVALID_ARGUMENT, name);
  }
}
#define EACH_SIZE(T, INIT, last, call) \
  each_size<T>(#T, T INIT, offsetof(T, last), [&](T* s) -> oxb_status { return call; })

struct Opened {
  explicit Opened(const char* path) {
    EXPECT(oxb_model_open_file(path, nullptr, &model, nullptr) == OXB_OK, path);
    oxb_plan plan = OXB_PLAN_INIT;
    EXPECT(oxb_session_plan(model, nullptr, &plan, nullptr) == OXB_OK, path);
    arena.resize(plan.arena_bytes);
    EXPECT(
        oxb_session_create(model, &plan, arena.data(), arena.size(), &session, nullptr) == OXB_OK,
        path);
    EXPECT(oxb_model_get_info(model, &info, nullptr) == OXB_OK, path);
  }
  ~Opened() {
    oxb_session_destroy(session);
    oxb_model_close(model);
  }
  oxb_model* model = nullptr;
  oxb_session* session = nullptr;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  std::vector<std::byte> arena;
};

void generator(const char* path) {
  const Opened opened(path);
  oxb_model* model = opened.model;
  size_t bytes = 0;
  EACH_SIZE(oxb_open_options, OXB_OPEN_OPTIONS_INIT, session, [&] {
    oxb_model* other = nullptr;
    const oxb_status status = oxb_model_open_file(path, s, &other, nullptr);
    oxb_model_close(other);
    return status;
  }());
  EACH_SIZE(oxb_model_info, OXB_MODEL_INFO_INIT, metadata_count,
            oxb_model_get_info(model, s, nullptr));
  EACH_SIZE(oxb_entry_info, OXB_ENTRY_INFO_INIT, any_pieces,
            oxb_model_entry_info(model, 0, s, nullptr));
  EACH_SIZE(oxb_input_info, OXB_INPUT_INFO_INIT, own_rows,
            oxb_model_input_info(model, 0, 0, s, nullptr));
  EACH_SIZE(oxb_output_info, OXB_OUTPUT_INFO_INIT, max_rows,
            oxb_model_output_info(model, 0, 0, s, nullptr));
  EACH_SIZE(oxb_session_options, OXB_SESSION_OPTIONS_INIT, warm_up, [&] {
    oxb_plan plan = OXB_PLAN_INIT;
    return oxb_session_plan(model, s, &plan, nullptr);
  }());
  EACH_SIZE(oxb_plan, OXB_PLAN_INIT, beam_bytes, oxb_session_plan(model, nullptr, s, nullptr));
  EACH_SIZE(oxb_plan, OXB_PLAN_INIT, beam_bytes, [&] {
    std::vector<std::byte> arena(opened.arena.size());
    oxb_session* other = nullptr;
    const oxb_status status =
        oxb_session_create(model, s, arena.data(), arena.size(), &other, nullptr);
    oxb_session_destroy(other);
    return status;
  }());
  EACH_SIZE(oxb_tensor_info, OXB_TENSOR_INFO_INIT, width,
            oxb_session_tensor_info(opened.session, 0, s, nullptr));
  EACH_SIZE(oxb_sampler_options, OXB_SAMPLER_OPTIONS_INIT, seed,
            oxb_sampler_bytes(opened.info.output_width, s, &bytes, nullptr));
  EACH_SIZE(oxb_sampler_options, OXB_SAMPLER_OPTIONS_INIT, seed,
            oxb_sampler_options_advised(model, s, nullptr));
  EACH_SIZE(oxb_beam_options, OXB_BEAM_OPTIONS_INIT, stop,
            oxb_beam_search_bytes(opened.session, s, &bytes, nullptr));
  EACH_SIZE(oxb_beam_options, OXB_BEAM_OPTIONS_INIT, stop,
            oxb_beam_options_advised(model, s, nullptr));
  EACH_SIZE(oxb_encoder_options, OXB_ENCODER_OPTIONS_INIT, max_word_bytes,
            oxb_encoder_bytes(model, s, &bytes, nullptr));
  EACH_SIZE(oxb_decoder_options, OXB_DECODER_OPTIONS_INIT, skip_special,
            oxb_decoder_bytes(model, s, &bytes, nullptr));
  EACH_SIZE(oxb_generator_options, OXB_GENERATOR_OPTIONS_INIT, undo_turns,
            oxb_generator_bytes(opened.session, s, &bytes, nullptr));

  // An error without its text, with half of it, and with more than today's; of no size it is left alone.
  const int32_t wrong = -1;
  for (const size_t size : {sizeof(oxb_error), offsetof(oxb_error, step), offsetof(oxb_error, text),
                            offsetof(oxb_error, text) + 8, sizeof(oxb_error) + kMore, size_t{8}}) {
    const oxb_error init = OXB_ERROR_INIT;
    Bytes error(&init, sizeof(init), size);
    auto* given = reinterpret_cast<oxb_error*>(error.data);
    EXPECT(oxb_session_run(opened.session, &wrong, 1, 0, nullptr, 0, given) == OXB_INVALID_ARGUMENT,
           "oxb_error");
    int32_t code = OXB_OK;
    if (size > sizeof(size_t)) std::memcpy(&code, error.data + offsetof(oxb_error, code), 4);
    EXPECT(code == (size > sizeof(size_t) ? OXB_INVALID_ARGUMENT : OXB_OK), "oxb_error");
    for (size_t i = sizeof(oxb_error); i < size; ++i) EXPECT(error.data[i] == kMark, "oxb_error");
  }
}

/// What a generator fills.
void pieces(const char* path) {
  const Opened opened(path);
  size_t bytes = 0;
  EXPECT(oxb_generator_bytes(opened.session, nullptr, &bytes, nullptr) == OXB_OK, path);
  std::vector<std::byte> memory(bytes);
  oxb_generator* generator = nullptr;
  EXPECT(oxb_generator_create(opened.session, nullptr, memory.data(), bytes, &generator, nullptr) ==
             OXB_OK,
         path);
  const int32_t token = 1;
  EXPECT(oxb_generator_add_tokens(generator, &token, 1, nullptr) == OXB_OK, path);
  EACH_SIZE(oxb_piece, OXB_PIECE_INIT, end, oxb_generator_next(generator, s, nullptr));
  EACH_SIZE(oxb_generation, OXB_GENERATION_INIT, position,
            oxb_generator_progress(generator, s, nullptr));
  oxb_generator_destroy(generator);
}

void index_table() {
  size_t bytes = 0;
  EXPECT(oxb_index_bytes(4, 8, OXB_METRIC_DOT, &bytes, nullptr) == OXB_OK, "index");
  const auto free_table = [](void* table) { std::free(table); };
  const std::unique_ptr<void, decltype(free_table)> table(std::aligned_alloc(64, bytes),
                                                          free_table);
  EXPECT(oxb_index_create(table.get(), bytes, 4, 8, OXB_METRIC_DOT, nullptr) == OXB_OK, "index");
  EACH_SIZE(oxb_index_info, OXB_INDEX_INFO_INIT, metric,
            oxb_index_get_info(table.get(), bytes, s, nullptr));
}

/// A plug-in that is nowhere: what is asked for is understood with every size, and not there.
void accelerator() {
  oxb_npu_options options = OXB_NPU_OPTIONS_INIT;
  options.plugin = "/nowhere/plugin.so";
  each_size<oxb_npu_options>(
      "oxb_npu_options", options, offsetof(oxb_npu_options, driver),
      [](oxb_npu_options* s) {
        oxb_npu* npu = nullptr;
        return oxb_npu_open(s, &npu, nullptr);
      },
      OXB_NO_DEVICE);
}

void classifier(const char* path) {
  const Opened opened(path);
  const size_t width = opened.info.output_width;
  const int32_t tokens[] = {1, 2, 3};
  std::vector<float> out(width);
  EACH_SIZE(oxb_embed_options, OXB_EMBED_OPTIONS_INIT, normalise,
            oxb_session_embed(opened.session, tokens, 3, s, out.data(), out.size(), nullptr));
  oxb_input_info info = OXB_INPUT_INFO_INIT;
  oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
  EXPECT(oxb_model_input_info(opened.model, 0, 0, &info, nullptr) == OXB_OK, path);
  EXPECT(oxb_model_entry_info(opened.model, 0, &entry, nullptr) == OXB_OK, path);
  // Arrays: each struct of the size of the first.
  const int32_t ones[] = {1, 1, 1};
  const oxb_input inputs[] = {{sizeof(oxb_input), info.name, tokens, 3},
                              {sizeof(oxb_input), "attention_mask", ones, 3}};
  const oxb_output output = {sizeof(oxb_output), entry.output, out.data(), out.size(), 1};
  for (const size_t more : {size_t{0}, kMore}) {
    const Bytes given(inputs, sizeof(oxb_input), sizeof(oxb_input) + more, 2);
    Bytes wanted(&output, sizeof(oxb_output), sizeof(oxb_output) + more);
    EXPECT(
        oxb_session_run_entry(opened.session, 0, reinterpret_cast<const oxb_input*>(given.data), 2,
                              reinterpret_cast<oxb_output*>(wanted.data), 1, nullptr) == OXB_OK,
        "oxb_input and oxb_output");
  }
  // Without its rows an input has none.
  const Bytes shorter(inputs, sizeof(oxb_input), offsetof(oxb_input, rows), 1);
  Bytes wanted(&output, sizeof(oxb_output), sizeof(oxb_output));
  EXPECT(oxb_session_run_entry(opened.session, 0, reinterpret_cast<const oxb_input*>(shorter.data),
                               1, reinterpret_cast<oxb_output*>(wanted.data), 1,
                               nullptr) == OXB_INVALID_ARGUMENT,
         "oxb_input");
  // An output without its rows wants none, which does not suit one whose number of rows is fixed.
  const Bytes whole(inputs, sizeof(oxb_input), sizeof(oxb_input), 1);
  Bytes short_output(&output, sizeof(oxb_output), offsetof(oxb_output, rows));
  EXPECT(oxb_session_run_entry(opened.session, 0, reinterpret_cast<const oxb_input*>(whole.data), 1,
                               reinterpret_cast<oxb_output*>(short_output.data), 1,
                               nullptr) == OXB_INVALID_ARGUMENT,
         "oxb_output");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  generator(argv[1]);
  pieces(argv[1]);
  index_table();
  accelerator();
  classifier(argv[2]);
  if (failures == 0) std::puts("structs of other sizes work");
  return failures == 0 ? 0 : 1;
}
