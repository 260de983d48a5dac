/* A whole plug-in for an accelerator that this machine happens to have: its own CPU. It runs layers of the targets "example-i8",
 * whose results are int32 sums, and "example-i8-chain", several layers with int8 codes between them:
 *
 *     oxbow-convert DIR -o model.oxb --npu example-i8
 *     oxbow-convert DIR -o model.oxb --activations static --calibrate TEXT --npu example-i8-chain
 *     oxbow bench model.oxb --backend npu:build/bin/liboxbow_npu_example.so --npu-shadow
 *
 * A plug-in for a real device has the same nine functions: what is a loop here is a submission there. docs/npu.md tells the rules
 * behind them.
 *
 * Commands of a layer are 16 bytes: "OXN1", depth, channels and rows as little-endian numbers of 32 bits. Its weights are int8, row
 * after row. Commands of a chain are "OXN2", rows, number of layers, and for each of them depth, channels, smallest code and 1 if
 * it has a table; its weights, layer after layer: a float for each channel, an int32 for each, int8 rows, and 256 int8; each
 * padded to 4 bytes. All is read in place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include("runtime/api/oxbow_npu.h")
#include "runtime/api/oxbow_npu.h"
#else
#include <oxbow/oxbow_npu.h>
#endif
#else
#include <oxbow/oxbow_npu.h>
#endif

#define MAX_BUCKETS 8
#define MAX_LAYERS 8
/* Weights of a layer, and results of a run: their numbers are products that must fit. */
#define MAX_NUMBERS (1u << 28)

struct oxb_npu_device {
  const oxb_npu_host* host;
};

/* One of a chain. */
typedef struct dense {
  uint32_t depth, channels, has_table;
  int32_t least;
  const float* factors;
  const int32_t* biases;
  const int8_t* weights;
  const int8_t* table;
} dense;

typedef struct bucket {
  uint32_t rows, count;
  dense layers[MAX_LAYERS];
} bucket;

/* Lies in the memory that the library gives: this plug-in takes none of its own. Behind it, for chains, codes of all rows
 * between two layers, twice. */
struct oxb_npu_program {
  oxb_npu_result result;
  uint32_t bucket_count;
  size_t code_bytes;
  bucket buckets[MAX_BUCKETS];
};

static oxb_npu_status fail(oxb_npu_status status, const char* text, char* why, size_t why_bytes) {
  snprintf(why, why_bytes, "%s", text);
  return status;
}

static oxb_npu_status open_device(const oxb_npu_host* host, oxb_npu_device** device, char* why,
                                  size_t why_bytes) {
  size_t i;
  for (i = 0; i < host->key_count; ++i) {
    char text[64];
    snprintf(text, sizeof(text), "there is no setting '%.40s'", host->keys[i]);
    return fail(OXB_NPU_FAILED, text, why, why_bytes);
  }
  *device = (oxb_npu_device*)malloc(sizeof(**device));
  if (*device == NULL) return fail(OXB_NPU_NO_MEMORY, "no memory", why, why_bytes);
  (*device)->host = host;
  return OXB_NPU_OK;
}

static void close_device(oxb_npu_device* device) { free(device); }

static oxb_npu_status describe(oxb_npu_device* device, oxb_npu_caps* caps, char* why,
                               size_t why_bytes) {
  static const char* const targets[] = {"example-i8", "example-i8-chain"};
  (void)device, (void)why, (void)why_bytes;
  caps->name = "the CPU, as an example";
  caps->targets = targets;
  caps->target_count = 2;
  caps->memory = OXB_NPU_MEMORY_HOST;
  caps->result = OXB_NPU_FORMULA;
  return OXB_NPU_OK;
}

static uint32_t number_at(const unsigned char* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Bytes that have not been read yet. */
typedef struct reader {
  const unsigned char* at;
  size_t left;
} reader;

/* `count` elements; null: they are not there. What follows begins on 4 bytes. */
static const void* take(reader* from, size_t count, size_t bytes) {
  const unsigned char* taken = from->at;
  size_t whole;
  if (count > from->left / bytes) return NULL;
  whole = (count * bytes + 3) / 4 * 4;
  if (whole > from->left) return NULL;
  from->at += whole;
  from->left -= whole;
  return taken;
}

/* A chain of layers from its commands and weights; 0: something is wrong. */
static int read_chain(const oxb_npu_layer* layer, const oxb_npu_bucket* from, bucket* to) {
  const unsigned char* commands = (const unsigned char*)from->commands;
  uint32_t width = layer->depth, i;
  reader weights;
  weights.at = (const unsigned char*)from->weights;
  weights.left = from->weight_bytes;
  if (from->command_bytes < 12 || number_at(commands + 4) != from->rows) return 0;
  to->rows = from->rows;
  to->count = number_at(commands + 8);
  if (to->count == 0 || to->count > MAX_LAYERS || from->command_bytes != 12 + 16 * to->count) {
    return 0;
  }
  for (i = 0; i < to->count; ++i) {
    dense* one = &to->layers[i];
    const unsigned char* numbers = commands + 12 + 16 * i;
    one->depth = number_at(numbers);
    one->channels = number_at(numbers + 4);
    one->least = (int32_t)number_at(numbers + 8);
    one->has_table = number_at(numbers + 12);
    if (one->depth != width || width == 0 || one->channels == 0 ||
        one->channels > MAX_NUMBERS / width || one->channels > MAX_NUMBERS / to->rows ||
        one->least < -128 || one->least > 127) {
      return 0;
    }
    one->factors = (const float*)take(&weights, one->channels, 4);
    one->biases = (const int32_t*)take(&weights, one->channels, 4);
    one->weights = (const int8_t*)take(&weights, (size_t)one->depth * one->channels, 1);
    one->table = one->has_table ? (const int8_t*)take(&weights, 256, 1) : NULL;
    if (!one->factors || !one->biases || !one->weights || (one->has_table && !one->table)) return 0;
    width = one->channels;
  }
  return weights.left == 0 && width == layer->channels;
}

/* A single layer is a chain of one, without what follows the sums. */
static int read_layer(const oxb_npu_layer* layer, const oxb_npu_bucket* from, bucket* to) {
  const unsigned char* commands = (const unsigned char*)from->commands;
  if (from->command_bytes != 16 || number_at(commands + 4) != layer->depth ||
      number_at(commands + 8) != layer->channels || number_at(commands + 12) != from->rows ||
      from->weight_bytes / layer->channels != layer->depth ||
      from->weight_bytes % layer->channels != 0) {
    return 0;
  }
  memset(to, 0, sizeof(*to));
  to->rows = from->rows;
  to->count = 1;
  to->layers[0].depth = layer->depth;
  to->layers[0].channels = layer->channels;
  to->layers[0].weights = (const int8_t*)from->weights;
  return 1;
}

/* The layer's bytes come from a file that anybody may have written: nothing in them is believed. */
static oxb_npu_status check(oxb_npu_device* device, const oxb_npu_layer* layer,
                            oxb_npu_needs* needs, char* why, size_t why_bytes) {
  const char version = layer->result == OXB_NPU_EXACT_SUMS ? '1' : '2';
  size_t code_bytes = 0;
  uint32_t i, k;
  (void)device;
  if (layer->result == OXB_NPU_TOLERANCE || layer->bucket_count > MAX_BUCKETS) {
    return fail(OXB_NPU_UNUSABLE, "not a layer of this kind", why, why_bytes);
  }
  for (i = 0; i < layer->bucket_count; ++i) {
    const oxb_npu_bucket* from = &layer->buckets[i];
    bucket read;
    if (from->command_bytes < 4 || memcmp(from->commands, "OXN", 3) != 0) {
      return fail(OXB_NPU_UNUSABLE, "the commands are not of this device", why, why_bytes);
    }
    if (((const char*)from->commands)[3] != version) {
      return fail(OXB_NPU_STALE, "the commands are of another version", why, why_bytes);
    }
    if (version == '1' ? !read_layer(layer, from, &read) : !read_chain(layer, from, &read)) {
      return fail(OXB_NPU_UNUSABLE, "the commands are of another layer", why, why_bytes);
    }
    for (k = 0; version == '2' && k < read.count; ++k) {
      const size_t bytes = (size_t)read.rows * read.layers[k].channels;
      if (bytes > code_bytes) code_bytes = bytes;
    }
  }
  needs->host_bytes = sizeof(oxb_npu_program) + 2 * code_bytes;
  return OXB_NPU_OK;
}

static oxb_npu_status load(oxb_npu_device* device, const oxb_npu_layer* layer, void* memory,
                           oxb_npu_program** program, char* why, size_t why_bytes) {
  oxb_npu_needs needs;
  uint32_t i;
  const oxb_npu_status status = check(device, layer, &needs, why, why_bytes);
  if (status != OXB_NPU_OK) return status;
  *program = (oxb_npu_program*)memory;
  (*program)->result = layer->result;
  (*program)->bucket_count = layer->bucket_count;
  (*program)->code_bytes = (needs.host_bytes - sizeof(oxb_npu_program)) / 2;
  for (i = 0; i < layer->bucket_count; ++i) {
    bucket* to = &(*program)->buckets[i];
    if (layer->result == OXB_NPU_EXACT_SUMS) {
      read_layer(layer, &layer->buckets[i], to);
    } else {
      read_chain(layer, &layer->buckets[i], to);
    }
  }
  return OXB_NPU_OK;
}

static void unload(oxb_npu_program* program) { (void)program; }

static size_t taken_bytes(const oxb_npu_program* program) {
  (void)program;
  return 0;
}

/* Of row x and channel n, beginning with `sum`. */
static int32_t product(const dense* one, const int8_t* x, size_t n, int32_t sum) {
  const int8_t* row = one->weights + n * one->depth;
  size_t k;
  /* A hostile file's sums may wrap around, but not as signed numbers. */
  for (k = 0; k < one->depth; ++k) sum = (int32_t)((uint32_t)sum + (uint32_t)(x[k] * row[k]));
  return sum;
}

/* To the nearest code, halves to the even one, by the formula of docs/npu.md. */
static int8_t code_of(const dense* one, int32_t sum, float factor) {
  float value = (float)sum * factor;
  int32_t code;
  if (!(value >= -128.0f)) value = value != value ? 0.0f : -128.0f;
  if (value > 127.0f) value = 127.0f;
  code = (int32_t)value;
  value -= (float)code;
  if (value > 0.5f || (value == 0.5f && code % 2 != 0)) ++code;
  if (value < -0.5f || (value == -0.5f && code % 2 != 0)) --code;
  if (code < one->least) code = one->least;
  return one->table == NULL ? (int8_t)code : one->table[code + 128];
}

static oxb_npu_status run(oxb_npu_program* program, uint32_t index, const void* input, void* output,
                          char* why, size_t why_bytes) {
  const bucket* one;
  const int8_t* x = (const int8_t*)input;
  int8_t* codes = (int8_t*)(program + 1);
  size_t r, n;
  uint32_t i;
  if (index >= program->bucket_count) {
    return fail(OXB_NPU_FAILED, "there is no such bucket", why, why_bytes);
  }
  one = &program->buckets[index];
  for (i = 0; i < one->count; ++i) {
    const dense* layer = &one->layers[i];
    int8_t* y = i + 1 == one->count ? (int8_t*)output : codes + i % 2 * program->code_bytes;
    for (r = 0; r < one->rows; ++r) {
      for (n = 0; n < layer->channels; ++n) {
        const int8_t* row = x + r * layer->depth;
        const size_t at = r * layer->channels + n;
        if (program->result == OXB_NPU_EXACT_SUMS) {
          ((int32_t*)output)[at] = product(layer, row, n, 0);
        } else {
          y[at] = code_of(layer, product(layer, row, n, layer->biases[n]), layer->factors[n]);
        }
      }
    }
    x = y;
  }
  return OXB_NPU_OK;
}

static const oxb_npu_plugin plugin = {sizeof(oxb_npu_plugin),
                                      OXB_NPU_MAJOR,
                                      OXB_NPU_MINOR,
                                      "example",
                                      open_device,
                                      close_device,
                                      describe,
                                      check,
                                      load,
                                      unload,
                                      taken_bytes,
                                      run,
                                      NULL,
                                      NULL};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const oxb_npu_plugin*
oxb_npu_plugin_get(uint32_t major);

const oxb_npu_plugin* oxb_npu_plugin_get(uint32_t major) {
  return major == OXB_NPU_MAJOR ? &plugin : NULL;
}
