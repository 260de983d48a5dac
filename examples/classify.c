/* Tells the likeliest class of a text: classify model.oxb TEXT. */
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
  if (argc != 3) return 2;
  oxb_model* model;
  oxb_session* session;
  size_t bytes;
  check(oxb_model_open_file(argv[1], NULL, &model, &error));
  oxb_plan plan = OXB_PLAN_INIT;
  check(oxb_session_plan(model, NULL, &plan, &error));
  void* arena = malloc(plan.arena_bytes);
  check(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error));
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  check(oxb_model_get_info(model, &info, &error));
  size_t most = info.max_segment < 512 ? info.max_segment : 512;
  size_t count, consumed;
  int32_t tokens[513];
  check(oxb_encoder_bytes(model, NULL, &bytes, &error));
  void* memory = malloc(bytes);
  oxb_encoder* encoder;
  check(oxb_encoder_create(model, NULL, memory, bytes, &encoder, &error));
  check(oxb_encoder_run(encoder, argv[2], strlen(argv[2]), 1, tokens, most + 1, &count, &consumed,
                        &error));
  if (count > most) {
    fprintf(stderr, "the text has more than %zu tokens\n", most);
    return 1;
  }

  float* logits = malloc(info.output_width * sizeof(float));
  check(oxb_session_run(session, tokens, count, 1, logits, info.output_width, &error));
  size_t best = 0;
  for (size_t i = 1; i < info.output_width; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  const char* label = oxb_model_label(model, best);
  printf("%zu %s\n", best, label == NULL ? "" : label);

  oxb_session_destroy(session);
  oxb_model_close(model);
  free(arena);
  free(memory);
  free(logits);
}
