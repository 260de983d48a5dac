"""Runs a file of make_onnx_encoder with ONNX Runtime or OpenVINO; commands and answers as in peers.py.

    encoder_server.py onnxruntime FILE.onnx THREADS
    encoder_server.py openvino FILE.onnx THREADS [int8]

int8: quantised after the fact by NNCF, as its makers advise for transformers, with random tokens to calibrate.
"""

import os
import sys
from importlib import metadata

import numpy

from serving import serve

VOCABULARY = 30000


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, tokens):
        return self._session.run(None, {"tokens": tokens})[0]


def quantise(core, path, quantised):
    # What these libraries print is no answer.
    answers = os.dup(1)
    os.dup2(2, 1)
    import nncf
    import openvino

    random = numpy.random.default_rng(1)
    texts = [random.integers(0, VOCABULARY, (1, 128)) for _ in range(8)]
    model = nncf.quantize(core.read_model(path), nncf.Dataset(texts), subset_size=len(texts),
                          model_type=nncf.ModelType.TRANSFORMER)
    openvino.save_model(model, quantised, compress_to_fp16=False)
    sys.stdout.flush()
    os.dup2(answers, 1)


class OpenVino:
    def __init__(self, path, threads, int8):
        import openvino

        core = openvino.Core()
        quantised = path + ".int8.xml"
        if int8 and not os.path.exists(quantised):
            quantise(core, path, quantised)
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        self._model = core.compile_model(core.read_model(quantised if int8 else path), "CPU", settings)
        self._request = self._model.create_infer_request()

    def run(self, tokens):
        return self._request.infer({0: tokens}, share_inputs=True, share_outputs=True)[0]


class Model:
    """An encoder: every text begins anew, and gives a row for each token."""

    def __init__(self, engine):
        self._engine, self._rows = engine, None

    def reset(self):
        pass

    def feed(self, tokens):
        self._rows = self._engine.run(numpy.array([tokens], "i8"))

    def logits(self):
        return numpy.asarray(self._rows).astype("<f4").tobytes()


def main():
    kind, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "onnxruntime":
        serve("ONNX Runtime", metadata.version("onnxruntime"), lambda: Model(OnnxRuntime(path, threads)))
    else:
        serve("OpenVINO", metadata.version("openvino"), lambda: Model(OpenVino(path, threads, "int8" in sys.argv[4:])))


if __name__ == "__main__":
    main()
