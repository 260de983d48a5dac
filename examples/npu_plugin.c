/* A whole plug-in for an accelerator that this machine happens to have: its own CPU. It runs layers of the target "example-i8":
 *
 *     oxbow-convert DIR -o model.oxb --npu example-i8
 *     oxbow bench model.oxb --backend npu:build/bin/liboxbow_npu_example.so --npu-shadow
 *
 * A plug-in for a real device has the same nine functions: what is a loop here is a submission there. docs/npu.md tells the rules
 * behind them.
 *
 * Commands of a layer are 16 bytes: "OXN1", depth, channels and rows as little-endian numbers of 32 bits. Its weights are int8, row
 * after row. Both are read in place. */
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

struct oxb_npu_device {
  const oxb_npu_host* host;
};

/* Lies in the memory that the library gives: this plug-in takes none of its own. */
struct oxb_npu_program {
  uint32_t depth, channels, bucket_count;
  uint32_t rows[MAX_BUCKETS];
  const int8_t* weights[MAX_BUCKETS];
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
  static const char* const targets[] = {"example-i8"};
  (void)device, (void)why, (void)why_bytes;
  caps->name = "the CPU, as an example";
  caps->targets = targets;
  caps->target_count = 1;
  caps->memory = OXB_NPU_MEMORY_HOST;
  caps->result = OXB_NPU_EXACT_SUMS;
  return OXB_NPU_OK;
}

static uint32_t number_at(const unsigned char* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The layer's bytes come from a file that anybody may have written: nothing in them is believed. */
static oxb_npu_status check(oxb_npu_device* device, const oxb_npu_layer* layer,
                            oxb_npu_needs* needs, char* why, size_t why_bytes) {
  uint32_t i;
  (void)device;
  if (layer->result != OXB_NPU_EXACT_SUMS || layer->bucket_count > MAX_BUCKETS) {
    return fail(OXB_NPU_UNUSABLE, "not a layer of this kind", why, why_bytes);
  }
  for (i = 0; i < layer->bucket_count; ++i) {
    const oxb_npu_bucket* bucket = &layer->buckets[i];
    const unsigned char* commands = (const unsigned char*)bucket->commands;
    if (bucket->command_bytes != 16 || memcmp(commands, "OXN", 3) != 0) {
      return fail(OXB_NPU_UNUSABLE, "the commands are not of this device", why, why_bytes);
    }
    if (commands[3] != '1') {
      return fail(OXB_NPU_STALE, "the commands are of another version", why, why_bytes);
    }
    if (number_at(commands + 4) != layer->depth || number_at(commands + 8) != layer->channels ||
        number_at(commands + 12) != bucket->rows) {
      return fail(OXB_NPU_UNUSABLE, "the commands are of another layer", why, why_bytes);
    }
    if (bucket->weight_bytes / layer->channels != layer->depth ||
        bucket->weight_bytes % layer->channels != 0) {
      return fail(OXB_NPU_UNUSABLE, "the weights have another size", why, why_bytes);
    }
  }
  needs->host_bytes = sizeof(oxb_npu_program);
  return OXB_NPU_OK;
}

static oxb_npu_status load(oxb_npu_device* device, const oxb_npu_layer* layer, void* memory,
                           oxb_npu_program** program, char* why, size_t why_bytes) {
  uint32_t i;
  (void)device, (void)why, (void)why_bytes;
  *program = (oxb_npu_program*)memory;
  (*program)->depth = layer->depth;
  (*program)->channels = layer->channels;
  (*program)->bucket_count = layer->bucket_count;
  for (i = 0; i < layer->bucket_count; ++i) {
    (*program)->rows[i] = layer->buckets[i].rows;
    (*program)->weights[i] = (const int8_t*)layer->buckets[i].weights;
  }
  return OXB_NPU_OK;
}

static void unload(oxb_npu_program* program) { (void)program; }

static size_t taken_bytes(const oxb_npu_program* program) {
  (void)program;
  return 0;
}

static oxb_npu_status run(oxb_npu_program* program, uint32_t bucket, const void* input,
                          void* output, char* why, size_t why_bytes) {
  const size_t depth = program->depth, channels = program->channels;
  const int8_t* x = (const int8_t*)input;
  int32_t* y = (int32_t*)output;
  size_t r, n, k;
  if (bucket >= program->bucket_count) {
    return fail(OXB_NPU_FAILED, "there is no such bucket", why, why_bytes);
  }
  for (r = 0; r < program->rows[bucket]; ++r) {
    for (n = 0; n < channels; ++n) {
      const int8_t* row = program->weights[bucket] + n * depth;
      int32_t sum = 0;
      for (k = 0; k < depth; ++k) sum += x[r * depth + k] * row[k];
      y[r * channels + n] = sum;
    }
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
