/* Oxbow: long-context transformers over endless streams, in a memory that is fixed before the first
 * token. This header is the whole public interface and its manual; oxbow.hpp wraps it for C++.
 *
 *   oxb_error error = OXB_ERROR_INIT;
 *   oxb_model* model;                       a file, mapped and verified; shared by any number of
 *   oxb_model_open_file("m.oxb", NULL, &model, &error);                 sessions on any threads
 *   oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
 *   oxb_plan plan = OXB_PLAN_INIT;
 *   oxb_session_plan(model, &options, &plan, &error);           ask what one session needs
 *   void* arena = malloc(plan.arena_bytes);                     give it
 *   oxb_session* session;
 *   oxb_session_create(model, &plan, arena, plan.arena_bytes, &session, &error);
 *   oxb_session_run(session, tokens, count, 1, logits, output_width, &error);
 *                                                               stream; nothing is allocated any more
 *   oxb_session_destroy(session);  free(arena);  oxb_model_close(model);
 *
 * Conventions, which hold for every function and struct here and in later versions:
 *
 *   Status    Every call that can fail returns an oxb_status and takes an `oxb_error`, which may be null, for the
 *             words. A refused argument changes nothing.
 *   Null      A null handle or argument is OXB_INVALID_ARGUMENT unless it is said to be allowed. Functions that
 *             return a pointer give null for it, those that return a number or a boolean give 0. What ends an
 *             object (`_close`, `_destroy`) allows null.
 *   Structs   begin with their size, set by the OXB_..._INIT macro of the header the caller was compiled with: always
 *             start from it. The library reads and writes no byte behind that size, so a program runs with later
 *             libraries, and with earlier ones as far as they know the fields. In fields that come later 0 means
 *             what was before they came. In an array all structs have the size of the first.
 *   Numbers   Enumerations are int32_t with named constants; ones that are unknown here may come from a later
 *             library. Booleans are oxb_bool: 0 or 1 when the library tells, 0 or anything else when the caller does.
 *   Buffers   come with their capacity, in what they hold: bytes, tokens, numbers. Too small is
 *             OXB_BUFFER_TOO_SMALL or OXB_ARENA_TOO_SMALL, and nothing was written.
 *   Objects   are created in memory of the caller and destroyed before he takes it back; every `_create` has its
 *             `_destroy`.
 *   Texts     that the library gives are UTF-8, end with a zero and belong to the object they were asked of.
 *
 * Threads. A model may be used by all threads at once: every function that takes a `const oxb_model*` may be called at
 * any time between open and close, as may functions that take no object. Any other object (session, generator, encoder,
 * decoder, sampler, beam search, spectrogram) belongs to one thread at a time, which need not be the one that created it;
 * handing it on takes what orders memory, such as a mutex. That holds for every function that takes one, reading ones
 * included (position, save), but for oxb_session_cancel and oxb_generator_cancel, which may be called by any thread while
 * the object lives. A borrower and its lender count as one object, as do a generator or search and its session. Callbacks
 * are called by the thread that made the call, in its course, and must not call the same object again but to cancel it.
 * The threads of a session sleep between runs; within a run they wait actively for microseconds.
 */
#ifndef OXBOW_H_
#define OXBOW_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define OXB_API
#else
#define OXB_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version and errors ------------------------------------------------------------------------- */

#define OXB_VERSION_MAJOR 0
#define OXB_VERSION_MINOR 1
#define OXB_VERSION_PATCH 0

/* major * 10000 + minor * 100 + patch of the library that was linked. */
OXB_API uint32_t oxb_version(void);

/* 0: no; anything else: yes. */
typedef int32_t oxb_bool;

typedef int32_t oxb_status;
enum {
  OXB_OK = 0,
  OXB_INVALID_ARGUMENT = 10,
  OXB_ARENA_TOO_SMALL = 11,
  OXB_BUFFER_TOO_SMALL = 12,
  /* An earlier run failed half-way; reset, load or rewind the session. */
  OXB_NEEDS_RESET = 13,
  /* The stream has reached the length this model was made for. */
  OXB_STREAM_FULL = 14,
  /* oxb_session_cancel ended the run. */
  OXB_CANCELLED = 15,
  /* The vocabulary lacks a character of the text, or a word is too long; `error` tells the byte. */
  OXB_TEXT_STOPPED = 16,
  OXB_FILE_UNREADABLE = 20,
  OXB_FILE_CORRUPT = 21,
  OXB_FILE_UNSUPPORTED = 22,
  OXB_STATE_CORRUPT = 30,
  /* A state of another model. */
  OXB_STATE_MISMATCH = 31,
  OXB_OUT_OF_MEMORY = 40,
  OXB_NO_DEVICE = 41,
  OXB_DEVICE_LOST = 42,
  OXB_INTERNAL = 50
};

/* "ok", "invalid argument", ... */
OXB_API const char* oxb_status_name(oxb_status status);

/* Filled when a call fails, and left alone when it does not. */
typedef struct oxb_error {
  size_t size;
  /* What the call returned. */
  oxb_status code;
  /* The step that failed, counted as in the profile, and its op; -1 and null: none was running. */
  int32_t step;
  const char* op;
  char text[256];
} oxb_error;
#define OXB_ERROR_INIT                         \
  {                                            \
    sizeof(oxb_error), OXB_OK, -1, NULL, { 0 } \
  }

/* ---- Models ------------------------------------------------------------------------------------- */

typedef struct oxb_model oxb_model;
typedef struct oxb_session oxb_session;

typedef int32_t oxb_access;
enum {
  /* The file is mapped: pages are read when they are needed and can be given back to the system. */
  OXB_ACCESS_MAP = 0,
  /* The file is read into memory: it may then change or go, and no run waits for the disk. */
  OXB_ACCESS_READ = 1
};

typedef int32_t oxb_log_level;
enum { OXB_LOG_INFO = 0, OXB_LOG_WARNING = 1 };

/* What happens and may be worth knowing: a model was opened, a session created and who computes its steps, or refused and
 * why, a text ended and how, a file could not be prefetched. One line, without its end, in the course of the call. */
typedef void (*oxb_log_callback)(void* context, oxb_log_level level, const char* text);

typedef struct oxb_open_options {
  size_t size;
  oxb_access access;
  /* Not 0: all pages are asked for at once, in the background, instead of one by one in the first run. */
  oxb_bool prefetch;
  /* Not 0: oxb_model_check_weights is part of opening. */
  oxb_bool check_weights;
  /* OXB_ACCESS_READ: where to, which must be aligned to 64, have as many bytes as the file and outlive the model.
   * Null: the library allocates. */
  void* memory;
  size_t memory_bytes;
  /* Null: no log. It must be callable from any thread until the model is closed. */
  oxb_log_callback log;
  void* log_context;
  /* Those of the session that will be created; only read while the model is opened. Opening binds every step and plans
   * a session by it, so that one with these options need not be planned again, and it is refused at once when
   * their backend cannot be had. Null: the default ones. */
  const struct oxb_session_options* session;
} oxb_open_options;
#define OXB_OPEN_OPTIONS_INIT \
  { sizeof(oxb_open_options), OXB_ACCESS_MAP, 0, 0, NULL, 0, NULL, NULL, NULL }

/* Opens the file and verifies everything but the weights' own bytes. Options may be null. */
OXB_API oxb_status oxb_model_open_file(const char* path, const oxb_open_options* options,
                                       oxb_model** model, oxb_error* error);

/* The same for `length` bytes at `offset` of an open file, such as an asset inside an APK. The offset must
 * be a multiple of 64. The descriptor may be closed afterwards. */
OXB_API oxb_status oxb_model_open_fd(int fd, uint64_t offset, uint64_t length,
                                     const oxb_open_options* options, oxb_model** model,
                                     oxb_error* error);

/* The same for bytes in memory, aligned to 64, which must outlive the model; how to access a file is ignored. */
OXB_API oxb_status oxb_model_open_memory(const void* data, size_t bytes,
                                         const oxb_open_options* options, oxb_model** model,
                                         oxb_error* error);

/* All its sessions must be gone. Null is allowed. */
OXB_API void oxb_model_close(oxb_model* model);

/* Reads all weights and compares them with the checksum in the file. */
OXB_API oxb_status oxb_model_check_weights(const oxb_model* model, oxb_error* error);

typedef int32_t oxb_tokenizer_kind;
enum {
  OXB_TOKENIZER_NONE = 0,
  OXB_TOKENIZER_BYTE = 1,
  OXB_TOKENIZER_CHAR = 2,
  /* GPT-2's and its successors': bytes joined to words. */
  OXB_TOKENIZER_BYTE_BPE = 3,
  /* BERT's. */
  OXB_TOKENIZER_WORDPIECE = 4,
  /* SentencePiece's two. */
  OXB_TOKENIZER_UNIGRAM = 5,
  OXB_TOKENIZER_BPE = 6,
  /* RWKV's World: the longest token each time. */
  OXB_TOKENIZER_LONGEST = 7
};

/* What a model is for. */
typedef int32_t oxb_task;
enum {
  /* Gives the logits of the next token. */
  OXB_TASK_GENERATE = 0,
  /* The same, after an encoder has read a text: see oxb_session_encode. */
  OXB_TASK_TRANSLATE = 1,
  /* Gives one row: a logit for each class. */
  OXB_TASK_CLASSIFY = 2,
  /* Gives logits of the tokens themselves. */
  OXB_TASK_FILL_MASK = 3,
  /* Gives hidden states. */
  OXB_TASK_ENCODE = 4
};

typedef struct oxb_model_info {
  size_t size;
  const char* architecture;
  /* Token ids are below this. */
  uint32_t vocabulary;
  /* Most tokens one run takes. */
  uint32_t max_segment;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  uint64_t parameters;
  uint64_t macs_per_token;
  /* Identifies the file's content; saved states are tied to it. */
  uint64_t hash;
  oxb_tokenizer_kind tokenizer;
  oxb_task task;
  /* Numbers in a row of the output, whatever it is: what room for logits is sized by. Not the vocabulary: a
   * classifier's are its classes, an encoder's its hidden size. */
  uint32_t output_width;
  /* What a text starts and ends with, or fills its end; -1: nothing. */
  int32_t start_token;
  int32_t end_token;
  int32_t pad_token;
  /* What stands for a word to be filled in; -1: nothing. */
  int32_t mask_token;
  /* Tokens a stream may have; 0: it is endless. */
  uint64_t capacity;
  /* Parts that can be run, see below. oxb_session_run runs the last. */
  size_t entry_count;
  /* Names of a classifier's classes that the file knows. */
  size_t label_count;
  /* Entries of oxb_model_metadata. */
  size_t metadata_count;
} oxb_model_info;
#define OXB_MODEL_INFO_INIT \
  { sizeof(oxb_model_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0 }

OXB_API oxb_status oxb_model_get_info(const oxb_model* model, oxb_model_info* info,
                                      oxb_error* error);

/* What the file says of itself, as texts: "architecture", "licence", "converter", "source_hash", and what it was made
 * with as "settings.KEY", "sizes.KEY", "quality.KEY". `index` is below metadata_count. */
OXB_API oxb_status oxb_model_metadata(const oxb_model* model, size_t index, const char** key,
                                      const char** value, oxb_error* error);
/* The value of a key; null when the file has none. */
OXB_API const char* oxb_model_find_metadata(const oxb_model* model, const char* key);

/* The name of a class; null when the index is not below label_count. */
OXB_API const char* oxb_model_label(const oxb_model* model, size_t index);

/* A part of a model that can be run: most have one, "step"; models that translate have "encode" and
 * "step". */
typedef struct oxb_entry_info {
  size_t size;
  const char* name;
  const char* output;
  uint32_t output_width;
  /* Rows of the output when their number is fixed, as with a classifier; 0: the caller chooses. */
  uint32_t output_rows;
  uint32_t max_rows;
  size_t input_count;
  /* Results: the output above, and those beside it. */
  size_t output_count;
  /* Every run begins with a reset. */
  oxb_bool starts;
  /* How a stream is cut into runs does not change its results. */
  oxb_bool any_pieces;
} oxb_entry_info;
#define OXB_ENTRY_INFO_INIT \
  { sizeof(oxb_entry_info), NULL, NULL, 0, 0, 0, 0, 0, 0, 0 }

OXB_API oxb_status oxb_model_entry_info(const oxb_model* model, size_t entry, oxb_entry_info* info,
                                        oxb_error* error);
/* Its index by its name. */
OXB_API oxb_status oxb_model_find_entry(const oxb_model* model, const char* name, size_t* entry,
                                        oxb_error* error);

typedef int32_t oxb_type;
enum { OXB_TYPE_F32 = 0, OXB_TYPE_I32 = 2 };

/* What a run of an entry point takes. The first input is the main one: its tokens. */
typedef struct oxb_input_info {
  size_t size;
  const char* name;
  oxb_type type;
  uint32_t width;
  /* I32: values are 0 to limit - 1, and all `default_value` when the input is not given; F32: all 0 then. */
  uint32_t limit;
  uint32_t default_value;
  /* Must be given. */
  oxb_bool required;
  /* Rows at most. */
  uint32_t max_rows;
  /* It may have fewer or more rows than the main input, also none; 0: as many. */
  oxb_bool own_rows;
} oxb_input_info;
#define OXB_INPUT_INFO_INIT \
  { sizeof(oxb_input_info), NULL, 0, 0, 0, 0, 0, 0, 0 }

OXB_API oxb_status oxb_model_input_info(const oxb_model* model, size_t entry, size_t input,
                                        oxb_input_info* info, oxb_error* error);
OXB_API oxb_status oxb_model_find_input(const oxb_model* model, size_t entry, const char* name,
                                        size_t* input, oxb_error* error);

/* What a run of an entry point gives, float32. The first output is the main one, of which the caller chooses how many
 * rows he wants unless their number is fixed; the others have the rows they have. */
typedef struct oxb_output_info {
  size_t size;
  const char* name;
  uint32_t width;
  uint32_t max_rows;
} oxb_output_info;
#define OXB_OUTPUT_INFO_INIT \
  { sizeof(oxb_output_info), NULL, 0, 0 }

OXB_API oxb_status oxb_model_output_info(const oxb_model* model, size_t entry, size_t output,
                                         oxb_output_info* info, oxb_error* error);

/* ---- Sessions ----------------------------------------------------------------------------------- */

typedef int32_t oxb_backend;
enum {
  /* The fastest this library has for this machine. */
  OXB_BACKEND_AUTO = 0,
  /* Plain code, the specification of every other backend. */
  OXB_BACKEND_REFERENCE = 1,
  OXB_BACKEND_CPU = 2,
  /* Dense layers by that library where it can, all else as CPU. Both copy the weights they use into memory
   * of their own when a session is created: see oxb_plan.library_bytes. */
  OXB_BACKEND_XNNPACK = 3,
  OXB_BACKEND_ACL = 4,
  /* All steps that have a shader on a Vulkan device, the others on the CPU in between. States and
   * activations live in the device's memory, the weights are copied there: see oxb_plan.device_bytes.
   * Without a usable device oxb_session_create fails with OXB_NO_DEVICE: take another backend then. */
  OXB_BACKEND_VULKAN = 5,
  /* Dense layers that the file has compiled for an accelerator (oxbow-convert --npu) by its plug-in, which
   * oxb_session_options.npu names; all else, and runs of few rows, as CPU: docs/npu.md. */
  OXB_BACKEND_NPU = 6
};

/* "auto", "reference", ...; null when there is no such backend. They are numbered from 0 on, without gaps. */
OXB_API const char* oxb_backend_name(oxb_backend backend);

/* Sessions can be created with it; it is an option of the library's build. */
OXB_API oxb_bool oxb_backend_is_built_in(oxb_backend backend);

/* An accelerator, opened by its plug-in (oxbow_npu.h). Sessions on any threads may share one. */
typedef struct oxb_npu oxb_npu;
struct oxb_npu_plugin;

typedef struct oxb_npu_options {
  size_t size;
  /* One that is built in ("ethosu"), the path of a library, or NAME for liboxbow_npu_NAME.so where the system looks for
   * libraries, such as the folder of an Android app's own. Vendors' libraries are not verified: name only what you
   * trust. */
  const char* plugin;
  /* Not null: one that is linked into the program, in place of the name. Outlives the handle. */
  const struct oxb_npu_plugin* linked;
  /* Settings of the plug-in, such as a device's path; its manual lists them. Read only while it is opened. */
  const char* const* keys;
  const char* const* values;
  size_t key_count;
  /* Told what the plug-in says, at any time until the handle and its sessions are gone. Null: nobody. */
  oxb_log_callback log;
  void* log_context;
  /* What the program gives this plug-in beside texts; its manual says what, such as an oxb_ethosu_driver for "ethosu". Outlives
   * the handle and its sessions. */
  const void* driver;
} oxb_npu_options;
#define OXB_NPU_OPTIONS_INIT \
  { sizeof(oxb_npu_options), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL }

/* OXB_NO_DEVICE with the reason when the plug-in or its device is not there. */
OXB_API oxb_status oxb_npu_open(const oxb_npu_options* options, oxb_npu** npu, oxb_error* error);

/* Sessions that use it keep it alive. Null is allowed. */
OXB_API void oxb_npu_close(oxb_npu* npu);

typedef struct oxb_session_options {
  size_t size;
  /* Threads that work on a run, the caller's included; 0 means 1. */
  uint32_t threads;
  oxb_backend backend;
  /* Not null: this session borrows from that one of the same model, as the beams of a search do. It owns only
   * its stream; what the lender encoded, its working memory, threads and backend serve both. The lender must
   * outlive it, and only one of the two may run at a time. */
  const oxb_session* lender;
  /* Not 0: the threads it starts run only on the cores whose bit is set, such as the big ones. The calling
   * thread is the caller's to place. Linux and Android. */
  uint64_t cpu_mask;
  /* What oxb_session_pipeline_cache gave, perhaps to an earlier process: shaders that are in it need not be
   * compiled again. Read only while a session is created, and ignored when it is damaged or of another device
   * or driver. Null: none. */
  const void* pipeline_cache;
  size_t pipeline_cache_bytes;
  /* OXB_BACKEND_NPU only: which accelerator. */
  oxb_npu* npu;
  /* Runs of a layer with fewer rows stay on the CPU: reading weights is all they cost. 0 means 8. */
  uint32_t npu_least_rows;
  /* Not 0: the CPU computes what the accelerator does as well, its results are used, and
   * oxb_session_npu_report tells how they differ. */
  oxb_bool npu_shadow;
  /* Not 0: creation touches every page of the weights and of the arena, so that the first run costs what later ones do.
   * It then takes as long as reading the file. */
  oxb_bool warm_up;
} oxb_session_options;

#define OXB_SESSION_OPTIONS_INIT \
  { sizeof(oxb_session_options), 1, OXB_BACKEND_AUTO, NULL, 0, NULL, 0, NULL, 0, 0, 0 }

/* All that a session takes, told before anything is created. */
typedef struct oxb_plan {
  size_t size;
  /* The options that were asked about, which must stay where they are until the session is created; null: the
   * defaults. The rest is for the caller to read. */
  const oxb_session_options* options;
  /* Of the arena, all in all. */
  size_t arena_bytes;
  /* Its parts. They do not sum up to it: it has room for its alignment, too. */
  size_t session_bytes;
  size_t state_bytes;
  size_t activation_bytes;
  size_t scratch_bytes;
  /* Beside the arena: memory of a device, and what a library behind the backend copies the weights to. */
  size_t device_bytes;
  size_t library_bytes;
  /* Of a saved state or a checkpoint. */
  size_t checkpoint_bytes;
  /* Of each further session that borrows from the first, such as the beams of a search. 0 when it borrows itself. */
  size_t beam_bytes;
} oxb_plan;
#define OXB_PLAN_INIT \
  { sizeof(oxb_plan), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Tells what a session of this model with these options, which may be null, needs. The model keeps the answer to the
 * last question, so that creation need not find it again; a device that was opened for it stays open until then, or
 * until the model is closed. */
OXB_API oxb_status oxb_session_plan(const oxb_model* model, const oxb_session_options* options,
                                    oxb_plan* plan, oxb_error* error);

/* Places a session in `arena`, which needs no alignment and must outlive it, as must the model. */
OXB_API oxb_status oxb_session_create(const oxb_model* model, const oxb_plan* plan, void* arena,
                                      size_t arena_bytes, oxb_session** session, oxb_error* error);

/* Ends its threads. The arena is the caller's again. Null is allowed. */
OXB_API void oxb_session_destroy(oxb_session* session);

/* Bytes that a library behind the backend took from the system when this session was created, or the session
 * from a device, beside the arena; 0 for this library's own backends. */
OXB_API oxb_status oxb_session_backend_bytes(const oxb_session* session, size_t* bytes,
                                             oxb_error* error);

/* The compiled shaders of the session's device, for an application to store and give to its next sessions.
 * `*count` tells how many bytes they are; with a null buffer that is all. 0 bytes without a device. */
OXB_API oxb_status oxb_session_pipeline_cache(const oxb_session* session, void* buffer,
                                              size_t bytes, size_t* count, oxb_error* error);

/* Feeds 1 to max_segment tokens. Writes the logits of the last `logits_rows` of them (0: none are computed;
 * 1: the last; count: all) to `logits`, [logits_rows][output_width], which has room for `logits_capacity` numbers
 * and may be null when no rows are wanted. A failure half-way leaves the session refusing to run (OXB_NEEDS_RESET)
 * until reset, load or rewind. */
OXB_API oxb_status oxb_session_run(oxb_session* session, const int32_t* tokens, size_t count,
                                   size_t logits_rows, float* logits, size_t logits_capacity,
                                   oxb_error* error);

/* Ends the run of this session that is under way after its current step, or else the next one before its first: that
 * run returns OXB_CANCELLED. Nothing happens to the stream when no step had run; otherwise it needs a reset, load or
 * rewind, each of which also forgets a cancel that no run has seen. May be called by any thread. */
OXB_API oxb_status oxb_session_cancel(oxb_session* session);

/* One input of oxb_session_run_entry: `rows` rows of int32_t or float, as oxb_model_input_info tells. */
typedef struct oxb_input {
  size_t size;
  const char* name;
  const void* values;
  size_t rows;
} oxb_input;
#define OXB_INPUT_INIT \
  { sizeof(oxb_input), NULL, NULL, 0 }

/* One output: where it goes, with room for `capacity` numbers. */
typedef struct oxb_output {
  size_t size;
  const char* name;
  float* values;
  size_t capacity;
  /* Of the main output: how many rows are wanted, the last ones. Afterwards, of every output: how many there are. */
  size_t rows;
} oxb_output;
#define OXB_OUTPUT_INIT \
  { sizeof(oxb_output), NULL, NULL, 0, 0 }

/* Runs one entry point with any of its inputs, for any of its outputs, each once. The inputs must include the main one
 * and have as many rows, but for those with rows of their own. The main output may be left out when its number of rows
 * is not fixed. Other outputs can also be read by name afterwards, see oxb_session_tensor_read. */
OXB_API oxb_status oxb_session_run_entry(oxb_session* session, size_t entry,
                                         const oxb_input* inputs, size_t input_count,
                                         oxb_output* outputs, size_t output_count,
                                         oxb_error* error);

/* Reads the text to translate: runs the first entry point of a model that has two. Starts a new stream. */
OXB_API oxb_status oxb_session_encode(oxb_session* session, const int32_t* tokens, size_t count,
                                      oxb_error* error);

/* Several texts of different lengths through a model whose runs start anew each time, such as an encoder
 * or a classifier: `lengths[i]` tokens of text i follow those of text i - 1 in `tokens`. Their outputs
 * follow each other in `output`: one row per text where the number of rows is fixed, else one per token.
 * No padding is needed, and none is computed. Where a row is given for each token, texts go through the model together,
 * as many as have room in max_segment: sort them by their lengths, the longest first. */
OXB_API oxb_status oxb_session_run_batch(oxb_session* session, const int32_t* tokens,
                                         const size_t* lengths, size_t texts, float* output,
                                         size_t output_capacity, oxb_error* error);

#define OXB_MAX_SESSIONS_RUN 256
/* Feeds tokens[i] to sessions[i]: `count` different sessions of one model, a token each. Writes their logits to `logits`,
 * [count][output_width], which has room for `logits_capacity` numbers; null: none are wanted. A lender and its borrowers
 * go through the model together, so that its weights are read once for all of them: several streams cost little more
 * than one. Other sessions run one after the other. The results are the same bits. What is refused changes nothing; a
 * failure half-way leaves all of them as it leaves the session of oxb_session_run, and oxb_session_cancel of the first
 * ends the run of all. */
OXB_API oxb_status oxb_sessions_run(oxb_session* const* sessions, size_t count,
                                    const int32_t* tokens, float* logits, size_t logits_capacity,
                                    oxb_error* error);

typedef int32_t oxb_pooling;
enum { OXB_POOLING_MEAN = 0, OXB_POOLING_FIRST = 1, OXB_POOLING_LAST = 2, OXB_POOLING_MAX = 3 };

typedef struct oxb_embed_options {
  size_t size;
  /* How the rows of a text become one. */
  oxb_pooling pooling;
  /* Not 0: the row is divided by its length, so that its products with others are cosines. */
  oxb_bool normalise;
} oxb_embed_options;
#define OXB_EMBED_OPTIONS_INIT \
  { sizeof(oxb_embed_options), OXB_POOLING_MEAN, 0 }

/* One row of numbers for a whole text, from a model whose runs start anew each time. `output` is also where the rows
 * of the tokens are computed: it has room for count * output_width numbers, or for output_width where the number of
 * rows is fixed or the last is wanted, and the embedding is in the first output_width of them. Options may be null. */
OXB_API oxb_status oxb_session_embed(oxb_session* session, const int32_t* tokens, size_t count,
                                     const oxb_embed_options* options, float* output,
                                     size_t output_capacity, oxb_error* error);

/* Makes the stream of `to` equal to that of `from`: its lender, its borrower, or a borrower of the same. */
OXB_API oxb_status oxb_session_copy(oxb_session* to, const oxb_session* from, oxb_error* error);

/* Back to the empty stream. */
OXB_API oxb_status oxb_session_reset(oxb_session* session, oxb_error* error);

/* Tokens fed since the last reset. */
OXB_API oxb_status oxb_session_position(const oxb_session* session, uint64_t* position,
                                        oxb_error* error);

/* ---- State: save and load, checkpoint and rewind ------------------------------------------------- */

/* Bytes of a saved state, and of a checkpoint. The same at every position of the stream. */
OXB_API oxb_status oxb_session_state_bytes(const oxb_session* session, size_t* bytes,
                                           oxb_error* error);

/* Saves the state with a checksum and the model's hash; loads it into any session of the same model. */
OXB_API oxb_status oxb_session_save(const oxb_session* session, void* buffer, size_t bytes,
                                    oxb_error* error);
OXB_API oxb_status oxb_session_load(oxb_session* session, const void* buffer, size_t bytes,
                                    oxb_error* error);

/* The same for a buffer that stays in this process: without the checksum, at the speed of memcpy. */
OXB_API oxb_status oxb_session_checkpoint(const oxb_session* session, void* buffer, size_t bytes,
                                          oxb_error* error);
OXB_API oxb_status oxb_session_rewind(oxb_session* session, const void* buffer, size_t bytes,
                                      oxb_error* error);

/* ---- Drafts: keep the first tokens of what was run ------------------------------------------------ */

/* For speculation: a small model guesses some tokens, one run of the large one judges all of them, and the stream goes
 * on behind the last that was right without running any of them again. A draft is a checkpoint and, for each token,
 * what the steps that change states were given; keeping takes the checkpoint back and repeats those steps alone.
 *
 * Bytes for a draft of `tokens`; OXB_INVALID_ARGUMENT where it depends on the cuts of a stream what its states
 * become, and for sessions that are on a device or share the memory of another. */
OXB_API oxb_status oxb_session_draft_bytes(const oxb_session* session, size_t tokens, size_t* bytes,
                                           oxb_error* error);

/* From here on all runs are a draft, of `tokens` in all at most. `memory`, at any address, is the session's until the
 * draft ends: by keep, reset, load, rewind, a copy to it or another draft. */
OXB_API oxb_status oxb_session_draft(oxb_session* session, void* memory, size_t bytes,
                                     size_t tokens, oxb_error* error);

/* Ends the draft: the stream is what it would be after the first `tokens` of it. */
OXB_API oxb_status oxb_session_keep(oxb_session* session, size_t tokens, oxb_error* error);

/* ---- Looking inside ------------------------------------------------------------------------------ */

/* States (memories), outputs beside the main one, and activations kept by `oxbow-convert --debug-outputs`, by name, as
 * float32 rows, the oldest first. */
typedef struct oxb_tensor_info {
  size_t size;
  const char* name;
  /* Rows that are filled now, and at most. */
  uint32_t rows;
  uint32_t max_rows;
  uint32_t width;
} oxb_tensor_info;
#define OXB_TENSOR_INFO_INIT \
  { sizeof(oxb_tensor_info), NULL, 0, 0, 0 }

OXB_API oxb_status oxb_session_tensor_count(const oxb_session* session, size_t* count,
                                            oxb_error* error);
OXB_API oxb_status oxb_session_find_tensor(const oxb_session* session, const char* name,
                                           size_t* index, oxb_error* error);
OXB_API oxb_status oxb_session_tensor_info(const oxb_session* session, size_t index,
                                           oxb_tensor_info* info, oxb_error* error);
OXB_API oxb_status oxb_session_tensor_read(const oxb_session* session, size_t index, float* values,
                                           size_t value_count, oxb_error* error);

/* Time of each step of each run; null: of none. A step that sessions take together is told once, by the first of them. */
typedef void (*oxb_profile_callback)(void* context, uint32_t step, const char* op,
                                     const char* output, uint64_t nanoseconds);
OXB_API oxb_status oxb_session_set_profile(oxb_session* session, oxb_profile_callback callback,
                                           void* context, oxb_error* error);

/* Who computes a step, counted as in the profile: the name of a backend; null when there is no such step. */
OXB_API const char* oxb_session_step_provider(const oxb_session* session, size_t step);

/* What an accelerator has done for a session since it was created. */
typedef struct oxb_npu_report {
  size_t size;
  /* Layers it has, and what it needs for them: memory of the device, of which fast, and of the host. */
  uint32_t layers;
  size_t device_bytes;
  size_t fast_bytes;
  size_t host_bytes;
  /* Runs of layers there, rows in them, and runs of those layers that the CPU made: few rows, or a failure. */
  uint64_t runs;
  uint64_t rows;
  uint64_t cpu_runs;
  uint64_t nanoseconds;
  /* Shadow mode: numbers compared, how many differ, the largest difference, and the step that it was in. Int8 results are
   * compared in codes. */
  uint64_t compared;
  uint64_t different;
  float largest_difference;
  uint32_t largest_step;
  /* Not 0: the plug-in has failed or broken a promise, told in `failure`. That layer, and all since, were computed by the
   * CPU: results and states are whole. */
  oxb_bool failed;
  char failure[128];
} oxb_npu_report;
#define OXB_NPU_REPORT_INIT                                              \
  {                                                                      \
    sizeof(oxb_npu_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } \
  }

/* Of a session with OXB_BACKEND_NPU. */
OXB_API oxb_status oxb_session_npu_report(const oxb_session* session, oxb_npu_report* report,
                                          oxb_error* error);

/* ---- Text ---------------------------------------------------------------------------------------- */

/* Text to tokens, in pieces of any size. */
typedef struct oxb_encoder oxb_encoder;

/* Values of add_template for two texts that a model takes together. */
#define OXB_TEMPLATE_FIRST 2
#define OXB_TEMPLATE_SECOND 3

typedef struct oxb_encoder_options {
  size_t size;
  /* Not 0: the tokens that the model expects before and behind a text, such as its start, are added. Of a pair, such
   * as a question and a passage, the first text gets OXB_TEMPLATE_FIRST and the second OXB_TEMPLATE_SECOND; their ids
   * follow each other in one run. OXB_INVALID_ARGUMENT when the model takes no pairs. */
  oxb_bool add_template;
  /* Not 0: the text of a special token, such as "<|endoftext|>", becomes that token. 0: it is text like any
   * other, as is right for text of strangers. */
  oxb_bool parse_special;
  /* Bytes of the longest word, 64 to 2^24. Memory grows with it; a longer word is OXB_TEXT_STOPPED unless
   * it can be cut without changing its tokens. */
  uint32_t max_word_bytes;
} oxb_encoder_options;
/* All of it on, and words of 4,096 bytes. Null options mean the same. */
#define OXB_ENCODER_OPTIONS_INIT \
  { sizeof(oxb_encoder_options), 1, 1, 4096 }

OXB_API oxb_status oxb_encoder_bytes(const oxb_model* model, const oxb_encoder_options* options,
                                     size_t* bytes, oxb_error* error);
/* Places an encoder in memory the caller gives, which needs no alignment. The model must outlive it. */
OXB_API oxb_status oxb_encoder_create(const oxb_model* model, const oxb_encoder_options* options,
                                      void* memory, size_t bytes, oxb_encoder** encoder,
                                      oxb_error* error);
OXB_API void oxb_encoder_destroy(oxb_encoder* encoder);
/* Takes on `text`, writes at most `capacity` ids, and tells how many ids and how many bytes of the text that
 * were. `last` not 0: the text ends here. What was not taken is given again, with what follows it: a word is
 * taken only when its end was seen, so a call may take nothing until `last` or three times max_word_bytes are
 * there. How a text is cut into calls does not change its ids. A text is over when `last` was set, all of it
 * is taken and there is room left in `ids`; the next call begins another.
 * Text that the vocabulary cannot express, or a word that is too long, is OXB_TEXT_STOPPED: `count` ids lie before it,
 * `error` tells a byte of the whole text. That is where the character, or what was not yet taken of the word, begins.
 * With a tokenizer that changes text first it is any byte of the word, or one shortly behind when the word became more
 * than four times as long. */
OXB_API oxb_status oxb_encoder_run(oxb_encoder* encoder, const char* text, size_t bytes,
                                   oxb_bool last, int32_t* ids, size_t capacity, size_t* count,
                                   size_t* consumed, oxb_error* error);
/* Forgets the text. */
OXB_API oxb_status oxb_encoder_reset(oxb_encoder* encoder, oxb_error* error);

/* Tokens to text, one by one. */
typedef struct oxb_decoder oxb_decoder;

typedef struct oxb_decoder_options {
  size_t size;
  /* Not 0: special tokens give no text. */
  oxb_bool skip_special;
} oxb_decoder_options;
/* Special tokens give no text. Null options mean the same. */
#define OXB_DECODER_OPTIONS_INIT \
  { sizeof(oxb_decoder_options), 1 }

OXB_API oxb_status oxb_decoder_bytes(const oxb_model* model, const oxb_decoder_options* options,
                                     size_t* bytes, oxb_error* error);
/* Places a decoder in memory the caller gives, like an encoder. */
OXB_API oxb_status oxb_decoder_create(const oxb_model* model, const oxb_decoder_options* options,
                                      void* memory, size_t bytes, oxb_decoder** decoder,
                                      oxb_error* error);
OXB_API void oxb_decoder_destroy(oxb_decoder* decoder);
/* Bytes that one token becomes at most. */
OXB_API size_t oxb_decoder_most_text(const oxb_decoder* decoder);
/* The text of the next token, in whole characters: half a character waits for the next token. `capacity` is
 * at least oxb_decoder_most_text. Not terminated; often empty. */
OXB_API oxb_status oxb_decoder_run(oxb_decoder* decoder, int32_t id, char* text, size_t capacity,
                                   size_t* count, oxb_error* error);
/* What still waits, and the text is over: the next token begins another. */
OXB_API oxb_status oxb_decoder_finish(oxb_decoder* decoder, char* text, size_t capacity,
                                      size_t* count, oxb_error* error);

/* The bytes of a token as the vocabulary has them, which need not be whole characters: to look at tokens.
 * Writes as many as there is room for, and tells how many there are. */
OXB_API oxb_status oxb_model_token_bytes(const oxb_model* model, int32_t id, char* bytes,
                                         size_t capacity, size_t* count, oxb_error* error);

/* A text ends with this token. */
OXB_API oxb_bool oxb_model_ends_text(const oxb_model* model, int32_t token);

/* What a model that was trained to answer wants before and behind a question; null: it was not. */
OXB_API const char* oxb_model_chat_before(const oxb_model* model);
OXB_API const char* oxb_model_chat_after(const oxb_model* model);

/* ---- Sampling ------------------------------------------------------------------------------------ */

typedef struct oxb_sampler oxb_sampler;

typedef struct oxb_sampler_options {
  size_t size;
  /* 0: always the most likely token; the rest is then ignored but the penalty. */
  float temperature;
  /* Keep the k most likely tokens; 0: all. */
  uint32_t top_k;
  /* Keep the most likely tokens that together reach this probability; 1: all. */
  float top_p;
  /* Logits of tokens seen in the last `repetition_window` tokens are divided (when positive) or
   * multiplied (when negative) by this; 1: off. */
  float repetition_penalty;
  uint32_t repetition_window;
  uint64_t seed;
} oxb_sampler_options;
/* Temperature 0.8, no limits, no penalty (over a window of 64), seed 0. Null options mean the same. */
#define OXB_SAMPLER_OPTIONS_INIT \
  { sizeof(oxb_sampler_options), 0.8f, 0, 1.0f, 1.0f, 64, 0 }

/* The same, changed where the model's makers gave advice. */
OXB_API oxb_status oxb_sampler_options_advised(const oxb_model* model, oxb_sampler_options* options,
                                               oxb_error* error);
OXB_API oxb_status oxb_sampler_bytes(uint32_t output_width, const oxb_sampler_options* options,
                                     size_t* bytes, oxb_error* error);
/* Places a sampler for rows of the model's output_width in memory the caller gives. Same seed, same logits: same tokens, on every machine. */
OXB_API oxb_status oxb_sampler_create(uint32_t output_width, const oxb_sampler_options* options,
                                      void* memory, size_t bytes, oxb_sampler** sampler,
                                      oxb_error* error);
OXB_API void oxb_sampler_destroy(oxb_sampler* sampler);
/* Tells the sampler of a token that was fed, for the repetition penalty. */
OXB_API oxb_status oxb_sampler_accept(oxb_sampler* sampler, int32_t token, oxb_error* error);
/* Picks a token from one row: `count` is the output_width it was created for. A logit of -inf makes its token impossible; NaN and +inf are OXB_INVALID_ARGUMENT. */
OXB_API oxb_status oxb_sampler_pick(oxb_sampler* sampler, const float* logits, size_t count,
                                    int32_t* token, oxb_error* error);

/* ---- Beam search --------------------------------------------------------------------------------- */

/* Follows the likeliest texts side by side, each a stream of its own, and gives the best that ended. For
 * any model whose output is the logits of the next token; one that translates has encoded its text before.
 * What ends a text, what is forbidden and what is forced comes with the model. Same logits: same texts and
 * scores, on every machine. */
typedef struct oxb_beam_search oxb_beam_search;

typedef int32_t oxb_beam_stop;
enum {
  /* There are as many ended texts as beams, and the likeliest open text would now be no better. */
  OXB_BEAM_STOP_UNLIKELY_BETTER = 0,
  /* There are as many ended texts as beams. */
  OXB_BEAM_STOP_ENOUGH_TEXTS = 1,
  /* There are as many ended texts as beams, and none that is open can become better. */
  OXB_BEAM_STOP_NONE_BETTER = 2
};

typedef struct oxb_beam_options {
  size_t size;
  /* Texts followed at a time, 1 to 64. One takes the most likely token each time. */
  uint32_t beams;
  /* Texts wanted, 1 to `beams`. */
  uint32_t n_best;
  /* Tokens of a text at most and at least, with the prompt and the end. 0: as many as the model's stream
   * has, and none. */
  uint32_t max_tokens;
  uint32_t min_tokens;
  /* A text's score is the sum of the logarithms of its tokens' probabilities, divided by its length (with the
   * prompt, without the end) to the power of this, -10 to 10. */
  double length_penalty;
  oxb_beam_stop stop;
} oxb_beam_options;
/* 4 beams, the best text, a penalty of 1. Null options mean the same. */
#define OXB_BEAM_OPTIONS_INIT \
  { sizeof(oxb_beam_options), 4, 1, 0, 0, 1.0, OXB_BEAM_STOP_UNLIKELY_BETTER }

/* The same, changed where the model's makers gave advice. */
OXB_API oxb_status oxb_beam_options_advised(const oxb_model* model, oxb_beam_options* options,
                                            oxb_error* error);
/* How many bytes oxb_beam_search_create needs: above all the streams of all beams but one, which is the
 * session's own. */
OXB_API oxb_status oxb_beam_search_bytes(const oxb_session* session,
                                         const oxb_beam_options* options, size_t* bytes,
                                         oxb_error* error);
/* Places a search in memory the caller gives, which needs no alignment. The session must outlive it. */
OXB_API oxb_status oxb_beam_search_create(oxb_session* session, const oxb_beam_options* options,
                                          void* memory, size_t bytes, oxb_beam_search** search,
                                          oxb_error* error);
OXB_API void oxb_beam_search_destroy(oxb_beam_search* search);
/* Continues the session's stream with `count` tokens of prompt, or without any with the model's start token,
 * until the search ends. The stream then holds one of the beams: encode or reset before the next text.
 * Allocates nothing. */
OXB_API oxb_status oxb_beam_search_run(oxb_beam_search* search, const int32_t* prompt, size_t count,
                                       oxb_error* error);
/* Texts of the last run: n_best of them, or none when it failed half-way. */
OXB_API size_t oxb_beam_search_count(const oxb_beam_search* search);
/* Text `index`, the best first: its tokens, with the prompt and the end, are the search's own until the next
 * run. */
OXB_API oxb_status oxb_beam_search_result(const oxb_beam_search* search, size_t index,
                                          const int32_t** tokens, size_t* count, float* score,
                                          oxb_error* error);

/* ---- Sound --------------------------------------------------------------------------------------- */

/* The log-mel spectrogram of a recording, as Whisper is fed it: samples of one channel, 16,000 a second, from -1 to
 * 1, become rows of `bins` bands with `frames` columns, of 160 samples each. For a model whose input has max_rows rows
 * and is so wide (oxb_model_input_info): bins = max_rows, frames = width. */
typedef struct oxb_log_mel oxb_log_mel;

OXB_API oxb_status oxb_log_mel_bytes(uint32_t bins, uint32_t frames, size_t* bytes,
                                     oxb_error* error);
/* Places it in memory the caller gives, aligned to 8. */
OXB_API oxb_status oxb_log_mel_create(uint32_t bins, uint32_t frames, void* memory, size_t bytes,
                                      oxb_log_mel** mel, oxb_error* error);
OXB_API void oxb_log_mel_destroy(oxb_log_mel* mel);
/* Takes samples as they come, and tells how many it took: fewer only when the recording is full. */
OXB_API oxb_status oxb_log_mel_push(oxb_log_mel* mel, const float* samples, size_t count,
                                    size_t* taken, oxb_error* error);
/* Fills up with silence, writes [bins][frames] and begins anew. `capacity` is the room at `features`, in numbers. */
OXB_API oxb_status oxb_log_mel_finish(oxb_log_mel* mel, float* features, size_t capacity,
                                      oxb_error* error);
/* Forgets what it took. */
OXB_API oxb_status oxb_log_mel_reset(oxb_log_mel* mel, oxb_error* error);

/* ---- Generator: text in, text out ---------------------------------------------------------------- */

/* Continues a session's stream with text: takes a prompt as text, tokens or messages of a chat, and gives what the
 * model writes, a piece for each token, when asked (oxb_generator_next) or by a callback (oxb_generator_run). Picks
 * tokens, knows what ends a text, cuts at stop texts, and holds half characters back. For models that generate, and for
 * those that translate once the text was encoded (oxb_session_encode).
 *
 *   oxb_generator_bytes(session, &options, &bytes, &error);        ask, give, use
 *   oxb_generator_create(session, &options, memory, bytes, &generator, &error);
 *   oxb_generator_add_text(generator, prompt, strlen(prompt), &error);
 *   do {
 *     oxb_generator_next(generator, &piece, &error);
 *     fwrite(piece.text, 1, piece.text_bytes, stdout);
 *   } while (piece.end == OXB_END_NONE);
 *
 * It allocates nothing. It serves one thread at a time, but for oxb_generator_cancel. The stream may lag behind: the
 * last token that was picked is fed with whatever follows it. A session that was reset, loaded or rewound beside its
 * generator is taken as it is then, and what the generator knew of the text before is dropped. */
typedef struct oxb_generator oxb_generator;

typedef struct oxb_generator_options {
  size_t size;
  /* How tokens are picked, read only while the generator is created; null: as the model's makers advise (see
   * oxb_sampler_options_advised), and the likeliest of a translator. */
  const oxb_sampler_options* sampling;
  /* A text ends before any of these, however it is cut into tokens. Terminated, not empty; copied. */
  const char* const* stop_texts;
  size_t stop_text_count;
  /* Tokens of a text at most; 0: no limit. */
  uint64_t max_tokens;
  /* Bytes of the longest word of a prompt, as of an encoder; 0: 4,096. */
  uint32_t max_word_bytes;
  /* Not 0: the tokens that the model expects before and behind a text are not added. */
  oxb_bool no_template;
  /* Not 0: the text of a special token in a prompt is text like any other, and a message that has one is refused. */
  oxb_bool literal_text;
  /* Turns of a chat that oxb_generator_undo can take back; each costs oxb_generator_state_bytes of memory. */
  uint32_t undo_turns;
} oxb_generator_options;

#define OXB_GENERATOR_OPTIONS_INIT \
  { sizeof(oxb_generator_options), NULL, NULL, 0, 0, 0, 0, 0, 0 }

/* How many bytes oxb_generator_create needs. Null options mean the defaults. */
OXB_API oxb_status oxb_generator_bytes(const oxb_session* session,
                                       const oxb_generator_options* options, size_t* bytes,
                                       oxb_error* error);
/* Places a generator in memory the caller gives, which needs no alignment. The session must outlive it. */
OXB_API oxb_status oxb_generator_create(oxb_session* session, const oxb_generator_options* options,
                                        void* memory, size_t bytes, oxb_generator** generator,
                                        oxb_error* error);
/* The memory is the caller's again. Null is allowed. */
OXB_API void oxb_generator_destroy(oxb_generator* generator);

/* Adds to the prompt. A text may come in any number of calls: it is over when something else is added or generated.
 * What is full is fed at once, so a prompt of any length needs no memory. */
OXB_API oxb_status oxb_generator_add_text(oxb_generator* generator, const char* text, size_t bytes,
                                          oxb_error* error);
OXB_API oxb_status oxb_generator_add_tokens(oxb_generator* generator, const int32_t* tokens,
                                            size_t count, oxb_error* error);

/* Who says a message of a chat. */
typedef int32_t oxb_role;
enum { OXB_ROLE_SYSTEM = 0, OXB_ROLE_USER = 1, OXB_ROLE_ASSISTANT = 2 };

/* Adds a message with what the model's own template puts around it. The system's, if any, comes first; the user's are
 * answered, by the model (oxb_generator_next) or by a message of the assistant, and the model goes on with the latter
 * when asked. What was said stays in the stream and is not fed again. For models that were trained to answer:
 * oxb_model_chat_before tells. */
OXB_API oxb_status oxb_generator_add_message(oxb_generator* generator, oxb_role role,
                                             const char* text, size_t bytes, oxb_error* error);
/* Takes back the last question and its answer: all since the answer before it, or since the stream began. As often as
 * undo_turns says. */
OXB_API oxb_status oxb_generator_undo(oxb_generator* generator, oxb_error* error);

/* Why a text ended. */
typedef int32_t oxb_end;
enum {
  /* It goes on. */
  OXB_END_NONE = 0,
  OXB_END_OF_TEXT = 1,
  OXB_END_MAX_TOKENS = 2,
  OXB_END_STOP_TEXT = 3,
  /* By oxb_generator_cancel or a callback. The next call goes on with the same text. */
  OXB_END_CANCELLED = 4,
  /* The stream has reached the length this model was made for. */
  OXB_END_STREAM_FULL = 5,
  /* The constraint is met and allows nothing more. */
  OXB_END_CONSTRAINT = 6
};

/* A token that was picked, and what can be shown now that it was: whole characters, often none. */
typedef struct oxb_piece {
  size_t size;
  /* Not terminated and never null; the generator's own until it is used again. */
  const char* text;
  size_t text_bytes;
  /* -1: none was picked, or one that ends the text. */
  int32_t token;
  /* Other than OXB_END_NONE this is the text's last piece. */
  oxb_end end;
} oxb_piece;

#define OXB_PIECE_INIT \
  { sizeof(oxb_piece), NULL, 0, -1, 0 }

/* Feeds what waits, picks a token and tells of it. After a text's last piece the next call begins another, which goes
 * on where the stream is; a stream with nothing in it begins with the model's start token, or with a line break. */
OXB_API oxb_status oxb_generator_next(oxb_generator* generator, oxb_piece* piece, oxb_error* error);

/* Hears of a piece. Not 0 cancels the text after it. */
typedef int32_t (*oxb_piece_callback)(void* context, const oxb_piece* piece);
/* oxb_generator_next until the text ends; `end` says why and may be null, as the callback may. */
OXB_API oxb_status oxb_generator_run(oxb_generator* generator, oxb_piece_callback callback,
                                     void* context, oxb_end* end, oxb_error* error);

/* From any thread: ends the text under way, or the prompt that is being fed, after the tokens that are being computed;
 * else the next one at once. The rest of a cancelled prompt is dropped. */
OXB_API oxb_status oxb_generator_cancel(oxb_generator* generator);

/* An empty stream, as after creation, with the random numbers from the beginning. */
OXB_API oxb_status oxb_generator_reset(oxb_generator* generator, oxb_error* error);

/* Where a generator is. */
typedef struct oxb_generation {
  size_t size;
  /* Of the text under way, or of the last: why it ended, its tokens without the one that ends it, and those that were
   * added before it. */
  oxb_end end;
  /* With choices: which of them the text is, when it is complete; else -1. */
  int32_t choice;
  uint64_t tokens;
  uint64_t prompt_tokens;
  /* What feeding the prompt and then each token took. */
  uint64_t prompt_nanoseconds;
  uint64_t token_nanoseconds;
  /* Tokens of the stream, with those that wait to be fed. */
  uint64_t position;
} oxb_generation;

#define OXB_GENERATION_INIT \
  { sizeof(oxb_generation), 0, -1, 0, 0, 0, 0, 0 }

OXB_API oxb_status oxb_generator_progress(const oxb_generator* generator, oxb_generation* progress,
                                          oxb_error* error);

/* What a text may be. Tokens that would make it anything else become impossible before one is picked; those that end a
 * text, until it may end. Holds for every text until it is changed. */
typedef int32_t oxb_constraint;
enum {
  OXB_CONSTRAINT_NONE = 0,
  /* One of some texts: see oxb_generator_set_choices. */
  OXB_CONSTRAINT_CHOICES = 1,
  /* A value in JSON, nested 64 deep at most; and the same, but an object. */
  OXB_CONSTRAINT_JSON = 2,
  OXB_CONSTRAINT_JSON_OBJECT = 3
};

/* Any but OXB_CONSTRAINT_CHOICES. */
OXB_API oxb_status oxb_generator_set_constraint(oxb_generator* generator, oxb_constraint constraint,
                                                oxb_error* error);
/* The texts are not empty, and stay where they are until another constraint is set. */
OXB_API oxb_status oxb_generator_set_choices(oxb_generator* generator, const char* const* texts,
                                             size_t count, oxb_error* error);

/* The stream and the text under way, random numbers included: a generator with the same options that loads it, in this
 * process or in another, goes on as this one would have. A prompt's text ends. */
OXB_API size_t oxb_generator_state_bytes(const oxb_generator* generator);
OXB_API oxb_status oxb_generator_save(oxb_generator* generator, void* buffer, size_t bytes,
                                      oxb_error* error);
OXB_API oxb_status oxb_generator_load(oxb_generator* generator, const void* buffer, size_t bytes,
                                      oxb_error* error);

#ifdef __cplusplus
}
#endif
#endif /* OXBOW_H_ */
