#!/usr/bin/env python3
"""Makes the packs beside it: the Compressive Transformer as its paper (Rae et al. 2019, algorithm 1) has it, written down once
more in NumPy and float64, with random weights. Knows nothing of Oxbow's code.

    python3 tests/golden/compressive_transformer/make.py
"""

import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
BASE = {"model_type": "compressive_transformer", "n_token": 61, "d_model": 24, "n_head": 3, "d_head": 7, "d_inner": 40,
        "n_layer": 2, "mem_len": 8, "layer_norm_eps": 1e-5, "cutoffs": [], "div_val": 1}
CASES = {
    "ct1_conv": {"compression": "conv", "compression_rate": 3, "c_mem_len": 5, "segment_lengths": [6, 6, 9, 3, 7, 4]},
    "ct2_dilated": {"compression": "dilated_conv", "compression_rate": 2, "compression_kernel": 4, "compression_dilation": 2,
                    "c_mem_len": 6, "segment_lengths": [6, 2, 8, 5, 1, 4]},
    "ct3_mean": {"compression": "mean", "compression_rate": 4, "c_mem_len": 4, "segment_lengths": [8, 4, 8, 8]},
    "ct4_max": {"compression": "max", "compression_rate": 2, "c_mem_len": 3, "segment_lengths": [4, 4, 1, 2, 6]},
    "ct5_most_used": {"compression": "most_used", "compression_rate": 3, "c_mem_len": 5,
                      "segment_lengths": [6, 4, 9, 1, 2, 12, 5]},
}


def save(path, tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, value in tensors.items():
        kind = "I64" if value.dtype == np.int64 else "F32"
        value = np.ascontiguousarray(value, dtype=np.int64 if kind == "I64" else np.float32)
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def weights(config, random):
    d, inner, heads, width = config["d_model"], config["d_inner"], config["n_head"], config["d_head"]

    def matrix(rows, columns):
        return random.standard_normal((rows, columns)) / np.sqrt(columns)

    out = {"word_emb.emb_layers.0.weight": 0.3 * random.standard_normal((config["n_token"], d)),
           "crit.out_layers.0.bias": 0.1 * random.standard_normal(config["n_token"]),
           "r_w_bias": 0.3 * random.standard_normal((heads, width)),
           "r_r_bias": 0.3 * random.standard_normal((heads, width))}
    for i in range(config["n_layer"]):
        of = f"layers.{i}."
        out[of + "dec_attn.qkv_net.weight"] = matrix(3 * heads * width, d)
        out[of + "dec_attn.r_net.weight"] = matrix(heads * width, d)
        out[of + "dec_attn.o_net.weight"] = matrix(d, heads * width)
        out[of + "pos_ff.CoreNet.0.weight"] = matrix(inner, d)
        out[of + "pos_ff.CoreNet.0.bias"] = 0.1 * random.standard_normal(inner)
        out[of + "pos_ff.CoreNet.3.weight"] = matrix(d, inner)
        out[of + "pos_ff.CoreNet.3.bias"] = 0.1 * random.standard_normal(d)
        for norm in ("dec_attn.layer_norm.", "pos_ff.layer_norm."):
            out[of + norm + "weight"] = 1 + 0.1 * random.standard_normal(d)
            out[of + norm + "bias"] = 0.1 * random.standard_normal(d)
        if config["compression"] in ("conv", "dilated_conv"):
            taps = config.get("compression_kernel", config["compression_rate"])
            out[of + "compress.weight"] = random.standard_normal((d, d, taps)) / np.sqrt(d * taps)
            out[of + "compress.bias"] = 0.1 * random.standard_normal(d)
    # What the file will hold is what is computed with.
    return {name: value.astype(np.float32).astype(np.float64) for name, value in out.items()}


def normed(x, weight, bias, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight + bias


def sinusoid(distance, width):
    angles = distance * 10000.0 ** (-np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)])


class Layer:
    def __init__(self, config, tensors, index):
        self.config, self.t, self.of = config, tensors, f"layers.{index}."
        self.memory = np.zeros((config["mem_len"], config["d_model"]))
        self.compressed = np.zeros((config["c_mem_len"], config["d_model"]))
        self.left = []  # All rows that ever left the memory.
        self.usage = np.zeros(config["mem_len"])  # The attention that rows of the memory got, all in all.

    def attend(self, x):
        c, t = self.config, self.t
        rows = np.concatenate([self.compressed, self.memory, x])
        packed = t[self.of + "dec_attn.qkv_net.weight"].reshape(3, c["n_head"], c["d_head"], c["d_model"])
        out = np.zeros((len(x), c["n_head"], c["d_head"]))
        got = np.zeros(len(rows))
        for head in range(c["n_head"]):
            q, k, v = x @ packed[0, head].T, rows @ packed[1, head].T, rows @ packed[2, head].T
            net = t[self.of + "dec_attn.r_net.weight"].reshape(c["n_head"], c["d_head"], -1)[head]
            for i in range(len(x)):
                position = len(rows) - len(x) + i
                scores = np.array([
                    (q[i] + t["r_w_bias"][head]) @ k[j]
                    + (q[i] + t["r_r_bias"][head]) @ (net @ sinusoid(position - j, c["d_model"]))
                    for j in range(position + 1)]) / np.sqrt(c["d_head"])
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                got[:position + 1] += shares
                out[i, head] = shares @ v[:position + 1]
        self.usage = np.concatenate([self.usage, np.zeros(len(x))]) + got[len(self.compressed):]
        return out.reshape(len(x), -1) @ t[self.of + "dec_attn.o_net.weight"].T

    def remember(self, x):
        """Whole groups of the oldest rows leave until the new ones have room."""
        rate = self.config["compression_rate"]
        line = np.concatenate([self.memory, x])
        groups = -(-max(0, len(line) - self.config["mem_len"]) // rate)
        queries = np.arange(len(line), 0, -1)  # That saw a row: those of the rows from it on.
        for group in range(groups):
            leaving = slice(group * rate, (group + 1) * rate)
            self.left.extend(line[leaving])
            row = self.compress((self.usage / queries)[leaving])[None]
            self.compressed = np.concatenate([self.compressed, row])[-self.config["c_mem_len"]:]
        self.memory, self.usage = line[groups * rate:], self.usage[groups * rate:]

    def compress(self, usage):
        c = self.config
        group = np.array(self.left[-c["compression_rate"]:])
        if c["compression"] == "mean":
            return group.mean(0)
        if c["compression"] == "max":
            return group.max(0)
        if c["compression"] == "most_used":
            best = np.sort(usage)[-2:]
            assert np.ptp(group[usage >= best[0]], axis=0).max() == 0 or best[1] > 1.01 * best[0], "nearly a tie"
            return group[usage.argmax()]
        kernel = self.t[self.of + "compress.weight"]
        taps, dilation = kernel.shape[2], c.get("compression_dilation", 1)
        row = self.t[self.of + "compress.bias"].copy()
        for tap in range(taps):
            back = (taps - 1 - tap) * dilation + 1
            if back <= len(self.left):
                row += kernel[:, :, tap] @ self.left[-back]
        return row

    def run(self, x):
        epsilon = self.config["layer_norm_eps"]

        def norm(name, value):
            return normed(value, self.t[self.of + name + "weight"], self.t[self.of + name + "bias"], epsilon)

        a = norm("dec_attn.layer_norm.", self.attend(x) + x)
        wide = np.maximum(a @ self.t[self.of + "pos_ff.CoreNet.0.weight"].T + self.t[self.of + "pos_ff.CoreNet.0.bias"], 0)
        mlp = wide @ self.t[self.of + "pos_ff.CoreNet.3.weight"].T + self.t[self.of + "pos_ff.CoreNet.3.bias"]
        self.remember(x)
        return norm("pos_ff.layer_norm.", mlp + a)


def make(name, extra, seed):
    config = {**BASE, **extra}
    random = np.random.default_rng(seed)
    tensors = weights(config, random)
    layers = [Layer(config, tensors, i) for i in range(config["n_layer"])]
    io = {}
    for number, length in enumerate(config["segment_lengths"]):
        ids = random.integers(0, config["n_token"], length)
        x = tensors["word_emb.emb_layers.0.weight"][ids] * np.sqrt(config["d_model"])
        for layer in layers:
            x = layer.run(x)
        logits = x @ tensors["word_emb.emb_layers.0.weight"].T + tensors["crit.out_layers.0.bias"]
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        part = f"segment{number}."
        io[part + "input_ids"] = ids[:, None]
        io[part + "logits"] = logits[:, None]
        for i, layer in enumerate(layers):
            io[f"{part}mem.layer{i}"] = layer.memory[:, None]
            io[f"{part}c_mem.layer{i}"] = layer.compressed[:, None]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    save(folder / "model.safetensors", tensors)
    save(folder / "io.safetensors", io, {"atol_fp32": "3e-05"})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    told = {"conv": "a convolution of as many taps as rows", "mean": "the mean", "max": "the greatest of each column",
            "most_used": "the row that got the most attention, by all heads and queries since it came, on average over the "
                         "rows from it on",
            "dilated_conv": "a convolution of 4 taps, 2 rows apart, the last on the group's newest row, which reaches over "
                            "rows that left before (zeros at first)"}[config["compression"]]
    (folder / "README.md").write_text(f"""# compressive_transformer / {name}

Source: algorithm 1 of Rae et al. 2019, "Compressive Transformers for Long-Range Sequence Modelling", as
`../make.py` writes it down in NumPy and float64; random weights.

- Post-norm layers, relative positions of Transformer-XL (sinusoids), distances counted in [c_mem | mem | segment].
- Both memories begin full of zeros, and those are seen. Compression by {told}; {config["compression_rate"]} rows become one.
- When new rows enter, whole groups of the oldest leave until there is room: after a segment that is no multiple of the rate
  the memory holds fewer than mem_len rows, as labml.ai's does.
- `logits` are logarithms of probabilities; time-major. Embeddings times sqrt(d_model); the head is tied.
- Computed in float64; atol 3e-05.
""")


if __name__ == "__main__":
    for index, (case, options) in enumerate(CASES.items()):
        make(case, options, index + 1)
