/* Streams text from a model, in C: the whole life of a session, and of its memory.
 *
 *   stream model.oxb "In the beginning"
 */
#include <oxbow/oxbow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says what failed and ends the program. */
static void check(oxb_status status, const oxb_error* error) {
  if (status == OXB_OK) return;
  fprintf(stderr, "stream: %s: %s\n", oxb_status_name(status), error->text);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: stream model.oxb PROMPT\n");
    return 2;
  }
  const char* prompt = argv[2];
  oxb_error error = OXB_ERROR_INIT;

  oxb_model* model;
  check(oxb_model_open_file(argv[1], NULL, &model, &error), &error);
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  check(oxb_model_get_info(model, &info, &error), &error);

  /* Everything this program will ever use is allocated here. */
  oxb_plan plan = OXB_PLAN_INIT;
  size_t sampler_bytes, encoder_bytes, decoder_bytes;
  oxb_sampler_options sampling = OXB_SAMPLER_OPTIONS_INIT;
  sampling.seed = 1;
  check(oxb_session_plan(model, NULL, &plan, &error), &error);
  check(oxb_sampler_bytes(info.output_width, &sampling, &sampler_bytes, &error), &error);
  check(oxb_encoder_bytes(model, NULL, &encoder_bytes, &error), &error);
  check(oxb_decoder_bytes(model, NULL, &decoder_bytes, &error), &error);
  void* arena = malloc(plan.arena_bytes);
  void* encoder_memory = malloc(encoder_bytes);
  void* decoder_memory = malloc(decoder_bytes);
  void* sampler_memory = malloc(sampler_bytes);
  float* logits = malloc(info.output_width * sizeof(float));
  int32_t* tokens = malloc(info.max_segment * sizeof(int32_t));
  if (!arena || !sampler_memory || !encoder_memory || !decoder_memory || !logits || !tokens)
    return 1;
  fprintf(stderr, "%s: one session needs %zu bytes, for a stream of any length\n",
          info.architecture, plan.arena_bytes);

  oxb_session* session;
  oxb_sampler* sampler;
  check(oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error), &error);
  check(oxb_sampler_create(info.output_width, &sampling, sampler_memory, sampler_bytes, &sampler,
                           &error),
        &error);

  oxb_encoder* encoder;
  oxb_decoder* decoder;
  check(oxb_encoder_create(model, NULL, encoder_memory, encoder_bytes, &encoder, &error), &error);
  check(oxb_decoder_create(model, NULL, decoder_memory, decoder_bytes, &decoder, &error), &error);
  size_t text_bytes = oxb_decoder_most_text(decoder);
  char* text = malloc(text_bytes);
  if (!text) return 1;

  /* The prompt, a segment at a time. Only the last token's logits are of use. */
  size_t left = strlen(prompt), count, consumed;
  do {
    check(oxb_encoder_run(encoder, prompt, left, 1, tokens, info.max_segment, &count, &consumed,
                          &error),
          &error);
    if (count > 0) {
      check(oxb_session_run(session, tokens, count, 1, logits, info.output_width, &error), &error);
    }
    prompt += consumed;
    left -= consumed;
  } while (count == info.max_segment);
  uint64_t position;
  check(oxb_session_position(session, &position, &error), &error);
  if (position == 0) {
    fprintf(stderr, "stream: the prompt is empty\n");
    return 2;
  }

  for (int i = 0; i < 200; ++i) {
    int32_t token;
    check(oxb_sampler_pick(sampler, logits, info.output_width, &token, &error), &error);
    check(oxb_sampler_accept(sampler, token, &error), &error);
    check(oxb_decoder_run(decoder, token, text, text_bytes, &count, &error), &error);
    fwrite(text, 1, count, stdout);
    fflush(stdout);
    check(oxb_session_run(session, &token, 1, 1, logits, info.output_width, &error), &error);
  }
  putchar('\n');

  oxb_decoder_destroy(decoder);
  oxb_encoder_destroy(encoder);
  oxb_sampler_destroy(sampler);
  oxb_session_destroy(session);
  oxb_model_close(model);
  free(text);
  free(tokens);
  free(logits);
  free(decoder_memory);
  free(encoder_memory);
  free(sampler_memory);
  free(arena);
  return 0;
}
