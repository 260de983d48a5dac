"""Runs a checkpoint of `make_model` for a model that carries a state with PyTorch, in float32; commands and answers as in
peers.py.

    torch_state_server.py DIR THREADS

RWKV-4, Mamba and Qwen3.5 by an installed transformers, RetNet by an installed torchscale (with stand-ins for the
packages that only its training needs), RWKV-7 by the formulas of its authors' rwkv_v7_demo_rnn.py, written here.
"""

import json
import os
import sys
import types
from importlib import metadata

import torch

from serving import serve

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))
from compressive_torch import read_safetensors  # noqa: E402


class HuggingFace:
    NAMES = {"rwkv": ("RwkvConfig", "RwkvForCausalLM"), "mamba": ("MambaConfig", "MambaForCausalLM"),
             "qwen3_5_text": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM")}

    def __init__(self, config, weights):
        import transformers

        kind = config.pop("model_type")
        describe, make = (getattr(transformers, name) for name in self.NAMES[kind])
        self._state_name = {"rwkv": "state", "mamba": "cache_params", "qwen3_5_text": "past_key_values"}[kind]
        self._model = make(describe(**config)).eval()
        self._model.load_state_dict(weights, strict=False)
        self._model.tie_weights()
        self.reset()

    def reset(self):
        self._state = None

    def feed(self, tokens):
        state = {} if self._state is None else {self._state_name: self._state}
        out = self._model(torch.tensor([tokens]), use_cache=True, **state)
        self._state = getattr(out, self._state_name)
        return out.logits[0, -1]


class RetNet:
    def __init__(self, config, weights):
        for name in ("fairscale", "fairscale.nn", "timm", "timm.layers", "timm.models", "timm.models.layers"):
            sys.modules.setdefault(name, types.ModuleType(name))
        sys.modules["fairscale.nn"].checkpoint_wrapper = sys.modules["fairscale.nn"].wrap = lambda module: module
        for name in ("timm.layers", "timm.models.layers"):
            sys.modules[name].drop_path = lambda x, *_: x
        from torchscale.architecture.config import RetNetConfig
        from torchscale.architecture.retnet import RetNetDecoder

        config.pop("model_type")
        settings = RetNetConfig(**config, chunkwise_recurrent=True)
        words = torch.nn.Embedding(settings.vocab_size, settings.decoder_embed_dim)
        self._model = RetNetDecoder(settings, embed_tokens=words).eval()
        self._model.load_state_dict(weights, strict=False)
        self.reset()

    def reset(self):
        self._state, self._count = {}, 0

    def feed(self, tokens):
        """Several tokens: a new text in chunks. One: the recurrent form, which looks at the last only."""
        # Else a single token would be padded to a chunk.
        self._model.chunkwise_recurrent = len(tokens) > 1
        if len(tokens) > 1:
            return self._model(torch.tensor([tokens]))[0][0, -1]
        self._count += 1
        return self._model(torch.tensor([tokens * self._count]), incremental_state=self._state)[0][0, -1]


class Rwkv7:
    def __init__(self, _, weights):
        self._w = {name: value.squeeze() if value.dim() == 3 else value for name, value in weights.items()}
        self._layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
        self._heads, self._head = weights["blocks.0.att.r_k"].shape
        self._w["emb.weight"] = self._norm(self._w["emb.weight"], "blocks.0.ln0")
        self.reset()

    def _norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self._w[name + ".weight"], self._w[name + ".bias"])

    def reset(self):
        width = self._heads * self._head
        self._state = [[torch.zeros(width), torch.zeros(self._heads, self._head, self._head), torch.zeros(width)]
                       for _ in range(self._layers)]

    def feed(self, tokens):
        for token in tokens:
            x = self._w["emb.weight"][token]
            first = None
            for layer in range(self._layers):
                y, first = self._time_mixing(layer, self._norm(x, f"blocks.{layer}.ln1"), first)
                x = x + y
                x = x + self._channel_mixing(layer, self._norm(x, f"blocks.{layer}.ln2"))
        return self._w["head.weight"] @ self._norm(x, "ln_out")

    def _time_mixing(self, layer, x, first):
        w, of, state = self._w, f"blocks.{layer}.att.", self._state[layer]
        past, state[0] = state[0] - x, x
        xr, xw, xk, xv, xa, xg = (x + past * w[f"{of}x_{letter}"] for letter in "rwkvag")
        r, k, v = (w[f"{of}{name}.weight"] @ part for name, part in (("receptance", xr), ("key", xk), ("value", xv)))
        decay = torch.exp(-0.606531 * torch.sigmoid(w[of + "w0"] + torch.tanh(xw @ w[of + "w1"]) @ w[of + "w2"]))
        a = torch.sigmoid(w[of + "a0"] + (xa @ w[of + "a1"]) @ w[of + "a2"])
        g = torch.sigmoid(xg @ w[of + "g1"]) @ w[of + "g2"]
        heads = (self._heads, self._head)
        kk = torch.nn.functional.normalize((k * w[of + "k_k"]).view(heads), dim=-1)
        k = k * (1 + (a - 1) * w[of + "k_a"])
        if first is None:
            first = v
        else:
            v = v + (first - v) * torch.sigmoid(w[of + "v0"] + (xv @ w[of + "v1"]) @ w[of + "v2"])
        rows = state[1]
        state[1] = (rows * decay.view(self._heads, 1, self._head)
                    + (rows @ -kk.unsqueeze(2)) @ (kk * a.view(heads)).unsqueeze(1)
                    + v.view(self._heads, self._head, 1) @ k.view(self._heads, 1, self._head))
        out = (state[1] @ r.view(self._heads, self._head, 1)).view(1, -1)
        out = torch.nn.functional.group_norm(out, self._heads, w[of + "ln_x.weight"], w[of + "ln_x.bias"], 64e-5)[0]
        bonus = (r * k).view(heads) * w[of + "r_k"]
        out = out + (bonus.sum(-1, keepdim=True) * v.view(heads)).view(-1)
        return w[of + "output.weight"] @ (out * g), first

    def _channel_mixing(self, layer, x):
        w, of, state = self._w, f"blocks.{layer}.ffn.", self._state[layer]
        mixed = x + (state[2] - x) * w[of + "x_k"]
        state[2] = x
        return w[of + "value.weight"] @ torch.relu(w[of + "key.weight"] @ mixed) ** 2


class Streaming:
    def __init__(self, model):
        self._model, self._logits = model, None

    def reset(self):
        self._model.reset()

    def keep(self, length):
        pass  # The state is what is kept.

    def feed(self, tokens):
        with torch.no_grad():
            self._logits = self._model.feed(tokens)

    def logits(self):
        return self._logits.numpy().astype("<f4").tobytes()


def load(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    kind = {"torchscale_retnet": RetNet, "rwkv7": Rwkv7}.get(config["model_type"], HuggingFace)
    return Streaming(kind(config, weights))


def main():
    folder, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    serve("PyTorch", f"PyTorch {metadata.version('torch')}", lambda: load(folder))


if __name__ == "__main__":
    main()
