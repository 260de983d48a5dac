/* The logits of some tokens through the C interface, as raw numbers on standard output: what Python must give to the bit. */
#include <oxbow.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_model* model;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_session* session;
  if (argc < 3 || oxb_model_open_file(argv[1], NULL, &model, &error) != OXB_OK ||
      oxb_model_get_info(model, &info, &error) != OXB_OK ||
      oxb_session_plan(model, NULL, &plan, &error) != OXB_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  void* arena = malloc(plan.arena_bytes);
  size_t count = (size_t)(argc - 2), width = info.output_width;
  float* logits = malloc(count * width * sizeof(float));
  int32_t* tokens = malloc(count * sizeof(int32_t));
  for (size_t i = 0; i < count; ++i) tokens[i] = (int32_t)atoi(argv[i + 2]);
  if (oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error) != OXB_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  for (size_t begin = 0; begin < count; begin += info.max_segment) {
    size_t part = count - begin < info.max_segment ? count - begin : info.max_segment;
    if (oxb_session_run(session, tokens + begin, part, part, logits + begin * width, part * width,
                        &error) != OXB_OK) {
      fprintf(stderr, "%s\n", error.text);
      return 1;
    }
  }
  fwrite(logits, sizeof(float), count * width, stdout);
  oxb_session_destroy(session);
  oxb_model_close(model);
  return 0;
}
