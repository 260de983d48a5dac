"""A Compressive Transformer language model in PyTorch.

Written from the arithmetic of the model, with the parameter names that Oxbow's
converter expects (model_type ``labml_compressive_transformer``), so a state dict
can be written straight to ``model.safetensors``.

All activations are batch-major, ``[batch, time, d_model]``. Every layer keeps two
memories of un-normalised layer inputs, oldest row first:

* ``mem``    the most recent rows, uncompressed, at most ``mem_len``;
* ``c_mem``  older rows, each made from ``compression_rate`` rows of ``mem`` by a
  strided convolution, at most ``c_mem_len``.

Memories are always detached: no gradient flows from one segment into an earlier one.
The convolution therefore learns only from the attention-reconstruction loss.
"""

import json
import math
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# --------------------------------------------------------------------------------------
# safetensors: 8 bytes header length, JSON header, raw little-endian row-major data.
# --------------------------------------------------------------------------------------

_NUMPY_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}


def read_safetensors(path):
    """Return ({name: torch tensor}, metadata) of a .safetensors file."""
    with open(path, "rb") as f:
        (header_len,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(header_len))
        data = f.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=_NUMPY_TYPES[entry["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    return tensors, metadata


def write_safetensors_f16(path, tensors):
    """Write {name: tensor} as a .safetensors file with 16-bit floats."""
    header = {"__metadata__": {"format": "pt"}}
    chunks = []
    offset = 0
    for name, tensor in tensors.items():
        raw = tensor.detach().to(torch.float16).contiguous().numpy().astype("<f2").tobytes()
        header[name] = {
            "dtype": "F16",
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for raw in chunks:
            f.write(raw)


# --------------------------------------------------------------------------------------
# The model
# --------------------------------------------------------------------------------------


class Projection(nn.Module):
    """A linear map stored as ``<name>.linear.weight`` (and ``.bias``)."""

    def __init__(self, d_model, bias):
        super().__init__()
        self.linear = nn.Linear(d_model, d_model, bias=bias)


class RelativeAttention(nn.Module):
    """Causal multi-head attention with learned embeddings of the key's distance.

    Row ``P - t`` of the two tables belongs to distance ``t``, counted in slots of the
    key sequence (a compressed slot counts as one). Rows above ``P`` would be the
    future; they are never read.
    """

    def __init__(self, d_model, heads, table_half):
        super().__init__()
        self.heads = heads
        self.d_k = d_model // heads
        self.table_half = table_half
        self.query = Projection(d_model, bias=False)
        self.key = Projection(d_model, bias=False)
        self.value = Projection(d_model, bias=True)
        self.output = nn.Linear(d_model, d_model)
        self.key_pos_embeddings = nn.Parameter(torch.zeros(2 * table_half, heads, self.d_k))
        self.key_pos_bias = nn.Parameter(torch.zeros(2 * table_half, heads))
        self.query_pos_bias = nn.Parameter(torch.zeros(heads, self.d_k))

    def split_heads(self, x):
        """[batch, time, d_model] -> [batch, heads, time, d_k]"""
        batch, time, _ = x.shape
        return x.view(batch, time, self.heads, self.d_k).transpose(1, 2)

    def forward(self, z, source):
        """Attend from the S rows of z to the M rows of source, whose last S are z.

        Returns the result and the projected queries, keys and values.
        """
        batch, s, d_model = z.shape
        m = source.shape[1]
        q = self.split_heads(self.query.linear(z))
        k = self.split_heads(self.key.linear(source))
        v = self.split_heads(self.value.linear(source))
        scale = 1.0 / math.sqrt(self.d_k)

        # Content term: (q + u) . k
        content = torch.matmul((q + self.query_pos_bias[:, None, :]) * scale, k.transpose(2, 3))

        # Position term: q . R[P - t] + B[P - t]. Column a of `position` belongs to
        # distance M - 1 - a; query i wants distance M - S + i - j in column j, which is
        # column j + (S - 1 - i). So row i has to move left by S - 1 - i: pad one column,
        # look at the same memory with rows one shorter, drop the first of them.
        first = self.table_half - m + 1
        r = self.key_pos_embeddings[first : self.table_half + 1].permute(1, 2, 0)
        b = self.key_pos_bias[first : self.table_half + 1].t()
        q_rows = q.permute(1, 0, 2, 3).reshape(self.heads, batch * s, self.d_k)
        position = torch.baddbmm(b[:, None, :], q_rows, r, beta=scale, alpha=scale)
        position = F.pad(position.view(self.heads, batch, s, m), (1, 0))
        position = position.view(self.heads, batch, m + 1, s)[:, :, 1:, :]
        position = position.reshape(self.heads, batch, s, m).transpose(0, 1)

        # Query i stands at place M - S + i and sees only the places up to its own.
        future = torch.ones(s, m, dtype=torch.bool).triu(m - s + 1)
        scores = (content + position).masked_fill(future, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v)
        mixed = mixed.transpose(1, 2).reshape(batch, s, d_model)
        return self.output(mixed), (q, k, v)


class Compression(nn.Module):
    """``rate`` rows become one: a convolution with kernel = stride = rate."""

    def __init__(self, d_model, rate):
        super().__init__()
        self.rate = rate
        self.conv = nn.Conv1d(d_model, d_model, kernel_size=rate, stride=rate)

    def forward(self, rows):
        # Kernel and stride are equal, so this is one matrix product over row groups.
        batch, time, d_model = rows.shape
        groups = rows.reshape(batch, time // self.rate, self.rate * d_model)
        weight = self.conv.weight.permute(0, 2, 1).reshape(d_model, self.rate * d_model)
        return F.linear(groups, weight, self.conv.bias)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layer1 = nn.Linear(d_model, d_ff)
        self.layer2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d_model, eps = cfg["d_model"], cfg["layer_norm_eps"]
        self.compress = Compression(d_model, cfg["compression_rate"])
        self.self_attn = RelativeAttention(d_model, cfg["heads"], cfg["P"])
        self.feed_forward = FeedForward(d_model, cfg["d_ff"])
        self.norm_self_attn = nn.LayerNorm(d_model, eps=eps)
        self.norm_ff = nn.LayerNorm(d_model, eps=eps)

    def forward(self, x, mem, c_mem, hide_c_mem=False):
        """Return the layer's output, the source length and projections (for the loss)."""
        seen = [mem, x] if hide_c_mem else [c_mem, mem, x]
        z = self.norm_self_attn(x)
        old = [self.norm_self_attn(rows) for rows in seen[:-1] if rows.shape[1] > 0]
        attended, projected = self.self_attn(z, torch.cat(old + [z], dim=1))
        x = x + attended
        x = x + self.feed_forward(self.norm_ff(x))
        return x, projected

    def reconstruction_loss(self, projected, skip, count, compressed):
        """How well attention over the compressed rows stands in for the originals.

        The queries, and the keys and values of the rows that were compressed (`count`
        rows of the source after the first `skip`), were computed by `forward` already.
        Everything but the compressed rows is detached, weights included, so that the
        gradient reaches only the convolution.
        """
        attn = self.self_attn
        q, k, v = (t.detach() for t in projected)
        q = q / math.sqrt(attn.d_k)
        k, v = k[:, :, skip : skip + count], v[:, :, skip : skip + count]
        norm = self.norm_self_attn
        rows = F.layer_norm(
            compressed, norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
        )
        value = attn.value.linear
        k_c = attn.split_heads(F.linear(rows, attn.key.linear.weight.detach()))
        v_c = attn.split_heads(F.linear(rows, value.weight.detach(), value.bias.detach()))
        before = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)), dim=-1), v)
        after = torch.matmul(torch.softmax(torch.matmul(q, k_c.transpose(2, 3)), dim=-1), v_c)
        return F.mse_loss(after, before)


class Stack(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg["n_layers"]))
        self.norm = nn.LayerNorm(cfg["d_model"], eps=cfg["layer_norm_eps"])


class CompressiveTransformer(nn.Module):
    """Feed it segments in order; hand the returned memories to the next call."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.mem_len = cfg["mem_len"]
        self.c_mem_len = cfg["c_mem_len"]
        self.rate = cfg["compression_rate"]
        self.src_embed = nn.Embedding(cfg["n_tokens"], cfg["d_model"])
        self.transformer = Stack(cfg)
        self.generator = nn.Linear(cfg["d_model"], cfg["n_tokens"])

    def init_weights(self):
        """Small normal weights; the compression starts as the mean of its rows."""
        cfg = self.cfg
        d_model, depth = cfg["d_model"], cfg["n_layers"]
        nn.init.normal_(self.src_embed.weight, std=0.1)
        nn.init.normal_(self.generator.weight, std=d_model**-0.5)
        nn.init.zeros_(self.generator.bias)
        for layer in self.transformer.layers:
            attn, ff = layer.self_attn, layer.feed_forward
            for proj in (attn.query, attn.key, attn.value):
                nn.init.normal_(proj.linear.weight, std=d_model**-0.5)
            nn.init.zeros_(attn.value.linear.bias)
            nn.init.normal_(attn.output.weight, std=(2 * depth * d_model) ** -0.5)
            nn.init.zeros_(attn.output.bias)
            nn.init.normal_(ff.layer1.weight, std=d_model**-0.5)
            nn.init.zeros_(ff.layer1.bias)
            nn.init.normal_(ff.layer2.weight, std=(2 * depth * cfg["d_ff"]) ** -0.5)
            nn.init.zeros_(ff.layer2.bias)
            with torch.no_grad():
                conv = layer.compress.conv
                conv.weight.copy_(torch.eye(d_model)[:, :, None].expand_as(conv.weight) / self.rate)
                conv.bias.zero_()

    def empty_memory(self, batch):
        """[(mem, c_mem)] for every layer, without rows."""
        none = torch.zeros(batch, 0, self.cfg["d_model"])
        return [(none, none) for _ in self.transformer.layers]

    def forward(self, ids, memory, hide_c_mem=False, want_ar_loss=False):
        """ids [batch, S] -> (logits [batch, S, n_tokens], new memory, AR loss or None).

        hide_c_mem leaves the compressed memory out of this segment's attention (it is
        carried along all the same).
        """
        x = self.src_embed(ids)
        new_memory, ar_loss = [], None
        for layer, (mem, c_mem) in zip(self.transformer.layers, memory):
            merged = torch.cat([mem, x.detach()], dim=1)
            x, projected = layer(x, mem, c_mem, hide_c_mem)
            over = merged.shape[1] - self.mem_len
            if over > 0:
                groups = (over + self.rate - 1) // self.rate
                taken = groups * self.rate
                oldest, merged = merged[:, :taken], merged[:, taken:]
                if self.c_mem_len > 0:
                    compressed = layer.compress(oldest)
                    if want_ar_loss:
                        skip = 0 if hide_c_mem else c_mem.shape[1]
                        loss = layer.reconstruction_loss(projected, skip, taken, compressed)
                        ar_loss = loss if ar_loss is None else ar_loss + loss
                    c_mem = torch.cat([c_mem, compressed.detach()], dim=1)
                    c_mem = c_mem[:, max(0, c_mem.shape[1] - self.c_mem_len) :]
            new_memory.append((merged, c_mem))
        return self.generator(self.transformer.norm(x)), new_memory, ar_loss
