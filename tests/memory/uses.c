/* Uses model files for Clang's memory sanitizer, in C: of the C++ library, which is not built with it, the runtime takes
 * operator new and delete alone, and this program nothing. Arenas, outputs and states begin unwritten; what a run writes
 * must not depend on them, nor may anything that is decided.
 *
 * Usage: uses [--mutants N] [--seed N] MODEL.oxb...     N copies of each are changed, with right checksums, and used, too */

#include <sanitizer/msan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oxbow.h"

enum { kMostArena = 4 << 20, kMostNumbers = 1 << 18, kMostInputs = 64, kAlignment = 64 };

static uint64_t random_state = 1;
static uint64_t below(uint64_t bound) {
  random_state += 0x9e3779b97f4a7c15ull;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return bound == 0 ? 0 : (z ^ (z >> 31)) % bound;
}

/* Memory that nobody has written. */
static void* take(size_t bytes) {
  void* memory = malloc(bytes + 1);
  if (memory == NULL) abort();
  __msan_allocated_memory(memory, bytes + 1);
  return memory;
}

static void fail(const char* what, const oxb_error* error) {
  fprintf(stderr, "uses: %s: %s\n", what, error->text);
  abort();
}

/* One run of an entry point with any values. False: it wants more than a test gives. */
static int run(const oxb_model* model, oxb_session* session, size_t entry) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_entry_info info = OXB_ENTRY_INFO_INIT;
  if (oxb_model_entry_info(model, entry, &info, &error) != OXB_OK) fail("entry point", &error);
  oxb_input inputs[kMostInputs];
  oxb_output outputs[kMostInputs];
  size_t input_count = 0, output_count = 0;
  int good = info.input_count <= kMostInputs && info.output_count <= kMostInputs;
  const size_t rows = 1 + below(info.max_rows < 8 ? info.max_rows : 8);
  for (size_t i = 0; good && i < info.input_count; ++i) {
    oxb_input_info input = OXB_INPUT_INFO_INIT;
    oxb_model_input_info(model, entry, i, &input, &error);
    const size_t most = input.max_rows < 16 ? input.max_rows : 16;
    const size_t own = i != 0 && input.own_rows ? below(most + 1) : rows;
    good = (uint64_t)own * input.width <= kMostNumbers;
    if (!good) break;
    const size_t numbers = own * input.width;
    int32_t* values = take(numbers * 4);
    for (size_t k = 0; k < numbers; ++k) {
      const float real = (float)below(2000) / 1000.0f - 1.0f;
      values[k] = (int32_t)below(input.limit);
      if (input.type != OXB_TYPE_I32) memcpy(values + k, &real, sizeof(real));
    }
    const oxb_input given = {sizeof(oxb_input), input.name, values, own};
    inputs[input_count++] = given;
  }
  for (size_t i = 0; good && i < info.output_count; ++i) {
    oxb_output_info output = OXB_OUTPUT_INFO_INIT;
    oxb_model_output_info(model, entry, i, &output, &error);
    const size_t wanted = i != 0                  ? output.max_rows
                          : info.output_rows != 0 ? info.output_rows
                                                  : rows;
    good = (uint64_t)wanted * output.width <= kMostNumbers;
    if (!good) break;
    const size_t numbers = wanted * output.width;
    const oxb_output room = {sizeof(oxb_output), output.name, take(numbers * 4), numbers, wanted};
    outputs[output_count++] = room;
  }
  if (good && oxb_session_run_entry(session, entry, inputs, input_count, outputs, output_count,
                                    &error) == OXB_OK) {
    for (size_t i = 0; i < output_count; ++i) {
      oxb_output_info output = OXB_OUTPUT_INFO_INIT;
      oxb_model_output_info(model, entry, i, &output, &error);
      __msan_check_mem_is_initialized(outputs[i].values, outputs[i].rows * output.width * 4);
    }
  }
  for (size_t i = 0; i < input_count; ++i) free((void*)inputs[i].values);
  for (size_t i = 0; i < output_count; ++i) free(outputs[i].values);
  return good;
}

static oxb_session* create(const oxb_model* model, uint32_t threads, const oxb_session* lender,
                           void** arena) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
  options.threads = threads;
  options.lender = lender;
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_session* session = NULL;
  *arena = NULL;
  if (oxb_session_plan(model, &options, &plan, &error) != OXB_OK) return NULL;
  if (plan.arena_bytes > kMostArena) return NULL;
  *arena = take(plan.arena_bytes);
  if (oxb_session_create(model, &plan, *arena, plan.arena_bytes, &session, &error) != OXB_OK) {
    session = NULL;
  }
  return session;
}

static void use_states(const oxb_model* model, oxb_session* session) {
  oxb_error error = OXB_ERROR_INIT;
  size_t bytes = 0;
  void* arena;
  oxb_session* other = create(model, 3, NULL, &arena);
  oxb_session_state_bytes(session, &bytes, &error);
  void* state = take(bytes);
  if (oxb_session_save(session, state, bytes, &error) == OXB_OK) {
    __msan_check_mem_is_initialized(state, bytes);
    if (other != NULL && oxb_session_load(other, state, bytes, &error) == OXB_OK) {
      run(model, other, 0);
    }
  }
  if (oxb_session_checkpoint(session, state, bytes, &error) == OXB_OK) {
    run(model, session, 0);
    if (oxb_session_rewind(session, state, bytes, &error) != OXB_OK) fail("rewind", &error);
  }
  free(state);
  oxb_session_destroy(other);
  free(arena);
  oxb_session* borrower = create(model, 1, session, &arena);
  if (borrower != NULL && oxb_session_copy(borrower, session, &error) == OXB_OK) {
    run(model, borrower, 0);
  }
  oxb_session_destroy(borrower);
  free(arena);
}

static void use_text(const oxb_model* model) {
  static const char kText[] =
      "Where does the Old River end? caf\xc3\xa9 12,345 don't <s>[MASK]</s>\n\n \xff \xe4\xb8\xad "
      "e\xcc\x81.";
  oxb_error error = OXB_ERROR_INIT;
  size_t bytes = 0, count = 0, consumed = 0;
  if (oxb_encoder_bytes(model, NULL, &bytes, &error) != OXB_OK) return;
  void* memory = take(bytes);
  oxb_encoder* encoder = NULL;
  int32_t ids[512];
  if (oxb_encoder_create(model, NULL, memory, bytes, &encoder, &error) == OXB_OK &&
      oxb_encoder_run(encoder, kText, sizeof(kText) - 1, 1, ids, 512, &count, &consumed, &error) ==
          OXB_OK) {
    __msan_check_mem_is_initialized(ids, count * sizeof(ids[0]));
  }
  free(memory);
  if (oxb_decoder_bytes(model, NULL, &bytes, &error) != OXB_OK) return;
  memory = take(bytes);
  oxb_decoder* decoder = NULL;
  if (oxb_decoder_create(model, NULL, memory, bytes, &decoder, &error) == OXB_OK) {
    const size_t most = oxb_decoder_most_text(decoder);
    char* text = take(most);
    for (size_t i = 0, written = 0; i < count; ++i) {
      if (oxb_decoder_run(decoder, ids[i], text, most, &written, &error) != OXB_OK) continue;
      __msan_check_mem_is_initialized(text, written);
    }
    free(text);
  }
  free(memory);
}

static void use_generators(oxb_session* session) {
  oxb_error error = OXB_ERROR_INIT;
  size_t bytes = 0;
  oxb_generator_options options = OXB_GENERATOR_OPTIONS_INIT;
  options.max_tokens = 4;
  if (oxb_generator_bytes(session, &options, &bytes, &error) == OXB_OK && bytes <= kMostArena) {
    void* memory = take(bytes);
    oxb_generator* generator = NULL;
    if (oxb_generator_create(session, &options, memory, bytes, &generator, &error) == OXB_OK) {
      const int32_t first = 0;
      oxb_generator_add_tokens(generator, &first, 1, &error);
      oxb_generator_add_text(generator, "a river", 7, &error);
      const size_t size = oxb_generator_state_bytes(generator);
      void* state = take(size);
      for (int i = 0; i < 5; ++i) {
        oxb_piece piece = OXB_PIECE_INIT;
        if (oxb_generator_next(generator, &piece, &error) != OXB_OK) break;
        if (piece.text_bytes > 0) __msan_check_mem_is_initialized(piece.text, piece.text_bytes);
      }
      if (oxb_generator_save(generator, state, size, &error) == OXB_OK) {
        __msan_check_mem_is_initialized(state, size);
        if (oxb_generator_load(generator, state, size, &error) != OXB_OK) fail("load", &error);
      }
      free(state);
      oxb_generator_destroy(generator);
    }
    free(memory);
  }
  oxb_beam_options beams = OXB_BEAM_OPTIONS_INIT;
  beams.beams = 2;
  beams.max_tokens = 5;
  if (oxb_beam_search_bytes(session, &beams, &bytes, &error) == OXB_OK && bytes <= kMostArena) {
    void* memory = take(bytes);
    oxb_beam_search* search = NULL;
    if (oxb_beam_search_create(session, &beams, memory, bytes, &search, &error) == OXB_OK) {
      const int32_t prompt[2] = {0, 1};
      oxb_session_reset(session, &error);
      oxb_beam_search_run(search, prompt, 2, &error);
      oxb_beam_search_destroy(search);
    }
    free(memory);
  }
}

/* 1: it was opened and run. */
static int use(const void* file, size_t bytes) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_model* model = NULL;
  int ran = 0;
  if (oxb_model_open_memory(file, bytes, NULL, &model, &error) != OXB_OK) return 0;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  oxb_model_get_info(model, &info, &error);
  void* arena;
  oxb_session* session = create(model, 1, NULL, &arena);
  if (session != NULL) {
    ran = 1;
    for (int i = 0; ran && i < 5; ++i) {
      ran = run(model, session, i == 0 ? 0 : below(info.entry_count));
      if (i == 2) oxb_session_reset(session, &error);
    }
    if (ran) {
      use_states(model, session);
      use_generators(session);
    }
    oxb_session_destroy(session);
  }
  free(arena);
  use_text(model);
  oxb_model_close(model);
  return ran;
}

static uint64_t hash(const unsigned char* bytes, size_t count) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < count; ++i) value = (value ^ bytes[i]) * 0x100000001b3ull;
  return value;
}

/* A few words of the graph become others; the checksums are made right. */
static void mutate(unsigned char* file) {
  static const uint32_t kExtremes[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 0xff};
  uint64_t graph_bytes;
  memcpy(&graph_bytes, file + 16, sizeof(graph_bytes));
  for (uint64_t changes = 1 + below(3); changes > 0; --changes) {
    const uint64_t at = 64 + below((graph_bytes - 68) / 4) * 4;
    uint32_t value;
    memcpy(&value, file + at, sizeof(value));
    value = below(3) == 0   ? kExtremes[below(8)]
            : below(2) == 0 ? value + (uint32_t)below(9) - 4
                            : value ^ 1u << below(32);
    memcpy(file + at, &value, below(2) == 0 ? 1 : 4);
  }
  const uint64_t graph = hash(file + 64, graph_bytes - 64);
  memcpy(file + 40, &graph, sizeof(graph));
  const uint64_t prefix = hash(file, 56);
  memcpy(file + 56, &prefix, sizeof(prefix));
}

int main(int argc, char** argv) {
  unsigned long mutants = 0, opened = 0, files = 0, tried = 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--mutants") == 0 && i + 1 < argc) {
      mutants = strtoul(argv[++i], NULL, 10);
      continue;
    }
    if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      random_state = strtoull(argv[++i], NULL, 10);
      continue;
    }
    FILE* in = fopen(argv[i], "rb");
    if (in == NULL) return perror(argv[i]), 2;
    fseek(in, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(in), room = (bytes + kAlignment) / kAlignment * kAlignment;
    rewind(in);
    unsigned char *good = aligned_alloc(kAlignment, room),
                  *changed = aligned_alloc(kAlignment, room);
    if (good == NULL || changed == NULL || fread(good, 1, bytes, in) != bytes) return 2;
    fclose(in);
    ++files;
    if (!use(good, bytes)) fprintf(stderr, "uses: %s was not run\n", argv[i]);
    for (unsigned long k = 0; k < mutants; ++k, ++tried) {
      memcpy(changed, good, bytes);
      mutate(changed);
      opened += (unsigned long)use(changed, bytes);
    }
    free(good), free(changed);
  }
  printf("%lu files, %lu mutants of them, %lu ran\n", files, tried, opened);
  return files == 0 ? 2 : 0;
}
