/* Runs one GGUF file with an installed llama.cpp for the scripts of this folder, which compile this file against its
 * header and library. It waits for commands on standard input and answers each with one line of JSON, as
 * session_server.cc does (README.md).
 *
 *   llama_server LIBRARY_DIR MODEL THREADS CONTEXT FLASH KV
 *
 * FLASH: 0, 1. KV, the type of the cached keys and values: f32, f16, q8_0; a type of 8 bits needs flash attention for
 * the values, so without it they stay f16.
 */

#include <llama.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double clock_seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
static double now(void) { return clock_seconds(CLOCK_MONOTONIC); }
static double processor(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

static void fail(const char* what) {
  fprintf(stderr, "llama_server: %s\n", what);
  exit(3);
}

/* Bytes of a line of /proc/self/status. */
static unsigned long long status_bytes(const char* name) {
  char line[256];
  unsigned long long kilobytes = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) kilobytes = strtoull(line + strlen(name), NULL, 10);
  }
  if (file != NULL) fclose(file);
  return kilobytes * 1024;
}

static void quiet(enum ggml_log_level level, const char* text, void* context) {
  (void)context;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static enum ggml_type cache_type(const char* name) {
  if (strcmp(name, "f32") == 0) return GGML_TYPE_F32;
  if (strcmp(name, "f16") == 0) return GGML_TYPE_F16;
  if (strcmp(name, "q8_0") == 0) return GGML_TYPE_Q8_0;
  fail("KV must be f32, f16 or q8_0");
  return GGML_TYPE_F32;
}

/* Without a list of its own a batch asks for the logits of its last token only. */
static void feed(struct llama_context* context, llama_token* tokens, int count) {
  if (llama_decode(context, llama_batch_get_one(tokens, count)) != 0) fail("llama_decode failed");
  llama_synchronize(context);
}

static int numbers(char* text, llama_token* values, int room) {
  int count = 0;
  for (char* word = strtok(text, " \n"); word != NULL; word = strtok(NULL, " \n")) {
    if (count == room) fail("more tokens than the context holds");
    values[count++] = (llama_token)atoi(word);
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: llama_server LIBRARY_DIR MODEL THREADS CONTEXT FLASH KV\n");
    return 2;
  }
  llama_log_set(quiet, NULL);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  const unsigned long long before = status_bytes("VmRSS:");

  const double start = now();
  struct llama_model* model = llama_model_load_from_file(argv[2], llama_model_default_params());
  if (model == NULL) fail("cannot load the model");
  struct llama_context_params params = llama_context_default_params();
  const bool flash = strcmp(argv[5], "1") == 0;
  params.n_ctx = (uint32_t)atoi(argv[4]);
  params.n_threads = params.n_threads_batch = atoi(argv[3]);
  params.flash_attn_type = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = cache_type(argv[6]);
  params.type_v = flash || params.type_k == GGML_TYPE_F32 ? params.type_k : GGML_TYPE_F16;
  struct llama_context* context = llama_init_from_model(model, params);
  if (context == NULL) fail("cannot make a context with these settings");
  const double load = now() - start;

  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  printf(
      "{\"name\": \"llama.cpp\", \"version\": \"%s\", \"system\": \"%s\", \"load_seconds\": %.9f, "
      "\"before\": %llu}\n",
      LLAMA_SERVER_VERSION, llama_print_system_info(), load, before);
  fflush(stdout);

  const int room = (int)llama_n_ctx(context);
  llama_token* tokens = malloc(sizeof(llama_token) * (size_t)room);
  const size_t line_size = (size_t)room * 12 + 256;
  char* line = malloc(line_size);
  if (tokens == NULL || line == NULL) fail("out of memory");
  const int batch = (int)llama_n_batch(context);
  while (fgets(line, (int)line_size, stdin) != NULL && strcmp(line, "quit\n") != 0) {
    char* rest = strchr(line, ' ');
    if (strncmp(line, "prompt ", 7) == 0) {
      const int count = numbers(rest, tokens, room);
      llama_memory_clear(llama_get_memory(context), false);
      const double begin = now(), begin_processor = processor();
      for (int at = 0; at < count; at += batch)
        feed(context, tokens + at, count - at < batch ? count - at : batch);
      printf("{\"seconds\": %.9f, \"processor\": %.9f}\n", now() - begin,
             processor() - begin_processor);
    } else if (strncmp(line, "decode ", 7) == 0) {
      const int count = numbers(rest, tokens, room);
      const double begin_processor = processor();
      printf("{\"seconds\": [");
      for (int i = 0; i < count; ++i) {
        const double begin = now();
        feed(context, tokens + i, 1);
        printf("%s%.9f", i > 0 ? ", " : "", now() - begin);
      }
      printf("], \"processor\": %.9f}\n", processor() - begin_processor);
    } else if (strncmp(line, "keep ", 5) == 0) {
      /* Back to a stream of so many tokens. */
      if (!llama_memory_seq_rm(llama_get_memory(context), 0, atoi(rest), -1))
        fail("cannot drop tokens");
      printf("{}\n");
    } else if (strncmp(line, "logits ", 7) == 0) {
      rest[strcspn(rest, "\n")] = '\0';
      FILE* file = fopen(rest + 1, "wb");
      const float* logits = llama_get_logits_ith(context, -1);
      if (file == NULL || logits == NULL ||
          fwrite(logits, sizeof(float), (size_t)vocabulary, file) != (size_t)vocabulary ||
          fclose(file) != 0) {
        fail("cannot write the logits");
      }
      printf("{}\n");
    } else if (strcmp(line, "memory\n") == 0) {
      printf("{\"peak\": %llu, \"resident\": %llu, \"anonymous\": %llu}\n", status_bytes("VmHWM:"),
             status_bytes("VmRSS:"), status_bytes("RssAnon:"));
    } else {
      fail("unknown command");
    }
    fflush(stdout);
  }
  free(line);
  free(tokens);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
