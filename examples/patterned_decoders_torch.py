#!/usr/bin/env python3
"""Decoders whose layers see patterns of the past, in PyTorch: a Sparse Transformer (Child et al. 2019) and an Image
Transformer (Parmar et al. 2018), with the names of tensors and keys that Oxbow's converter reads (model_type
``sparse_transformer``, ``image_transformer``).

    python3 examples/patterned_decoders_torch.py DIRECTORY

writes the golden cases of both. A pattern is a mask, made from its definition, over all pairs of positions; nothing here is
made to be fast. Token i of a picture is read at position i + 1, behind a start token, so that position i writes token i.
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn


def pattern(name, config, head):
    """[N, N] of bool: whether query i (row) sees key j (column)."""
    if config["model_type"] == "sparse_transformer":
        length = config["n_ctx"]
    else:
        columns = config["image_width"] * config["channels"]
        length = config["image_height"] * columns
    i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
    past = j <= i
    if name == "all":
        return past
    if name == "strided":
        stride = config["stride"]
        return past & ((i - j <= stride) | ((i - j) % stride == 0))
    if name == "fixed":
        stride, summary = config["stride"], config["summary"]
        end = stride - summary * (head % config["summary_sets"])
        return past & ((i // stride == j // stride) | ((j % stride >= end - summary) & (j % stride < end)))
    if name == "1d":
        first = i // config["query_block"] * config["query_block"]
        return past & (j >= first - config["memory"])
    if name == "2d":
        height, width = config["block_height"], config["block_width"]
        top, left = i // columns // height * height, i % columns // width * width
        row, column = j // columns, j % columns
        return (past & (row >= top - config["memory_rows"]) & (row < top + height) &
                (column >= left - config["memory_columns"]) & (column < left + width + config["memory_columns"]))
    raise ValueError(name)


class Layer(nn.Module):
    def __init__(self, config, name):
        super().__init__()
        width, inner = config["n_embd"], config["n_inner"]
        self.heads = config["n_head"]
        self.norms_first = config["model_type"] == "sparse_transformer"
        self.activation = {"gelu": F.gelu, "relu": F.relu}[config["activation_function"]]
        self.attention_norm = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.feed_forward_norm = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.mask = torch.stack([pattern(name, config, head) for head in range(self.heads)])

    def attend(self, x):
        batch, time, width = x.shape
        q, k, v = (f(x).view(batch, time, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        weights = scores.masked_fill(~self.mask[:, :time, :time], -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        def feed_forward(y):
            return self.down(self.activation(self.up(y)))

        if self.norms_first:
            x = x + self.attend(self.attention_norm(x))
            return x + feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.attend(x))
        return self.feed_forward_norm(x + feed_forward(x))


class PatternedDecoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, names = config["n_embd"], config["attention"]
        self.layers = nn.ModuleList(Layer(config, names[i % len(names)]) for i in range(config["n_layer"]))
        self.words = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(self.layers[0].mask.shape[-1], width)
        if self.layers[0].norms_first:
            self.norm = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.head = nn.Linear(width, config["vocab_size"])

    def forward(self, tokens):
        """Logits, and the input of each layer and what enters the head."""
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1]))
        states = []
        for layer in self.layers:
            states.append(x)
            x = layer(x)
        x = self.norm(x) if hasattr(self, "norm") else x
        return self.head(x), states + [x]


def run(model, tokens, new):
    """Outputs of all tokens, and of `new` ones that the model goes on with, the likeliest each time."""
    logits, states = model(tokens)
    out = {"logits": logits, **{f"hidden_states.{i}": state for i, state in enumerate(states)}}
    text = tokens
    for _ in range(new):
        text = torch.cat([text, model(text)[0][:, -1:].argmax(-1)], 1)
    given = tokens.shape[1]
    out["greedy.logits"] = model(text)[0][:, given:]
    return out, text[:, given:]


def write_case(folder, config, seed):
    torch.manual_seed(seed)
    model = PatternedDecoder(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            spread = parameter.shape[-1] ** -0.5 if parameter.dim() == 2 and "words" not in name else 0.3
            parameter.copy_(mean + spread * torch.randn(parameter.shape))
        length = model.positions.num_embeddings
        tokens = torch.randint(0, config["vocab_size"] - 1, (2, length // 2))
        tokens[:, 0] = config["vocab_size"] - 1
        out, written = run(model, tokens, length - length // 2)
        exact, same = run(model.double(), tokens, length - length // 2)
        assert torch.equal(written, same)
        worst = max((out[name].double() - exact[name]).abs().max().item() for name in out)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
        file.write("\n")
    save_file({name: value.float() for name, value in model.state_dict().items()},
              os.path.join(folder, "model.safetensors"))
    system, case = os.path.normpath(folder).split(os.sep)[-2:]
    tolerance = float(f"{max(2e-5, 20 * worst):.0e}")
    io = {"input_ids": tokens, **out, "greedy.input_ids": written, "greedy.next_ids": out["greedy.logits"].argmax(-1)}
    save_file({name: value.contiguous() for name, value in io.items()}, os.path.join(folder, "io.safetensors"),
              {"atol_fp32": str(tolerance), "system": system, "case": case})
    print(f"{folder}: {length} positions, float32 and float64 differ by {worst:.1e}, tolerance {tolerance}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    common = {"n_layer": 4, "n_embd": 40, "n_head": 4, "n_inner": 56, "layer_norm_epsilon": 1e-5}
    write_case(os.path.join(sys.argv[1], "sparse_transformer", "sp_both"),
               {"model_type": "sparse_transformer", "vocab_size": 61, "n_ctx": 77, "attention": ["strided", "fixed"],
                "stride": 9, "summary": 2, "summary_sets": 3, "activation_function": "gelu", **common}, 1)
    write_case(os.path.join(sys.argv[1], "image_transformer", "im_both"),
               {"model_type": "image_transformer", "vocab_size": 17, "image_height": 7, "image_width": 5, "channels": 3,
                "attention": ["1d", "2d"], "query_block": 8, "memory": 11, "block_height": 2, "block_width": 4,
                "memory_rows": 2, "memory_columns": 3, "activation_function": "relu", **common}, 2)


if __name__ == "__main__":
    main()
