"""Runs a file of make_onnx with ONNX Runtime; commands and answers as in peers.py.

    onnx_server.py FILE.onnx THREADS CAPACITY

Buffers are bound once, so that nothing is copied from or to Python but the tokens.
"""

import sys

import numpy
import onnxruntime

from serving import serve


class Model:
    def __init__(self, path, threads, capacity):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        self._caches = []
        for value in self._session.get_inputs():
            if value.name.startswith(("key.", "value.")):
                shape = (1, value.shape[1], capacity, value.shape[3])
                cache = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, "f4"), "cpu")
                self._binding.bind_ortvalue_input(value.name, cache)
                self._binding.bind_ortvalue_output("new_" + value.name, cache)
                self._caches.append(cache)
        vocabulary = self._session.get_outputs()[0].shape[2]
        self._logits = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros((1, 1, vocabulary), "f4"), "cpu")
        self._binding.bind_ortvalue_output("logits", self._logits)
        self._length = 0

    def reset(self):
        self._length = 0

    def keep(self, length):
        self._length = length

    def feed(self, tokens):
        start, self._length = self._length, self._length + len(tokens)
        bind = self._binding.bind_cpu_input
        bind("tokens", numpy.array([tokens], "i8"))
        bind("positions", numpy.arange(start, self._length, dtype="i8")[None])
        bind("last_position", numpy.array([self._length - 1], "i4"))
        bind("total_length", numpy.array([self._length], "i4"))
        self._session.run_with_iobinding(self._binding)

    def logits(self):
        return self._logits.numpy().astype("<f4").tobytes()


if __name__ == "__main__":
    serve("ONNX Runtime", onnxruntime.__version__, lambda: Model(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
