/* A program for the first header, as somebody may have shipped it. Usage: program GENERATOR CLASSIFIER */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oxbow.h"

static oxb_error error = OXB_ERROR_INIT;

static void expect_at(int good, int line, const char* what) {
  if (good) return;
  fprintf(stderr, "program.c:%d: %s (%s)\n", line, what, error.text);
  exit(1);
}
#define EXPECT(condition) expect_at((condition) != 0, __LINE__, #condition)

static int lines = 0;
static void log_line(void* context, oxb_log_level level, const char* text) {
  (void)context, (void)level, (void)text;
  ++lines;
}
static int steps = 0;
static void profile(void* context, uint32_t step, const char* op, const char* output,
                    uint64_t nanoseconds) {
  (void)context, (void)step, (void)nanoseconds;
  steps += op != NULL && output != NULL;
}

static void generate(const char* path) {
  oxb_open_options open = OXB_OPEN_OPTIONS_INIT;
  open.access = OXB_ACCESS_READ;
  open.check_weights = 1;
  open.log = log_line;
  oxb_model* model;
  EXPECT(oxb_model_open_file(path, &open, &model, &error) == OXB_OK);
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  EXPECT(oxb_model_get_info(model, &info, &error) == OXB_OK);
  EXPECT(info.task == OXB_TASK_GENERATE && info.output_width == info.vocabulary);
  EXPECT(oxb_model_find_metadata(model, "architecture") != NULL);

  oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
  options.threads = 2;
  oxb_plan plan = OXB_PLAN_INIT;
  EXPECT(oxb_session_plan(model, &options, &plan, &error) == OXB_OK);
  void* arena = malloc(plan.arena_bytes);
  void* state = malloc(plan.checkpoint_bytes);
  float* logits = malloc(3 * info.output_width * sizeof(float));
  float* again = malloc(info.output_width * sizeof(float));
  oxb_session* session;
  EXPECT(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error) == OXB_OK);
  EXPECT(oxb_session_set_profile(session, profile, NULL, &error) == OXB_OK);
  const int32_t tokens[3] = {1, 2, 3};
  EXPECT(oxb_session_run(session, tokens, 3, 3, logits, 3 * info.output_width - 1, &error) ==
         OXB_BUFFER_TOO_SMALL);
  EXPECT(oxb_session_run(session, tokens, 3, 3, logits, 3 * info.output_width, &error) == OXB_OK);
  EXPECT(steps > 0);
  EXPECT(oxb_session_save(session, state, plan.checkpoint_bytes, &error) == OXB_OK);

  size_t bytes;
  int32_t token = -1;
  oxb_sampler_options sampling = OXB_SAMPLER_OPTIONS_INIT;
  EXPECT(oxb_sampler_options_advised(model, &sampling, &error) == OXB_OK);
  EXPECT(oxb_sampler_bytes(info.output_width, &sampling, &bytes, &error) == OXB_OK);
  void* memory = malloc(bytes);
  oxb_sampler* sampler;
  EXPECT(oxb_sampler_create(info.output_width, &sampling, memory, bytes, &sampler, &error) ==
         OXB_OK);
  EXPECT(oxb_sampler_pick(sampler, logits, info.output_width, &token, &error) == OXB_OK);
  EXPECT(token >= 0 && (uint32_t)token < info.output_width);
  EXPECT(oxb_sampler_accept(sampler, token, &error) == OXB_OK);
  oxb_sampler_destroy(sampler);

  EXPECT(oxb_session_run(session, &token, 1, 1, logits, info.output_width, &error) == OXB_OK);
  EXPECT(oxb_session_load(session, state, plan.checkpoint_bytes, &error) == OXB_OK);
  EXPECT(oxb_session_run(session, &token, 1, 1, again, info.output_width, &error) == OXB_OK);
  EXPECT(memcmp(logits, again, info.output_width * sizeof(float)) == 0);
  uint64_t position;
  EXPECT(oxb_session_position(session, &position, &error) == OXB_OK && position == 4);
  EXPECT(oxb_session_cancel(session) == OXB_OK);
  EXPECT(oxb_session_run(session, tokens, 1, 0, NULL, 0, &error) == OXB_CANCELLED);
  EXPECT(error.code == OXB_CANCELLED);
  EXPECT(oxb_session_run(session, tokens, 1, 0, NULL, 0, &error) == OXB_OK);
  EXPECT(oxb_session_reset(session, &error) == OXB_OK);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(memory), free(again), free(logits), free(state), free(arena);
}

static int32_t pieces = 0;
static int32_t hear(void* context, const oxb_piece* piece) {
  (void)context;
  if (piece->token >= 0) ++pieces;
  return 0;
}

/* What lives beside a session: text both ways, a generator and its state, a borrower, a beam search, a draft. */
static void go_on(const char* path) {
  oxb_model* model;
  EXPECT(oxb_model_open_file(path, NULL, &model, &error) == OXB_OK);
  oxb_plan plan = OXB_PLAN_INIT;
  EXPECT(oxb_session_plan(model, NULL, &plan, &error) == OXB_OK);
  void* arena = malloc(plan.arena_bytes);
  oxb_session* session;
  EXPECT(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error) == OXB_OK);

  size_t bytes, count, consumed;
  EXPECT(oxb_encoder_bytes(model, NULL, &bytes, &error) == OXB_OK);
  void* memory = malloc(bytes);
  oxb_encoder* encoder;
  EXPECT(oxb_encoder_create(model, NULL, memory, bytes, &encoder, &error) == OXB_OK);
  int32_t ids[8];
  EXPECT(oxb_encoder_run(encoder, "ab", 2, 1, ids, 8, &count, &consumed, &error) == OXB_OK);
  EXPECT(count > 0 && consumed == 2);
  oxb_encoder_destroy(encoder);
  free(memory);
  EXPECT(oxb_decoder_bytes(model, NULL, &bytes, &error) == OXB_OK);
  memory = malloc(bytes);
  oxb_decoder* decoder;
  EXPECT(oxb_decoder_create(model, NULL, memory, bytes, &decoder, &error) == OXB_OK);
  char text[4096], back[8] = "";
  EXPECT(oxb_decoder_most_text(decoder) <= sizeof(text));
  for (size_t i = 0, written; i < count; ++i) {
    EXPECT(oxb_decoder_run(decoder, ids[i], text, sizeof(text), &written, &error) == OXB_OK);
    EXPECT(strlen(back) + written < sizeof(back));
    strncat(back, text, written);
  }
  EXPECT(strcmp(back, "ab") == 0);
  oxb_decoder_destroy(decoder);
  free(memory);

  oxb_generator_options generating = OXB_GENERATOR_OPTIONS_INIT;
  generating.max_tokens = 4;
  EXPECT(oxb_generator_bytes(session, &generating, &bytes, &error) == OXB_OK);
  memory = malloc(bytes);
  oxb_generator* generator;
  EXPECT(oxb_generator_create(session, &generating, memory, bytes, &generator, &error) == OXB_OK);
  EXPECT(oxb_generator_add_text(generator, "ab", 2, &error) == OXB_OK);
  const size_t saved = oxb_generator_state_bytes(generator);
  void* state = malloc(saved);
  EXPECT(oxb_generator_save(generator, state, saved, &error) == OXB_OK);
  oxb_end end = OXB_END_NONE;
  EXPECT(oxb_generator_run(generator, hear, NULL, &end, &error) == OXB_OK);
  EXPECT(end == OXB_END_MAX_TOKENS && pieces == 4);
  oxb_generation progress = OXB_GENERATION_INIT;
  EXPECT(oxb_generator_progress(generator, &progress, &error) == OXB_OK && progress.tokens == 4);
  EXPECT(oxb_generator_load(generator, state, saved, &error) == OXB_OK);
  oxb_piece piece = OXB_PIECE_INIT;
  EXPECT(oxb_generator_next(generator, &piece, &error) == OXB_OK && piece.token >= 0);
  oxb_generator_destroy(generator);
  free(state), free(memory);

  EXPECT(oxb_session_reset(session, &error) == OXB_OK);
  oxb_session_options borrowing = OXB_SESSION_OPTIONS_INIT;
  borrowing.lender = session;
  oxb_plan small = OXB_PLAN_INIT;
  EXPECT(oxb_session_plan(model, &borrowing, &small, &error) == OXB_OK);
  EXPECT(small.arena_bytes < plan.arena_bytes);
  memory = malloc(small.arena_bytes);
  oxb_session* borrower;
  EXPECT(oxb_session_create(model, &small, memory, small.arena_bytes, &borrower, &error) == OXB_OK);
  EXPECT(oxb_session_run(session, ids, 1, 0, NULL, 0, &error) == OXB_OK);
  EXPECT(oxb_session_copy(borrower, session, &error) == OXB_OK);
  uint64_t position;
  EXPECT(oxb_session_position(borrower, &position, &error) == OXB_OK && position == 1);
  oxb_session_destroy(borrower);
  free(memory);

  oxb_beam_options beams = OXB_BEAM_OPTIONS_INIT;
  beams.max_tokens = 6;
  EXPECT(oxb_beam_search_bytes(session, &beams, &bytes, &error) == OXB_OK);
  memory = malloc(bytes);
  oxb_beam_search* search;
  EXPECT(oxb_beam_search_create(session, &beams, memory, bytes, &search, &error) == OXB_OK);
  EXPECT(oxb_session_reset(session, &error) == OXB_OK);
  EXPECT(oxb_beam_search_run(search, ids, 1, &error) == OXB_OK);
  EXPECT(oxb_beam_search_count(search) == 1);
  const int32_t* tokens;
  float score;
  EXPECT(oxb_beam_search_result(search, 0, &tokens, &count, &score, &error) == OXB_OK && count > 1);
  oxb_beam_search_destroy(search);
  free(memory);

  EXPECT(oxb_session_reset(session, &error) == OXB_OK);
  EXPECT(oxb_session_draft_bytes(session, 2, &bytes, &error) == OXB_OK);
  memory = malloc(bytes);
  EXPECT(oxb_session_draft(session, memory, bytes, 2, &error) == OXB_OK);
  const int32_t guesses[2] = {1, 2};
  EXPECT(oxb_session_run(session, guesses, 2, 0, NULL, 0, &error) == OXB_OK);
  EXPECT(oxb_session_keep(session, 1, &error) == OXB_OK);
  EXPECT(oxb_session_position(session, &position, &error) == OXB_OK && position == 1);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(memory), free(arena);
}

static void classify(const char* path) {
  oxb_model* model;
  EXPECT(oxb_model_open_file(path, NULL, &model, &error) == OXB_OK);
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  EXPECT(oxb_model_get_info(model, &info, &error) == OXB_OK);
  EXPECT(info.task == OXB_TASK_CLASSIFY);
  size_t entry;
  oxb_entry_info part = OXB_ENTRY_INFO_INIT;
  EXPECT(oxb_model_entry_info(model, 0, &part, &error) == OXB_OK);
  EXPECT(oxb_model_find_entry(model, part.name, &entry, &error) == OXB_OK && entry == 0);
  EXPECT(part.starts && part.output_rows == 1 && part.output_count >= 1);
  oxb_input_info main_input = OXB_INPUT_INFO_INIT;
  EXPECT(oxb_model_input_info(model, entry, 0, &main_input, &error) == OXB_OK);
  EXPECT(main_input.required && main_input.type == OXB_TYPE_I32);

  oxb_plan plan = OXB_PLAN_INIT;
  EXPECT(oxb_session_plan(model, NULL, &plan, &error) == OXB_OK);
  void* arena = malloc(plan.arena_bytes);
  oxb_session* session;
  EXPECT(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error) == OXB_OK);
  const int32_t tokens[4] = {1, 2, 3, 4};
  float* one = malloc(info.output_width * sizeof(float));
  float* other = malloc(info.output_width * sizeof(float));
  const oxb_input input = {sizeof(oxb_input), main_input.name, tokens, 4};
  oxb_output output = OXB_OUTPUT_INIT;
  output.name = part.output;
  output.values = one;
  output.capacity = info.output_width;
  output.rows = 1;
  EXPECT(oxb_session_run_entry(session, entry, &input, 1, &output, 1, &error) == OXB_OK);
  EXPECT(output.rows == 1);
  const size_t length = 4;
  EXPECT(oxb_session_run_batch(session, tokens, &length, 1, other, info.output_width, &error) ==
         OXB_OK);
  EXPECT(memcmp(one, other, info.output_width * sizeof(float)) == 0);
  oxb_embed_options embed = OXB_EMBED_OPTIONS_INIT;
  embed.normalise = 1;
  EXPECT(oxb_session_embed(session, tokens, 4, &embed, other, info.output_width, &error) == OXB_OK);
  double squares = 0;
  for (size_t i = 0; i < info.output_width; ++i) squares += (double)other[i] * other[i];
  EXPECT(fabs(squares - 1) < 1e-5);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(other), free(one), free(arena);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  EXPECT(oxb_version() >= 100);
  generate(argv[1]);
  go_on(argv[1]);
  classify(argv[2]);
  puts("a program of the first header runs");
  return 0;
}
