#pragma once

// What an op's inputs and outputs are: types, widths, rows. One constant beside each op says it, bind checks it with one
// call, and passes, pictures and tests read it too. What depends on an option a function of the op tells.
//
//   constexpr OpSignature kMaskRowsSignature = {
//       .inputs = {{.name = "x"},
//                  {.name = "mask", .role = Role::kIds, .types = kI32, .width = Width::exactly(1), .rows = Rows::of(0)}},
//       .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}}};

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/op.h"

namespace oxbow {

namespace schema {
enum class OpOptions : uint8_t;
}

/// What a tensor is to the op.
enum class Role : uint8_t {
  /// Rows of this run.
  kRows,
  /// Parameters of the model.
  kWeight,
  /// Ids, masks and flags.
  kIds,
  /// What is remembered from run to run.
  kState,
};

/// How elements may be stored, as bits. Row after row, unless it is told.
enum TypeSet : uint16_t {
  kF32 = 1,
  /// With any number of scales that divides the width.
  kI8 = 2,
  kI8OneScale = 4,
  /// Layout::kBlock8x4, one scale a row.
  kI8Blocks = 8,
  kI32 = 16,
  kF16 = 32,
  kBF16 = 64,
  /// Layout::kBlock8x32.
  kI4 = 128,
  /// Layout::kBlock8x16, one scale a row.
  kTernary = 256,
  /// Layout::kBlock8x32Min.
  kI4Min = 512,
  /// With any number of scales whose groups are multiples of 32 columns.
  kI4Rows = 1024,
};
/// What each of these bits means. The first of a type has its name.
struct Storage {
  TypeSet bit;
  const char* words;
  DataType type;
  Layout layout = Layout::kRowMajor;
  bool one_scale = false;
};
inline constexpr Storage kStorages[] = {
    {kF32, "F32", DataType::kF32},
    {kI8, "I8", DataType::kI8},
    {kI8OneScale, "I8 with one scale a row", DataType::kI8, Layout::kRowMajor, true},
    {kI8Blocks, "I8 in blocks with one scale a row", DataType::kI8, Layout::kBlock8x4, true},
    {kI32, "I32", DataType::kI32},
    {kF16, "F16", DataType::kF16},
    {kBF16, "BF16", DataType::kBF16},
    {kI4, "I4", DataType::kI4, Layout::kBlock8x32},
    {kTernary, "ternary", DataType::kTernary, Layout::kBlock8x16, true},
    {kI4Min, "I4Min", DataType::kI4Min, Layout::kBlock8x32Min},
    {kI4Rows, "I4Rows", DataType::kI4Rows}};
constexpr TypeSet operator|(TypeSet a, TypeSet b) {
  return static_cast<TypeSet>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// A step as functions of a signature see it, once its options are known to be good and its tensors to be as many as
/// they ask for.
class StepView {
 public:
  StepView(const BindContext& context, const size_t* starts) : context_(context), starts_(starts) {}

  const schema::Step& step() const { return context_.step(); }
  /// The first tensor of a line of inputs.
  Tensor input(size_t line) const { return context_.input(starts_[line]); }
  /// The tensor at a place in the step's list of inputs.
  Tensor at(size_t index) const { return context_.input(index); }
  /// The tensor at a place in the step's list of outputs.
  Tensor output(size_t index = 0) const { return context_.output(index); }

 private:
  const BindContext& context_;
  const size_t* starts_;
};
/// A number that options tell, and tensors that are there anyway.
using Told = uint64_t (*)(const StepView& view);

/// The elements of a row. Numbers of inputs count the signature's lines; of one that repeats, an output that repeats
/// as well means the input of its own number, others the first.
struct Width {
  enum Kind : uint8_t { kAny, kExactly, kTimes, kRowsOf, kTold };
  Kind kind = kAny;
  uint8_t input = 0;
  union {
    uint64_t factor = 1;
    /// Of kTold.
    Told number;
  };

  static constexpr Width any() { return {}; }
  static constexpr Width exactly(uint64_t width) { return {kExactly, 0, {.factor = width}}; }
  static constexpr Width told(Told number) { return {kTold, 0, {.number = number}}; }
  /// That of an input, or a multiple of it.
  static constexpr Width of(uint8_t input) { return {kTimes, input, {.factor = 1}}; }
  static constexpr Width times(uint8_t factor, uint8_t input) {
    return {kTimes, input, {.factor = factor}};
  }
  /// As many elements as an input has rows.
  static constexpr Width rows_of(uint8_t input) { return {kRowsOf, input, {.factor = 1}}; }
};

struct Rows {
  enum Kind : uint8_t {
    kAny,
    kExactly,
    kFixed,
    kTold,
    kSame,
    kSameOrOne,
    kRoom,
    kRoomFor,
    kCounted,
    kCountedOrFixed,
    kRing,
    kPinnedRing,
    kSameRing,
    kAnywhere,
  };
  Kind kind = kAny;
  uint8_t input = 0;
  uint32_t rows = 0;
  Told number = nullptr;

  static constexpr Rows any() { return {}; }
  static constexpr Rows one() { return exactly(1); }
  static constexpr Rows exactly(uint32_t rows) { return {kExactly, 0, rows}; }
  static constexpr Rows told(Told number) { return {kTold, 0, 0, number}; }
  /// The same number in every run.
  static constexpr Rows fixed() { return {kFixed}; }
  /// Those of an input, in every run and not only at most.
  static constexpr Rows of(uint8_t input) { return {kSame, input}; }
  /// The same, or one row for all of them.
  static constexpr Rows of_or_one(uint8_t input) { return {kSameOrOne, input}; }
  /// As many as come, and there is room for them.
  static constexpr Rows with_room() { return {kRoom}; }
  /// As many as the op asks for, and there is room for them.
  static constexpr Rows with_room_for(Told number) { return {kRoomFor, 0, 0, number}; }
  /// The op counts them: a row symbol of its own, other than that of this input, and room for as many as the input has,
  /// or for so many if that is told.
  static constexpr Rows counted(uint8_t input, Told most = nullptr) {
    return {kCounted, input, 0, most};
  }
  /// A row symbol of its own, or the same number in every run.
  static constexpr Rows counted_or_fixed(uint8_t input) { return {kCountedOrFixed, input}; }
  /// All rows of a ring, of which there are so many if that is told. The others are in none.
  static constexpr Rows ring(Told number = nullptr) { return {kRing, 0, 0, number}; }
  /// The same, and some may be pinned.
  static constexpr Rows pinned_ring() { return {kPinnedRing}; }
  /// Those of the ring that an input is in, as many of them pinned.
  static constexpr Rows same_ring(uint8_t input) { return {kSameRing, input}; }
  /// Any, in a ring or not.
  static constexpr Rows anywhere() { return {kAnywhere}; }
  constexpr bool in_ring() const {
    return kind == kRing || kind == kPinnedRing || kind == kSameRing;
  }
};

/// One input or output. What repeats or may be missing is the last of its list, but for what the options tell.
struct Place {
  const char* name = nullptr;
  Role role = Role::kRows;
  TypeSet types = kF32;
  /// Unless 0: how many scales a row has if it is int8.
  uint32_t scales = 0;
  Width width = {};
  Rows rows = {};
  /// Unless negative: the type and scales of this input.
  int8_t type_of = -1;
  /// Output, unless negative: a state that is updated in place. It is the tensor of this line of inputs, and no other
  /// input is.
  int8_t state_of = -1;
  /// Rows may be turned (Tensor::hadamard): an input may be so, an output is made so if that is wanted.
  bool turns = false;
  /// Output: may also be the caller's memory (BindContext::output_or_caller).
  bool to_caller = false;
  uint8_t least = 1;
  uint8_t most = 1;
  /// Not null: how many the options of a step ask for.
  size_t (*count)(const schema::Step& step) = nullptr;
  /// Not null: what each of them is, in place of what is said here. Numbers of inputs are places in the step's list.
  Place (*each)(const StepView& view, size_t index) = nullptr;

  constexpr bool repeats() const { return most > 1; }
  /// How many there are is told by the step alone.
  constexpr bool varies() const { return least != most; }
};

/// Lines of inputs, or of outputs.
inline constexpr size_t kMaxPlaces = 12;

struct OpSignature {
  /// NONE: the step needs none.
  schema::OpOptions options = {};
  /// A step without options means their default values.
  bool may_lack_options = false;
  /// Not null: refuses options that make no sense, before functions of the signature read them.
  Status (*check_options)(BindContext& context) = nullptr;
  /// Row r of the output comes from row r of the inputs and from weights alone, in the same bits whatever other rows
  /// there are: rows of several streams may be given at once.
  bool by_row = false;
  std::initializer_list<Place> inputs = {};
  std::initializer_list<Place> outputs = {};

  constexpr const Place& input(size_t line) const { return inputs.begin()[line]; }
  constexpr const Place& output(size_t line = 0) const { return outputs.begin()[line]; }

  /// Input i belongs to output i: the step is several side by side.
  constexpr bool is_paired() const {
    return inputs.size() == 1 && input(0).repeats() && outputs.size() == 1 && output().repeats();
  }
};

/// Refuses a step whose options or tensors are not those of the signature. Then options are there, and so many inputs
/// and outputs as the options ask for.
Status check_signature(BindContext& context, const OpSignature& signature);

}  // namespace oxbow
