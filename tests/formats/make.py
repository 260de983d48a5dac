#!/usr/bin/env python3
"""Writes the cases of this folder with torch: one tiny GPT-2 in every form that torch and safetensors give it.

Usage: make.py DIRECTORY    (needs torch; made with 1.13.1)

All weights are multiples of 1/64 between -1 and 1, which 16-bit floats hold exactly, so that every case holds the
same numbers.
"""
import argparse
import collections
import json
import os
import pickle
import struct
import sys
import zipfile

import torch

CONFIG = {
    "model_type": "gpt2", "vocab_size": 12, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_inner": 12,
    "activation_function": "relu", "layer_norm_epsilon": 1e-05, "tie_word_embeddings": False,
}
TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}


def shapes():
    d, inner, block = CONFIG["n_embd"], CONFIG["n_inner"], "transformer.h.0."
    yield "transformer.wte.weight", (CONFIG["vocab_size"], d)
    yield "transformer.wpe.weight", (CONFIG["n_positions"], d)
    for norm in ("ln_1", "ln_2"):
        yield block + norm + ".weight", (d,)
        yield block + norm + ".bias", (d,)
    for name, rows, columns in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, inner),
                                ("mlp.c_proj", inner, d)):
        yield block + name + ".weight", (rows, columns)
        yield block + name + ".bias", (columns,)
    yield "transformer.ln_f.weight", (d,)
    yield "transformer.ln_f.bias", (d,)
    yield "lm_head.weight", (CONFIG["vocab_size"], d)


def model():
    """A module whose state_dict() has these names."""
    generator = torch.Generator().manual_seed(7)
    root = torch.nn.Module()
    for name, shape in shapes():
        at = root
        *path, last = name.split(".")
        for part in path:
            if part not in dict(at.named_children()):
                at.add_module(part, torch.nn.Module())
            at = at.get_submodule(part)
        values = torch.randint(-64, 65, shape, generator=generator).float() / 64
        if name == "transformer.ln_f.bias":
            values = torch.full(shape, 0.25)  # one case stores this number once
        at.register_parameter(last, torch.nn.Parameter(values))
    return root


def save_safetensors(tensors, path):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        plain = tensor.detach().contiguous()
        raw = (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def save_shards(state, folder, stem, ending, save):
    names = list(state)
    shards = [names[: len(names) // 2], names[len(names) // 2:]]
    weight_map = {}
    for i, shard in enumerate(shards):
        file = f"{stem}-{i + 1:05}-of-{len(shards):05}{ending}"
        save({name: state[name] for name in shard}, f"{folder}/{file}")
        weight_map.update({name: file for name in shard})
    with open(f"{folder}/{stem}{ending}.index.json", "w") as index:
        json.dump({"metadata": {"total_size": sum(4 * state[n].numel() for n in names)}, "weight_map": weight_map}, index)


def old(value, path):
    torch.save(value, path, _use_new_zipfile_serialization=False)


def strided(state):
    """The same values as parameters, transposed, cut out of one storage, expanded, shared and at an offset."""
    out = collections.OrderedDict()
    block = "transformer.h.0."
    out["transformer.wte.weight"] = torch.nn.Parameter(state["transformer.wte.weight"].clone())
    everything = torch.cat([state["transformer.wpe.weight"], state["lm_head.weight"]])
    out["transformer.wpe.weight"] = everything[:16]
    out["lm_head.weight"] = everything[16:]
    out[block + "attn.c_attn.weight"] = state[block + "attn.c_attn.weight"].t().contiguous().t()
    columns = torch.stack([state[block + "attn.c_proj.weight"], torch.ones(8, 8)], dim=2)
    out[block + "attn.c_proj.weight"] = columns[:, :, 0]
    norms = torch.stack([state[block + n] for n in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias")], dim=1)
    for i, name in enumerate(("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias")):
        out[block + name] = norms[:, i]
    out["transformer.ln_f.bias"] = torch.tensor([0.25]).expand(8)
    for name, tensor in state.items():
        out.setdefault(name, tensor)
    for name, tensor in state.items():
        assert torch.equal(out[name], tensor), name
    assert not out["transformer.ln_f.bias"].is_contiguous() and not out[block + "ln_1.bias"].is_contiguous()
    return out


def every_type():
    """Values at the ends of each type; packed, transposed, and as two parts of one storage."""
    out = collections.OrderedDict()
    for dtype, name in TYPES.items():
        if dtype.is_floating_point:
            values = torch.tensor([0.0, -0.0, 1.0, -1.5, 2.0 ** -14, 65280.0], dtype=torch.float64).to(dtype)
        elif dtype == torch.bool:
            values = torch.tensor([True, False, False, True, True, False])
        else:
            info = torch.iinfo(dtype)
            values = torch.tensor([0, 1, info.min, info.max, info.max // 3, info.min // 3], dtype=dtype)
        out[name + ".packed"] = values.reshape(2, 3)
        out[name + ".transposed"] = values.reshape(2, 3).t()
        out[name + ".begin"] = values[:4]
        out[name + ".end"] = values[2:]
        out[name + ".scalar"] = values[3]
        out[name + ".empty"] = values[:0]
    return out


def fairseq(state):
    arguments = argparse.Namespace(arch="transformer_lm", lr=[0.25], max_epoch=None, share=True, seed=1, clip=0.1)
    history = [{"criterion_name": "CrossEntropyCriterion", "optimizer_name": "NAG", "num_updates": 3}]
    return {"args": arguments, "model": state, "optimizer_history": history, "extra_state": {"epoch": 2},
            "last_optimizer_state": {"state": {0: {"momentum": torch.ones(4)}}, "param_groups": [{"lr": 0.25}]}}


def main():
    root = sys.argv[1]
    module = model()
    state = module.state_dict()
    with open(f"{root}/config.json", "w") as config:
        json.dump(CONFIG, config, indent=1)
        config.write("\n")

    def case(name):
        os.makedirs(f"{root}/cases/{name}", exist_ok=True)
        return f"{root}/cases/{name}"

    save_safetensors(state, case("safetensors") + "/model.safetensors")
    save_shards(state, case("safetensors_shards"), "model", ".safetensors", save_safetensors)
    torch.save(state, case("bin") + "/pytorch_model.bin")
    save_shards(state, case("bin_shards"), "pytorch_model", ".bin", torch.save)
    old(state, case("old_bin") + "/pytorch_model.bin")
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        folder = case(str(dtype).split(".")[1])
        torch.save({name: tensor.to(dtype) for name, tensor in state.items()}, folder + "/pytorch_model.bin")
    torch.save(strided(state), case("strided") + "/pytorch_model.bin")
    old(strided(state), case("old_strided") + "/pytorch_model.bin")
    torch.save(strided(state), case("pickle_protocol_4") + "/pytorch_model.bin", pickle_protocol=4)
    torch.save(fairseq(state), case("fairseq") + "/checkpoint_best.pt")
    old(fairseq(state), case("old_fairseq") + "/checkpoint_best.pt")
    # labml writes the state of each module to a file of its own, and their names to info.json.
    folder = case("labml")
    torch.save(state, folder + "/model.pth")
    with open(folder + "/info.json", "w") as info:
        json.dump({"model": "model.pth"}, info)
    # Trained in parallel, with what a training loop keeps beside the weights.
    parallel = torch.nn.DataParallel(module)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.0, momentum=0.5)
    for parameter in parallel.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    torch.save({"state_dict": parallel.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
                "rng_state": torch.zeros(16, dtype=torch.uint8)}, case("parallel") + "/last.ckpt")

    os.makedirs(f"{root}/types", exist_ok=True)
    save_safetensors(every_type(), f"{root}/types/every_type.safetensors")
    torch.save(every_type(), f"{root}/types/every_type.pt")
    old(every_type(), f"{root}/types/every_type_old.pt")

    # Small ones to start fuzzing from.
    small = collections.OrderedDict(a=torch.arange(6.0).reshape(2, 3).t(), b=torch.nn.Parameter(torch.ones(2).half()),
                                    c=torch.tensor(3), d=torch.zeros(1).expand(2, 2))
    seeds = f"{root}/../fuzz/seeds"
    for folder in ("torch_file", "pickle"):
        os.makedirs(f"{seeds}/{folder}", exist_ok=True)
    for name, value in (("plain", small), ("nested", {"args": argparse.Namespace(x=1, y="z"), "model": small})):
        torch.save(value, f"{seeds}/torch_file/{name}.pt")
        old(value, f"{seeds}/torch_file/{name}_old.pt")
        with zipfile.ZipFile(f"{seeds}/torch_file/{name}.pt") as archive:
            with open(f"{seeds}/pickle/{name}.pkl", "wb") as file:
                file.write(archive.read(f"{name}/data.pkl"))
    mixed = [1, -1, 2**40, 2**70, 0.5, None, True, "text", b"bytes", (1, 2, 3, 4), {"k": [()]}]
    for protocol in (2, 4, 5):
        with open(f"{seeds}/pickle/mixed_{protocol}.pkl", "wb") as file:
            pickle.dump(mixed[:-3] + [(1,), {"k": [()]}] if protocol == 2 else mixed, file, protocol)


main()
