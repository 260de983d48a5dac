#pragma once

// What passes, reports and pictures know about an op, besides its signature. Host only: the library that runs models
// contains none of it. Each op tells it in ops/<op>/traits.cc, which the build finds by its name; users ask op_traits()
// and name no op.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "ops/common/signature.h"
#include "schema/model_generated.h"

namespace oxbow {

/// What a step is about, and the colour of all it makes in pictures.
enum class OpCategory : uint8_t { kMatrix, kAttention, kNorm, kMemory, kEmbedding, kOther };

/// A part of a step that factors can be put into.
struct ScaledInput {
  size_t input;
  enum Part : uint8_t {
    /// A weight: its columns, or its rows.
    kColumns,
    kRows,
    /// An activation, where it is made.
    kBefore,
  } part;
};

/// Inputs whose rows are multiplied with each other, head by head.
struct HeadProducts {
  /// Those of the query, then of all keys.
  std::vector<size_t> inputs;
  uint32_t heads;
  /// The query meets nothing else.
  bool alone;
  /// A row added to all keys changes nothing.
  bool same_for_all;
};

struct OpTraits {
  schema::OpCode code;
  const OpSignature* signature;
  OpCategory category = OpCategory::kOther;

  // When numbers become int8. A weight that the signature allows as I8 becomes so, as does an output whose readers all
  // want it.

  /// Unless negative: the input that the weight multiplies. Of an int8 weight it is int8 with one scale a row.
  int8_t multiplied_input = -1;
  /// Unless negative: an input of which eight bits are too few, and so of the table it is looked up in.
  int8_t exact_input = -1;
  /// States that the step reads or writes may be int8; all steps that touch a state must agree. What is read and written
  /// again and again, such as a recurrent matrix, must not.
  bool i8_states = false;
  /// How many scales a row an input has when memories are int8, because it lies beside them or goes into one; 0: it does
  /// neither.
  uint32_t (*remembered_scales)(const schema::ModelT& model, const schema::StepT& step,
                                size_t input) = nullptr;
  /// Makes int8 of float rows by itself, so that for it alone nobody else needs to.
  bool quantizes_rows = false;
  /// The scale of the output before anything is absorbed, from calibration. Null: it has no use for one.
  void (*set_output_scale)(schema::StepT& step, float scale) = nullptr;

  /// Takes `next`, which alone reads the output of `step`, as its input number `input`, into `step`, whose output becomes
  /// that of `next`. False: it cannot, and nothing has changed.
  bool (*absorb)(const schema::ModelT& model, schema::StepT& step, const schema::StepT& next,
                 size_t input) = nullptr;

  // What int8 loses less by (converter/passes/transform.h).

  /// Ways to multiply the columns of the only output by factors: in each, all of these inputs are. Null: there is none.
  std::vector<std::vector<ScaledInput>> (*scaled_by)(const schema::StepT& step) = nullptr;
  /// Takes away what is added to all rows of the output. False: there is none, or it cannot be, and nothing has changed.
  bool (*drop_bias)(schema::StepT& step) = nullptr;
  /// Null: there are none.
  HeadProducts (*head_products)(const schema::StepT& step) = nullptr;
  /// Divides them all.
  void (*divide_products)(schema::StepT& step, float divisor) = nullptr;
  /// Each output holds the rows of the input beside it.
  bool stores_rows = false;
  /// The output's heads can be turned as they are written.
  bool turns_heads = false;

  /// Multiply-accumulates for one row of output, memories full.
  double (*macs)(const schema::ModelT& model, const schema::EntryPointT& entry,
                 const schema::StepT& step) = nullptr;
  /// Of an op that counts its rows: how many there are for each token, on average. Null: one.
  double (*rows_per_token)(const schema::StepT& step) = nullptr;

  /// A run is refused unless its first input has all its rows.
  bool needs_all_rows = false;

  /// The options of a step in words. Null: there is nothing to tell.
  std::string (*options)(const schema::StepT& step) = nullptr;
  /// Takes rows of a matrix whose inputs are turned in blocks of so many, and gives them as they were. Null: it cannot.
  void (*turn_back)(schema::StepT& step, uint32_t block) = nullptr;
  /// Groups of inputs that may be rings of four bits (DataType::kI4Rows), all of a group or none. Null: none may.
  std::vector<std::vector<size_t>> (*i4_rings)(const schema::StepT& step) = nullptr;
};

/// Throws std::logic_error when the op has none.
const OpTraits& op_traits(schema::OpCode code);

/// The input that is a matrix or table which may have fewer bits than float, and how it may be stored.
struct WeightInput {
  size_t input = 0;
  TypeSet types = {};
};
std::optional<WeightInput> weight_input(const OpTraits& traits);

/// Whether the op can write its rows as float or as int8, whatever it reads.
bool may_write_i8(const OpTraits& traits);

/// Whether the op does nothing but make int8 rows of float rows.
bool copies_as_i8(const OpTraits& traits);

/// Those that are not empty, with commas.
std::string in_words(std::initializer_list<std::string> words);
/// "3 heads", with any word.
std::string counted(uint64_t number, const char* word);
std::string in_lower_case(std::string text);

}  // namespace oxbow
