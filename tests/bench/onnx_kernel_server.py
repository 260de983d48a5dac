"""ONNX Runtime's int8 matrix product for compare_kernels; commands and answers as in kernel_server.cc.

    onnx u8u8|u8s8 DEPTH CHANNELS ROWS SECONDS

u8s8 is its fast path, whose sums of pairs saturate on processors without VNNI. What a run costs that does nothing is
measured too and taken off, since it is Python's and the session's, not the product's.
"""

import json
import sys
import time

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Session:
    def __init__(self, graph, inputs):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        self._kept = [onnxruntime.OrtValue.ortvalue_from_numpy(value, "cpu") for value in inputs.values()]
        for name, value in zip(inputs, self._kept):
            binding.bind_ortvalue_input(name, value)
        output = session.get_outputs()[0]
        kind = {"tensor(int32)": "i4", "tensor(float)": "f4"}[output.type]
        self._output = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(output.shape, kind), "cpu")
        binding.bind_ortvalue_output(output.name, self._output)
        self.run = lambda: session.run_with_iobinding(binding)


def product(kernel, depth, channels, rows):
    random = numpy.random.default_rng(1)
    if kernel == "u8u8":
        weight = random.integers(0, 256, (depth, channels), dtype="u1")
    else:
        weight = random.integers(-127, 128, (depth, channels), dtype="i1")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "weight"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, channels])],
        [numpy_helper.from_array(weight, "weight")])
    return Session(graph, {"x": random.integers(0, 256, (rows, depth), dtype="u1")})


def nothing():
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "nothing",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    return Session(graph, {"x": numpy.zeros(1, "f4")})


def measure(run, batch, seconds):
    """Runs, seconds, processor seconds, and the seconds of a run in the fastest batch."""
    run()
    runs, fastest = 0, float("inf")
    processor = time.process_time()
    start = now = time.perf_counter()
    while now - start < seconds:
        for _ in range(batch):
            run()
        runs += batch
        then, now = now, time.perf_counter()
        fastest = min(fastest, now - then)
    return runs, now - start, time.process_time() - processor, fastest / batch


def main():
    print(json.dumps({"name": "ONNX Runtime", "version": onnxruntime.__version__}), flush=True)
    products = {}
    empty = nothing()
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        _, kernel, *numbers = line.split()
        shape = tuple(int(number) for number in numbers[:3])
        amount = shape[0] * shape[1] * shape[2]
        batch = int(1 + 5e6 / amount)
        if (kernel, shape) not in products:
            products[kernel, shape] = product(kernel, *shape)
        idle_runs, _, idle_processor, idle = measure(empty.run, 20, 0.005)
        runs, seconds, processor, fastest = measure(products[kernel, shape].run, batch, float(numbers[3]))
        processor = max(processor - runs * idle_processor / idle_runs, 1e-9)
        print(json.dumps({"runs": runs, "amount": amount, "seconds": max(seconds - runs * idle, 1e-9),
                          "processor": processor, "fastest": max(fastest - idle, 1e-9)}), flush=True)


if __name__ == "__main__":
    main()
