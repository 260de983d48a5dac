#!/usr/bin/env python3
"""Check the PyTorch model of compressive_torch.py against golden cases.

Each case is a folder with config.json, model.safetensors and io.safetensors of a
`labml_compressive_transformer`. Every segment's logits, memories, compressed memories
and attention-reconstruction loss are compared, then the single-token steps.
"""

import argparse
import json
import os
import sys

import torch

from compressive_torch import CompressiveTransformer, read_safetensors


def check_case(folder):
    """Return True if everything in the case agrees within its own tolerance."""
    with open(os.path.join(folder, "config.json")) as f:
        cfg = json.load(f)
    model = CompressiveTransformer(cfg)
    weights, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    model.load_state_dict(weights)
    model.eval()
    io, metadata = read_safetensors(os.path.join(folder, "io.safetensors"))
    atol = float(metadata["atol_fp32"])
    compared = set()
    worst = {}

    def compare(name, kind, value):
        compared.add(name)
        if value.shape != io[name].shape:
            print(f"  {name}: shape {list(value.shape)}, expected {list(io[name].shape)}")
            worst[kind] = float("inf")
            return
        difference = (value - io[name]).abs().max().item() if value.numel() else 0.0
        worst[kind] = max(worst.get(kind, 0.0), difference)

    def compare_memory(prefix, memory):
        for i, (mem, c_mem) in enumerate(memory):
            compare(f"{prefix}.mem.layer{i}", "mem", mem.transpose(0, 1))
            if c_mem.shape[1] or f"{prefix}.c_mem.layer{i}" in io:
                compare(f"{prefix}.c_mem.layer{i}", "c_mem", c_mem.transpose(0, 1))

    with torch.no_grad():
        memory = model.empty_memory(cfg["batch_size"])
        segment = 0
        while f"segment{segment}.input_ids" in io:
            prefix = f"segment{segment}"
            ids = io[f"{prefix}.input_ids"]
            compared.add(f"{prefix}.input_ids")
            logits, memory, ar_loss = model(ids.t(), memory, want_ar_loss=True)
            compare(f"{prefix}.logits", "logits", logits.transpose(0, 1))
            compare_memory(prefix, memory)
            if (ar_loss is not None) != (f"{prefix}.ar_loss" in io):
                print(f"  {prefix}: AR loss present on one side only")
                worst["ar_loss"] = float("inf")
            elif ar_loss is not None:
                compare(f"{prefix}.ar_loss", "ar_loss", ar_loss.reshape(1))
            segment += 1
        if "greedy.input_ids" in io:
            compared.update(["greedy.input_ids", "greedy.next_ids"])
            rows = []
            for ids in io["greedy.input_ids"]:
                logits, memory, _ = model(ids[:, None], memory)
                rows.append(logits[:, 0])
            compare("greedy.logits", "greedy logits", torch.stack(rows))
            compare_memory("greedy", memory)

    unseen = sorted(set(io) - compared)
    ok = segment > 0 and not unseen and all(d <= atol for d in worst.values())
    details = ", ".join(f"{kind} {d:.1e}" for kind, d in worst.items())
    name = os.path.basename(os.path.normpath(folder))
    verdict = "ok  " if ok else "FAIL"
    print(f"{verdict} {name}: {segment} segments, atol {atol:g}; largest differences: {details}")
    if unseen:
        print("  not compared:", ", ".join(unseen))
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", nargs="+", help="folder of a golden labml_compressive case")
    args = parser.parse_args()
    results = [check_case(folder) for folder in args.case]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
