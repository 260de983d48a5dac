/* Goes on where an earlier process stopped: resume model.oxb STATE [PROMPT]. Writes 50 tokens and saves the state. */
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

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  oxb_model* model;
  oxb_session* session;
  size_t bytes;
  check(oxb_model_open_file(argv[1], NULL, &model, &error));
  oxb_plan plan = OXB_PLAN_INIT;
  check(oxb_session_plan(model, NULL, &plan, &error));
  void* arena = malloc(plan.arena_bytes);
  check(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error));
  oxb_generator_options options = OXB_GENERATOR_OPTIONS_INIT;
  oxb_generator* generator;
  check(oxb_generator_bytes(session, &options, &bytes, &error));
  void* memory = malloc(bytes);
  check(oxb_generator_create(session, &options, memory, bytes, &generator, &error));

  size_t state_bytes = oxb_generator_state_bytes(generator);
  void* state = malloc(state_bytes);
  if (argc == 4) {
    check(oxb_generator_add_text(generator, argv[3], strlen(argv[3]), &error));
  } else {
    FILE* file = fopen(argv[2], "rb");
    size_t read = file == NULL ? 0 : fread(state, 1, state_bytes, file);
    if (file != NULL) fclose(file);
    check(oxb_generator_load(generator, state, read, &error));
  }
  oxb_piece piece = OXB_PIECE_INIT;
  for (int i = 0; i < 50 && piece.end == OXB_END_NONE; ++i) {
    check(oxb_generator_next(generator, &piece, &error));
    fwrite(piece.text, 1, piece.text_bytes, stdout);
  }
  check(oxb_generator_save(generator, state, state_bytes, &error));
  FILE* file = fopen(argv[2], "wb");
  if (file == NULL || fwrite(state, 1, state_bytes, file) != state_bytes || fclose(file)) return 1;
  oxb_generator_destroy(generator);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(state);
  free(memory);
  free(arena);
}
