"""Runs a checkpoint of `make_model compressive` with PyTorch, in float32; commands and answers as in peers.py.

    torch_server.py DIR THREADS labml|ours

labml: the original implementation, of an installed labml_nn. ours: examples/compressive_torch.py. Both project the keys
and values of their memories anew in each run.
"""

import json
import os
import sys
from importlib import metadata

import torch

from serving import serve

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))
from compressive_torch import CompressiveTransformer, read_safetensors  # noqa: E402


class Ours:
    def __init__(self, config, weights):
        self._model = CompressiveTransformer(config)
        self._model.load_state_dict(weights)
        self._model.eval()
        self.reset()

    def reset(self):
        self._memory = self._model.empty_memory(1)

    def feed(self, tokens):
        logits, self._memory, _ = self._model(torch.tensor([tokens]), self._memory)
        return logits[0, -1]


class Labml:
    """The original's layers; the table in front, the logits behind and the memories' bookkeeping are written here, since
    there they are part of a training program."""

    def __init__(self, config, weights):
        from labml_nn.transformers import compressive
        from labml_nn.transformers.feed_forward import FeedForward
        from labml_nn.transformers.xl.relative_mha import RelativeMultiHeadAttention

        width = config["d_model"]
        self._config = config
        layer = compressive.CompressiveTransformerLayer(
            d_model=width, self_attn=RelativeMultiHeadAttention(config["heads"], width, 0.0),
            feed_forward=FeedForward(width, config["d_ff"], 0.0), dropout_prob=0.0,
            compress=compressive.Conv1dCompression(config["compression_rate"], width))
        self._model = torch.nn.ModuleDict({
            "src_embed": torch.nn.Embedding(config["n_tokens"], width),
            "transformer": compressive.CompressiveTransformer(layer, config["n_layers"]),
            "generator": torch.nn.Linear(width, config["n_tokens"])})
        self._model.load_state_dict(weights)
        self._model.eval()
        self.reset()

    def reset(self):
        self._mem, self._c_mem = [], []

    def feed(self, tokens):
        count = len(tokens)
        behind = sum(len(rows[0]) for rows in (self._mem, self._c_mem) if rows)
        mask = torch.ones(count, behind + count, dtype=torch.bool).tril(behind)[:, :, None]
        x = self._model["src_embed"](torch.tensor(tokens)[:, None])
        y, new = self._model["transformer"](x, self._mem, self._c_mem, mask)
        self._remember(new)
        return self._model["generator"](y)[-1, 0]

    def _remember(self, new):
        config, rate = self._config, self._config["compression_rate"]
        mem = [torch.cat(rows) for rows in zip(self._mem, new)] if self._mem else new
        groups = -(-max(len(mem[0]) - config["mem_len"], 0) // rate)
        if groups > 0:
            layers = self._model["transformer"].layers
            made = [layer.compress(rows[:groups * rate]) for layer, rows in zip(layers, mem)]
            mem = [rows[groups * rate:] for rows in mem]
            c_mem = [torch.cat(rows) for rows in zip(self._c_mem, made)] if self._c_mem else made
            self._c_mem = [rows[-config["c_mem_len"]:] for rows in c_mem]
        self._mem = mem


class Streaming:
    """Segments as long as the checkpoint says, and the newest logits."""

    def __init__(self, model, segment):
        self._model, self._segment, self._logits = model, segment, None

    def reset(self):
        self._model.reset()

    def keep(self, length):
        pass  # The memories are what is kept.

    def feed(self, tokens):
        for at in range(0, len(tokens), self._segment):
            self._logits = self._model.feed(tokens[at:at + self._segment])

    def logits(self):
        return self._logits.numpy().astype("<f4").tobytes()


def load(folder, name):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    return Streaming({"labml": Labml, "ours": Ours}[name](config, weights), max(config["segment_lengths"]))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    torch.set_grad_enabled(False)
    version = torch.__version__
    if sys.argv[3] == "labml":
        version += f", labml_nn {metadata.version('labml-nn')}"
    serve("PyTorch", version, lambda: load(sys.argv[1], sys.argv[3]))
