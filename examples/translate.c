/* Translates a text: translate model.oxb TEXT. */
#include <oxbow/oxbow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static oxb_error error = OXB_ERROR_INIT;

/* Says what failed and ends the program. */
static void check(oxb_status status) {
  if (status == OXB_OK) return;
  fprintf(stderr, "%s: %s\n", oxb_status_name(status), error.text);
  exit(1);
}

static int32_t print(void* context, const oxb_piece* piece) {
  (void)context;
  fwrite(piece->text, 1, piece->text_bytes, stdout);
  return fflush(stdout); /* 0: go on. */
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  oxb_model* model;
  oxb_session* session;
  size_t bytes;
  check(oxb_model_open_file(argv[1], NULL, &model, &error));
  oxb_plan plan = OXB_PLAN_INIT;
  check(oxb_session_plan(model, NULL, &plan, &error));
  void* arena = malloc(plan.arena_bytes);
  check(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error));
  int32_t tokens[512];
  size_t count, consumed;
  check(oxb_encoder_bytes(model, NULL, &bytes, &error));
  void* words = malloc(bytes);
  oxb_encoder* encoder;
  check(oxb_encoder_create(model, NULL, words, bytes, &encoder, &error));
  check(oxb_encoder_run(encoder, argv[2], strlen(argv[2]), 1, tokens, 512, &count, &consumed,
                        &error));
  if (count == 512) {
    fprintf(stderr, "the text has more than 511 tokens\n");
    return 1;
  }
  oxb_generator_options options = OXB_GENERATOR_OPTIONS_INIT;
  options.max_tokens = 60;
  oxb_generator* generator;
  check(oxb_generator_bytes(session, &options, &bytes, &error));
  void* memory = malloc(bytes);
  check(oxb_generator_create(session, &options, memory, bytes, &generator, &error));

  check(oxb_session_encode(session, tokens, count, &error));
  check(oxb_generator_run(generator, print, NULL, NULL, &error));
  putchar('\n');
  oxb_generator_destroy(generator);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(arena);
  free(words);
  free(memory);
}
