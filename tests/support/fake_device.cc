#include "tests/support/fake_device.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace oxbow::testing {
namespace {

constexpr std::byte kSpoiled{0xee};

struct alignas(kTensorAlignment) Line {
  std::byte bytes[kTensorAlignment];
};

/// Aligned bytes.
class Memory {
 public:
  void resize(size_t bytes) { lines_.resize(bytes / sizeof(Line) + 1); }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  std::vector<Line> lines_;
};

struct Step {
  bool claimed = false;
  RunFunction run = nullptr;
  std::unique_ptr<Line[]> params;
  std::vector<TensorPlace> inputs, outputs;
};

struct Fake {
  const Model* model = nullptr;
  std::vector<Step> steps;
  DeviceSizes sizes;
  Memory host_states, host_activations, states, activations, scratch;
  size_t scratch_bytes = 0;
  size_t bytes = 0;
  bool lost = false;
};

Fake& of(void* device) { return *static_cast<Fake*>(device); }
const Fake& of(const void* device) { return *static_cast<const Fake*>(device); }

Status note(const Fake* device, const std::string& call, Error* error) {
  FakeDevices& fake = fake_devices();
  fake.calls.push_back(call);
  if (device != nullptr && device->lost) {
    return fail(error, Status::kDeviceLost, "the fake device was lost before");
  }
  if (fake.fail_at == 0 || --fake.fail_at != 0) return Status::kOk;
  return fail(error, fake.fail_with, "told to fail at %s", call.c_str());
}

/// Shows an op its tensors where the device has them.
class DeviceBinder final : public BindContext {
 public:
  DeviceBinder(Fake& device, const DeviceStep& from, Step& to)
      : device_(device), from_(from), to_(to) {}

  const schema::Step& step() const override { return from_.context.step(); }
  size_t input_count() const override { return from_.context.input_count(); }
  size_t output_count() const override { return from_.context.output_count(); }
  Tensor input(size_t index) const override {
    return moved(from_.context.input(index), from_.places.place(false, index));
  }
  Tensor output(size_t index) const override {
    return moved(from_.context.output(index), from_.places.place(true, index));
  }
  Tensor output_or_caller(size_t index) const override {
    return moved(from_.context.output_or_caller(index), from_.places.place(true, index));
  }
  bool may_set_symbol(int32_t symbol) const override {
    return from_.context.may_set_symbol(symbol);
  }
  uint32_t ring_capacity(int32_t ring) const override { return from_.context.ring_capacity(ring); }
  uint32_t symbol_max(int32_t symbol) const override { return from_.context.symbol_max(symbol); }
  size_t threads() const override { return 1; }
  Backend backend() const override { return Backend::kCpu; }
  bool placing() const override { return from_.context.placing(); }
  void own(OwnedObject& owned) override { from_.context.own(owned); }
  const void* lender_params() const override { return nullptr; }
  void request_scratch(size_t bytes) override {
    device_.scratch_bytes = std::max(device_.scratch_bytes, bytes);
  }
  Status fail(const char* format, ...) override { return from_.context.fail("%s", format); }

 protected:
  void* allocate_params(size_t) override {
    to_.params = std::make_unique<Line[]>(kMaxParamsBytes / sizeof(Line));
    return to_.params.get();
  }

 private:
  Tensor moved(Tensor tensor, const TensorPlace& place) const {
    std::byte* base = nullptr;
    switch (place.region) {
      case TensorRegion::kWeights:
      case TensorRegion::kOutput:
        return tensor;
      case TensorRegion::kStates:
        base = device_.states.data() + device_.sizes.state_header;
        break;
      case TensorRegion::kActivations:
        base = device_.activations.data();
        break;
    }
    if (tensor.data == nullptr) return tensor;
    std::byte* data = base + place.offset;
    if (tensor.scales != nullptr) {
      const auto behind = reinterpret_cast<std::byte*>(tensor.scales) - tensor.data;
      tensor.scales = reinterpret_cast<float*>(data + behind);
    }
    tensor.data = data;
    return tensor;
  }

  Fake& device_;
  const DeviceStep& from_;
  Step& to_;
};

void copy(Fake& device, const TensorPlace& place, bool to_host) {
  const bool state = place.region == TensorRegion::kStates;
  if (!state && place.region != TensorRegion::kActivations) return;
  const size_t offset = place.offset + (state ? device.sizes.state_header : 0);
  std::byte* host = (state ? device.host_states : device.host_activations).data() + offset;
  std::byte* own = (state ? device.states : device.activations).data() + offset;
  std::memcpy(to_host ? host : own, to_host ? own : host, place.bytes);
}

Status open(const Model& model, const DeviceOptions&, void** device, Error* error) {
  OXB_TRY(note(nullptr, "open", error));
  auto* made = new Fake();
  made->model = &model;
  ++fake_devices().open;
  *device = made;
  return Status::kOk;
}

void close(void* device) {
  fake_devices().calls.push_back("close");
  --fake_devices().open;
  delete &of(device);
}

Status bind(void* device, const DeviceStep& from, bool* claimed, Error* error) {
  Fake& to = of(device);
  ++fake_devices().binds;
  Step step;
  for (size_t i = 0; i < from.context.input_count(); ++i) {
    step.inputs.push_back(from.places.place(false, i));
  }
  for (size_t i = 0; i < from.context.output_count(); ++i) {
    step.outputs.push_back(from.places.place(true, i));
  }
  step.claimed = fake_devices().claims(static_cast<uint32_t>(to.steps.size()));
  if (step.claimed) {
    DeviceBinder binder(to, from, step);
    OXB_TRY(from.op.bind(binder, &step.run));
  }
  *claimed = step.claimed;
  to.steps.push_back(std::move(step));
  (void)error;
  return Status::kOk;
}

Status count(void* device, const DeviceSizes& sizes, size_t* bytes, Error* error) {
  OXB_TRY(note(&of(device), "count", error));
  *bytes = 2 * (sizes.states + sizes.activations) + of(device).scratch_bytes;
  return Status::kOk;
}

Status place(void* device, const DeviceSizes& sizes, DeviceAddresses* addresses, Error* error) {
  Fake& to = of(device);
  OXB_TRY(note(&to, "place", error));
  OXB_TRY(count(device, sizes, &to.bytes, error));
  fake_devices().calls.pop_back();
  to.sizes = sizes;
  for (Memory* memory : {&to.host_states, &to.states}) memory->resize(sizes.states);
  for (Memory* memory : {&to.host_activations, &to.activations}) memory->resize(sizes.activations);
  to.scratch.resize(to.scratch_bytes);
  to.steps.clear();
  *addresses = {to.host_states.data(), to.host_activations.data()};
  return Status::kOk;
}

Status record(void* device, Error* error) { return note(&of(device), "record", error); }

uint32_t entry_end(const Model& model, uint32_t entry) {
  uint32_t step = 0;
  for (uint32_t e = 0; e <= entry; ++e) step += model.entry(e).steps()->size();
  return step;
}

/// What the steps on the CPU right before the range wrote, and the inputs before the first.
void collect(Fake& device, const DeviceRange& range, uint32_t begin) {
  if (range.first_step == begin) {
    const schema::EntryPoint& entry = device.model->entry(range.entry);
    const size_t count = 1 + (entry.inputs() == nullptr ? 0 : entry.inputs()->size());
    for (uint32_t i = 0; i < count; ++i) {
      const schema::Tensor& tensor = *device.model->graph->tensors()->Get(
          i == 0 ? entry.tokens() : entry.inputs()->Get(i - 1));
      copy(device, {TensorRegion::kActivations, tensor.offset(), tensor.bytes()}, false);
    }
  }
  for (uint32_t i = range.first_step; i > begin && !device.steps[i - 1].claimed; --i) {
    for (const TensorPlace& written : device.steps[i - 1].outputs) copy(device, written, false);
  }
}

void spoil(Fake& device) {
  std::fill_n(device.host_states.data() + device.sizes.state_header,
              device.sizes.states - device.sizes.state_header, kSpoiled);
  std::fill_n(device.host_activations.data(), device.sizes.activations, kSpoiled);
}

Status run(void* device, const DeviceRange& range, RunContext& context) {
  Fake& on = of(device);
  const std::string what =
      "run " + std::to_string(range.first_step) + "-" + std::to_string(range.end_step);
  OXB_TRY(note(&on, what, context.error));
  const uint32_t begin = range.entry == 0 ? 0 : entry_end(*on.model, range.entry - 1);
  const uint32_t end = entry_end(*on.model, range.entry);
  collect(on, range, begin);
  spoil(on);
  RunContext own = context;
  own.scratch = on.scratch.data();
  own.pool = nullptr;
  for (uint32_t i = range.first_step; i < range.end_step; ++i) {
    OXB_TRY(on.steps[i].run(own, on.steps[i].params.get()));
    if (range.timed != nullptr) range.timed(range.timed_context, i, 1);
  }
  for (uint32_t i = range.end_step; i < end && !on.steps[i].claimed; ++i) {
    for (const auto* list : {&on.steps[i].inputs, &on.steps[i].outputs}) {
      for (const TensorPlace& touched : *list) copy(on, touched, true);
    }
  }
  return Status::kOk;
}

Status to_host(void* device, Error* error) {
  Fake& from = of(device);
  OXB_TRY(note(&from, "to_host", error));
  copy(from, {TensorRegion::kStates, 0, from.sizes.states - from.sizes.state_header}, true);
  copy(from, {TensorRegion::kActivations, 0, from.sizes.activations}, true);
  return Status::kOk;
}

Status to_device(void* device, Error* error) {
  Fake& to = of(device);
  OXB_TRY(note(&to, "to_device", error));
  copy(to, {TensorRegion::kStates, 0, to.sizes.states - to.sizes.state_header}, false);
  return Status::kOk;
}

void lose(void* device) {
  fake_devices().calls.push_back("lose");
  of(device).lost = true;
}
bool is_lost(const void* device) { return of(device).lost; }
size_t bytes(const void* device) { return of(device).bytes; }

}  // namespace

FakeDevices& fake_devices() {
  static FakeDevices devices;
  return devices;
}

const DeviceDriver kFakeDevice = {
    "fake",  open,      close, bind,    count, place,   record,  run,
    to_host, to_device, lose,  is_lost, bytes, nullptr, nullptr,
};

}  // namespace oxbow::testing
