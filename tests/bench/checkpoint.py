"""Reads a checkpoint of make_model: config.json and model.safetensors, in float32."""

import json
import os
import struct
import sys


def need_numpy():
    try:
        import numpy
    except ImportError:
        print(f"{os.path.basename(sys.argv[0])}: {sys.executable} has no NumPy (scripts/setup bench)", file=sys.stderr)
        sys.exit(3)
    return numpy


class Checkpoint:
    def __init__(self, directory):
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self._numpy = need_numpy()
        path = os.path.join(directory, "model.safetensors")
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self._header = json.loads(file.read(length))
        self._data = self._numpy.memmap(path, dtype="u1", mode="r", offset=8 + length)

    def tensor(self, name):
        entry = self._header[name]
        begin, end = entry["data_offsets"]
        return self._data[begin:end].view("<f4").reshape(entry["shape"])
