/* oxbow_npu.h: what a plug-in for an accelerator implements. Plain C99; a plug-in needs no other file of this library and links
 * nothing of it. docs/npu.md teaches it, examples/npu_plugin.c is a whole one.
 *
 * A model file holds layers that were compiled beforehand for a target ("ethos-u65-256"): commands and encoded weights for one
 * or more numbers of rows. The library shows them to a plug-in that runs this target:
 *
 *     open                       once for each oxb_npu_open
 *       describe                 what it runs and how
 *         check                  for each layer of a session, before anything is taken: usable or not, and every byte it needs
 *         load                   takes those bytes and no more
 *           run                  or submit and wait; as often as the session wants
 *         unload
 *     close
 *
 * Of one device the library calls one function at a time, from any thread. A function that fails writes why, in plain text that
 * ends with a zero, to `why`. What is not OXB_NPU_OK from run, wait or submit, bytes beyond those promised, and writing outside of
 * an output make the library finish the layer on the CPU and leave the plug-in alone from then on: no state is lost.
 *
 * Structs begin with their size. The library and a plug-in may be of different versions: each reads only the fields that the
 * other's size covers, and takes those that are missing as 0. */
#ifndef OXBOW_NPU_H_
#define OXBOW_NPU_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Another major version is another interface; a minor one appends fields. */
#define OXB_NPU_MAJOR 1
#define OXB_NPU_MINOR 2

typedef int32_t oxb_npu_status;
enum {
  OXB_NPU_OK = 0,
  /* Of check: made by another version of the compiler, or for another device; the CPU serves the layer. */
  OXB_NPU_STALE = 1,
  /* Of check: damaged, or something that this device cannot do. */
  OXB_NPU_UNUSABLE = 2,
  /* Of open: there is no device. */
  OXB_NPU_NO_DEVICE = 3,
  OXB_NPU_NO_MEMORY = 4,
  /* Anything else. */
  OXB_NPU_FAILED = 5
};

/* How results compare with those of the library's own kernels. */
typedef int32_t oxb_npu_result;
enum {
  /* int32 sums of products of int8, exactly: the library's own scales follow, and the bits are its own. */
  OXB_NPU_EXACT_SUMS = 0,
  /* int8 codes, by the formula of docs/npu.md. */
  OXB_NPU_FORMULA = 1,
  /* int8 codes, near those of the formula. */
  OXB_NPU_TOLERANCE = 2
};

/* Where inputs and outputs may lie. The library gives host memory today; the others are reserved names. */
enum { OXB_NPU_MEMORY_HOST = 1, OXB_NPU_MEMORY_DMA_BUF = 2, OXB_NPU_MEMORY_HARDWARE_BUFFER = 4 };

/* Flags of oxb_npu_caps. */
enum {
  /* A run takes memory from the system. Sessions then cannot promise that they do not. */
  OXB_NPU_RUN_ALLOCATES = 1,
  /* Commands are executed as they are found, without a check of every address in them. */
  OXB_NPU_TRUSTS_COMMANDS = 2,
  /* It takes memory from the system that check does not tell and taken_bytes does not count. */
  OXB_NPU_HIDES_MEMORY = 4,
  /* Since minor version 2: int8 codes are those of the formula in integers, otherwise those of the formula in float32. */
  OXB_NPU_ROUNDS_INTEGERS = 8
};

enum { OXB_NPU_INFO = 0, OXB_NPU_WARNING = 1 };

/* What the library offers; valid until close. */
typedef struct oxb_npu_host {
  size_t size;
  void* context;
  /* May be called from any function of the plug-in, never from threads of its own. */
  void (*log)(void* context, int32_t level, const char* text);
  /* The application's settings. Valid during open only. */
  const char* const* keys;
  const char* const* values;
  size_t key_count;
  /* The table that was given, for a plug-in whose table is the beginning of something larger. */
  const struct oxb_npu_plugin* plugin;
  /* Since minor version 1: what the application gave for this plug-in (oxb_npu_options.driver). Outlives the device. */
  const void* driver;
} oxb_npu_host;

/* Texts live as long as the device. */
typedef struct oxb_npu_caps {
  size_t size;
  /* What it is, for people: "Ethos-U65-256, accel/ethosu 1.0". */
  const char* name;
  /* Layers of these targets are shown to it. */
  const char* const* targets;
  size_t target_count;
  uint32_t memory;
  uint32_t flags;
  /* Of what it can give, the loosest. */
  oxb_npu_result result;
  /* Of inputs and outputs; a power of two, at most 4096. 0 means 64. */
  uint32_t alignment;
} oxb_npu_caps;

/* A layer compiled for one number of rows. All pointers of a layer are into the model file, which outlives the program. */
typedef struct oxb_npu_bucket {
  uint32_t rows;
  uint32_t reserved;
  const void* commands;
  size_t command_bytes;
  /* Buckets of a layer often have the same: then the pointer is the same. */
  const void* weights;
  size_t weight_bytes;
} oxb_npu_bucket;

/* x W^T for int8 rows x of `depth` elements: `channels` results for each row. Nothing lies between rows. With int8 results it may
 * be several dense layers, one after the other: `depth` is the first one's, `channels` the last one's. */
typedef struct oxb_npu_layer {
  size_t size;
  const char* target;
  /* What made it, with version and settings; may be null. */
  const char* compiler;
  /* Name of the layer's output, for messages. */
  const char* name;
  uint32_t depth;
  uint32_t channels;
  /* Of what the file holds: int32 of EXACT_SUMS, otherwise int8. */
  oxb_npu_result result;
  uint32_t bucket_count;
  /* By rows, the fewest first. */
  const oxb_npu_bucket* buckets;
} oxb_npu_layer;

typedef struct oxb_npu_needs {
  size_t size;
  /* Memory that the library gives to load, of this alignment: a power of two, at most 4096; 0 means 64. */
  size_t host_bytes;
  size_t host_alignment;
  /* Memory that the plug-in takes from the device and the system, all in all; and of it the fast kind. */
  size_t device_bytes;
  size_t fast_bytes;
} oxb_npu_needs;

typedef struct oxb_npu_device oxb_npu_device;
typedef struct oxb_npu_program oxb_npu_program;

typedef struct oxb_npu_plugin {
  size_t size;
  uint16_t major;
  uint16_t minor;
  /* As applications name it: "ethosu". */
  const char* name;

  /* `why` has room for `why_bytes` in all functions. */
  oxb_npu_status (*open)(const oxb_npu_host* host, oxb_npu_device** device, char* why,
                         size_t why_bytes);
  void (*close)(oxb_npu_device* device);
  oxb_npu_status (*describe)(oxb_npu_device* device, oxb_npu_caps* caps, char* why,
                             size_t why_bytes);
  /* Touches no device and takes nothing. Everything in the layer but its numbers may be hostile. */
  oxb_npu_status (*check)(oxb_npu_device* device, const oxb_npu_layer* layer, oxb_npu_needs* needs,
                          char* why, size_t why_bytes);
  /* Only layers that check found usable. `memory` has the bytes asked for and lives until unload. */
  oxb_npu_status (*load)(oxb_npu_device* device, const oxb_npu_layer* layer, void* memory,
                         oxb_npu_program** program, char* why, size_t why_bytes);
  void (*unload)(oxb_npu_program* program);
  /* What the program has taken beside `memory`, now; never more than device_bytes. */
  size_t (*taken_bytes)(const oxb_npu_program* program);
  /* All rows of a bucket: input [rows][depth], output [rows][channels]. Input and output do not overlap. */
  oxb_npu_status (*run)(oxb_npu_program* program, uint32_t bucket, const void* input, void* output,
                        char* why, size_t why_bytes);
  /* In place of run, which is then null. Each submit is followed by its wait. */
  oxb_npu_status (*submit)(oxb_npu_program* program, uint32_t bucket, const void* input,
                           void* output, char* why, size_t why_bytes);
  oxb_npu_status (*wait)(oxb_npu_program* program, char* why, size_t why_bytes);
} oxb_npu_plugin;

/* For the plug-in "ethosu" without Linux's accel/ethosu: how the program reaches the chip itself, given as
 * oxb_npu_options.driver. Arm's core driver does it with ethosu_invoke. Outlives the handle and its sessions. */
typedef struct oxb_ethosu_driver {
  size_t size;
  /* The chip: "ethos-u55-256". */
  const char* target;
  /* Fast memory that the chip reaches, on a 16-byte boundary; null and 0 when layers need none. */
  void* fast;
  size_t fast_bytes;
  void* context;
  /* Runs a command stream with the driver's actions in front of it ("COP1"), both validated, and returns when it is done: 0, or
   * anything else when it failed. Regions are encoded weights, in place in the model file and only read; rows and results, in
   * memory of the session; and `fast`. What caches hold of them is this function's to write back and to drop. */
  int32_t (*invoke)(void* context, const void* actions, size_t action_bytes, void* const* regions,
                    const size_t* region_bytes, size_t region_count);
} oxb_ethosu_driver;

/* The one symbol of a plug-in's library. Null: it knows no such major version. */
#define OXB_NPU_SYMBOL "oxb_npu_plugin_get"
typedef const oxb_npu_plugin* (*oxb_npu_plugin_get_function)(uint32_t major);

#ifdef __cplusplus
}
#endif

#endif /* OXBOW_NPU_H_ */
