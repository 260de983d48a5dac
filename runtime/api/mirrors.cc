// Numbers that two of the file format, the runtime and the C interface each have for themselves, so that they can be cast:
// compared when this is compiled.

#include <cstddef>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/device/backends.h"
#include "runtime/generate/beam_search.h"
#include "runtime/session/pooling.h"
#include "runtime/session/session.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

constexpr bool same(auto a, auto b) { return static_cast<int64_t>(a) == static_cast<int64_t>(b); }

static_assert(sizeof(oxb_error) == sizeof(Error));
static_assert(offsetof(oxb_error, code) == offsetof(Error, code));
static_assert(offsetof(oxb_error, step) == offsetof(Error, step));
static_assert(offsetof(oxb_error, op) == offsetof(Error, op));
static_assert(offsetof(oxb_error, text) == offsetof(Error, text));

static_assert(same(DataType::kF32, schema::DataType::F32));
static_assert(same(DataType::kI8, schema::DataType::I8));
static_assert(same(DataType::kI32, schema::DataType::I32));
static_assert(same(OXB_TYPE_F32, schema::DataType::F32));
static_assert(same(OXB_TYPE_I32, schema::DataType::I32));
static_assert(same(schema::DataType::MAX, schema::DataType::I32), "a type is missing above");

static_assert(same(Layout::kRowMajor, schema::Layout::RowMajor));
static_assert(same(Layout::kBlock8x4, schema::Layout::Block8x4));
static_assert(same(schema::Layout::MAX, schema::Layout::Block8x4), "a layout is missing above");

static_assert(same(Status::kOk, OXB_OK));
static_assert(same(Status::kInvalidArgument, OXB_INVALID_ARGUMENT));
static_assert(same(Status::kArenaTooSmall, OXB_ARENA_TOO_SMALL));
static_assert(same(Status::kBufferTooSmall, OXB_BUFFER_TOO_SMALL));
static_assert(same(Status::kNeedsReset, OXB_NEEDS_RESET));
static_assert(same(Status::kStreamFull, OXB_STREAM_FULL));
static_assert(same(Status::kCancelled, OXB_CANCELLED));
static_assert(same(Status::kFileUnreadable, OXB_FILE_UNREADABLE));
static_assert(same(Status::kFileCorrupt, OXB_FILE_CORRUPT));
static_assert(same(Status::kFileUnsupported, OXB_FILE_UNSUPPORTED));
static_assert(same(Status::kStateCorrupt, OXB_STATE_CORRUPT));
static_assert(same(Status::kStateMismatch, OXB_STATE_MISMATCH));
static_assert(same(Status::kOutOfMemory, OXB_OUT_OF_MEMORY));
static_assert(same(Status::kNoDevice, OXB_NO_DEVICE));
static_assert(same(Status::kDeviceLost, OXB_DEVICE_LOST));
static_assert(same(Status::kInternal, OXB_INTERNAL));

static_assert(same(schema::Task::Generate, OXB_TASK_GENERATE));
static_assert(same(schema::Task::Translate, OXB_TASK_TRANSLATE));
static_assert(same(schema::Task::Classify, OXB_TASK_CLASSIFY));
static_assert(same(schema::Task::FillMask, OXB_TASK_FILL_MASK));
static_assert(same(schema::Task::Encode, OXB_TASK_ENCODE));
static_assert(same(schema::Task::MAX, OXB_TASK_ENCODE), "a task is missing above");

static_assert(same(schema::TokenizerKind::None, OXB_TOKENIZER_NONE));
static_assert(same(schema::TokenizerKind::Byte, OXB_TOKENIZER_BYTE));
static_assert(same(schema::TokenizerKind::Char, OXB_TOKENIZER_CHAR));
static_assert(same(schema::TokenizerKind::ByteBpe, OXB_TOKENIZER_BYTE_BPE));
static_assert(same(schema::TokenizerKind::WordPiece, OXB_TOKENIZER_WORDPIECE));
static_assert(same(schema::TokenizerKind::Unigram, OXB_TOKENIZER_UNIGRAM));
static_assert(same(schema::TokenizerKind::Bpe, OXB_TOKENIZER_BPE));
static_assert(same(schema::TokenizerKind::MAX, OXB_TOKENIZER_BPE), "a kind is missing above");

static_assert(same(BeamStop::kUnlikelyBetter, OXB_BEAM_STOP_UNLIKELY_BETTER));
static_assert(same(BeamStop::kEnoughTexts, OXB_BEAM_STOP_ENOUGH_TEXTS));
static_assert(same(BeamStop::kNoneBetter, OXB_BEAM_STOP_NONE_BETTER));

static_assert(same(Pooling::kMean, OXB_POOLING_MEAN));
static_assert(same(Pooling::kFirst, OXB_POOLING_FIRST));
static_assert(same(Pooling::kLast, OXB_POOLING_LAST));
static_assert(same(Pooling::kMax, OXB_POOLING_MAX));

static_assert(same(Log::kInfo, OXB_LOG_INFO));
static_assert(same(Log::kWarning, OXB_LOG_WARNING));

#define OXB_PROCESSOR(NAME, number, name, constant) \
  static_assert(same(Backend::constant, OXB_BACKEND_##NAME));
#define OXB_LIBRARY(NAME, number, name, constant) OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_DEVICE(NAME, number, name, constant, driver, context) \
  OXB_PROCESSOR(NAME, number, name, constant)
#include "runtime/device/backends.inc"

}  // namespace
}  // namespace oxbow
