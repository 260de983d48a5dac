/* A plugin for qemu's user emulation that counts executed instructions between two markers.
 *
 *   qemu-aarch64 -plugin libcount.so,out=FILE PROGRAM
 *
 * The markers are the functions oxbow_count_begin and oxbow_count_end of the program (markers.h). For each pair passed,
 * FILE gets a line
 *
 *   count INSTRUCTIONS
 *
 * and one line for each block of code that ran in between, a block being what qemu translates at once: straight code up
 * to a branch or the end of a page.
 *
 *   block ADDRESS INSTRUCTIONS_IN_IT EXECUTIONS FUNCTION
 *
 * Everything between the markers is counted, whichever library it is in; the function is known in the main program
 * only and "-" elsewhere. Counts are exact for one thread, and the same in every run.
 *
 * The header of qemu's plugin interface is not packaged, so what is used of its version 1 is declared here. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* tb);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* tb, size_t index);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* insn);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t id,
                                                        struct qemu_plugin_tb* tb));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* tb, enum qemu_plugin_op op,
                                              void* counter, uint64_t addend);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* insn,
                                            void (*call)(unsigned vcpu, void* data),
                                            enum qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
                                    void (*call)(qemu_plugin_id_t id, void* data), void* data);

EXPORT int qemu_plugin_version = 1;

/* Lives until the end: translated code holds its address. */
struct block {
  uint64_t address;
  size_t instructions;
  uint64_t executions;
  uint64_t executions_at_begin;
  char* function;
  struct block* next;
};

static struct block* blocks;
static FILE* out;
static bool counting;

static struct block* find_block(uint64_t address, size_t instructions, const char* function) {
  struct block* b;
  for (b = blocks; b != NULL; b = b->next) {
    if (b->address == address && b->instructions == instructions) return b;
  }
  b = calloc(1, sizeof(*b));
  if (b == NULL) abort();
  b->address = address;
  b->instructions = instructions;
  b->function = strdup(function != NULL && *function != '\0' ? function : "-");
  b->next = blocks;
  blocks = b;
  return b;
}

static void begin(unsigned vcpu, void* data) {
  (void)vcpu, (void)data;
  for (struct block* b = blocks; b != NULL; b = b->next) b->executions_at_begin = b->executions;
  counting = true;
}

static void end(unsigned vcpu, void* data) {
  (void)vcpu, (void)data;
  if (!counting) return;
  counting = false;
  uint64_t total = 0;
  for (const struct block* b = blocks; b != NULL; b = b->next) {
    total += (b->executions - b->executions_at_begin) * b->instructions;
  }
  fprintf(out, "count %" PRIu64 "\n", total);
  for (const struct block* b = blocks; b != NULL; b = b->next) {
    const uint64_t executions = b->executions - b->executions_at_begin;
    if (executions == 0) continue;
    fprintf(out, "block %" PRIx64 " %zu %" PRIu64 " %s\n", b->address, b->instructions, executions,
            b->function);
  }
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  struct qemu_plugin_insn* first = qemu_plugin_tb_get_insn(tb, 0);
  const char* function = qemu_plugin_insn_symbol(first);
  struct block* b = find_block(qemu_plugin_tb_vaddr(tb), qemu_plugin_tb_n_insns(tb), function);
  qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->executions, 1);
  /* A call is the end of a block, so a function that is called begins one. */
  if (strcmp(b->function, "oxbow_count_begin") == 0) {
    qemu_plugin_register_vcpu_insn_exec_cb(first, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
  } else if (strcmp(b->function, "oxbow_count_end") == 0) {
    qemu_plugin_register_vcpu_insn_exec_cb(first, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
  }
}

static void finish(qemu_plugin_id_t id, void* data) {
  (void)id, (void)data;
  fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info* info, int argc,
                               char** argv) {
  (void)info;
  if (argc != 1 || strncmp(argv[0], "out=", 4) != 0) {
    fprintf(stderr, "count_plugin: expected out=FILE\n");
    return 1;
  }
  out = fopen(argv[0] + 4, "w");
  if (out == NULL) {
    perror(argv[0] + 4);
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, finish, NULL);
  return 0;
}
