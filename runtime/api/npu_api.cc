// The C interface of NPUs: argument checks and conversions, no logic of its own.

#include <cstdio>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/device/backends.h"
#include "runtime/device/npu/device.h"

namespace {

using oxbow::missing;
using oxbow::NpuHandle;
using oxbow::outer;
using oxbow::read_options;
using oxbow::Status;
using oxbow::words;
using oxbow::write_info;

#if OXB_BUILD_NPU

Status open(const oxb_npu_options& options, oxb_npu** npu, oxbow::Error* error) {
  if (options.key_count != 0 && (options.keys == nullptr || options.values == nullptr)) {
    return oxbow::fail(error, Status::kInvalidArgument, "the keys or values of the NPU are null");
  }
  for (size_t i = 0; i < options.key_count; ++i) {
    if (options.keys[i] == nullptr || options.values[i] == nullptr) {
      return oxbow::fail(error, Status::kInvalidArgument, "setting %zu of the NPU is null", i);
    }
  }
  NpuHandle* handle = nullptr;
  OXB_TRY(NpuHandle::open({options.plugin, options.linked, options.keys, options.values,
                           options.key_count, options.log, options.log_context, options.driver},
                          &handle, error));
  *npu = reinterpret_cast<oxb_npu*>(handle);
  return Status::kOk;
}

void close(oxb_npu* npu) { reinterpret_cast<NpuHandle*>(npu)->release(); }

bool report_of(const oxbow::Session& session, oxb_npu_report* report) {
  const oxbow::NpuDevice* device = oxbow::npu_device(session);
  if (device == nullptr) return false;
  const oxbow::NpuCounts& counts = device->counts();
  report->layers = device->layer_count();
  report->device_bytes = device->needs().device_bytes;
  report->fast_bytes = device->needs().fast_bytes;
  report->host_bytes = device->host_bytes();
  report->runs = counts.runs;
  report->rows = counts.rows;
  report->cpu_runs = counts.cpu_runs;
  report->nanoseconds = counts.nanoseconds;
  report->compared = counts.compared;
  report->different = counts.different;
  report->largest_difference = counts.largest_difference;
  report->largest_step = counts.largest_step;
  report->failed = device->failure() != nullptr;
  if (report->failed != 0) {
    std::snprintf(report->failure, sizeof(report->failure), "%s", device->failure());
  }
  return true;
}

#else

Status open(const oxb_npu_options&, oxb_npu**, oxbow::Error* error) {
  return oxbow::fail(error, Status::kNoDevice,
                     "this library was built without the backend: configure with "
                     "OXBOW_WITH_NPU=ON");
}
void close(oxb_npu*) {}
bool report_of(const oxbow::Session&, oxb_npu_report*) { return false; }

#endif

}  // namespace

oxb_status oxb_npu_open(const oxb_npu_options* given, oxb_npu** npu, oxb_error* error) {
  if (npu == nullptr) return missing(error, "npu");
  *npu = nullptr;
  if (given == nullptr) return missing(error, "options");
  oxb_npu_options options = OXB_NPU_OPTIONS_INIT;
  const Status status = read_options("NPU options", given, &options, words(error));
  return outer(status == Status::kOk ? open(options, npu, words(error)) : status);
}

void oxb_npu_close(oxb_npu* npu) {
  if (npu != nullptr) close(npu);
}

oxb_status oxb_session_npu_report(const oxb_session* session, oxb_npu_report* given,
                                  oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (given == nullptr) return missing(error, "report");
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  if (!report_of(*oxbow::inner(session), &report)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the session has no NPU: its backend is another"));
  }
  return outer(write_info("NPU report", report, given, words(error)));
}
