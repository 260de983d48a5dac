#!/usr/bin/env python3
"""Writes this folder: tiny BERTs with random weights as torch.onnx.export gives them, and as safetensors.

Usage: make.py DIRECTORY    (needs torch, transformers, safetensors; made with 1.12.1, 4.38.2 and 0.5)
"""
import argparse
import json
import os

import torch
import transformers
from safetensors.torch import save_file

CONFIG = {
    "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 12, "type_vocab_size": 2, "layer_norm_eps": 1e-6, "hidden_act": "gelu",
}


def export(model, path):
    ids = torch.ones(1, 4, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(model, (ids, ids, torch.zeros_like(ids)), path, input_names=names,
                      output_names=["last_hidden_state"], opset_version=13,
                      dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    directory = parser.parse_args().directory
    torch.manual_seed(5)
    config = transformers.BertConfig(**CONFIG)
    model = transformers.BertModel(config).eval()
    for parameter in model.parameters():
        parameter.data = torch.randint(-64, 65, parameter.shape).float() / 64
    export(model, os.path.join(directory, "bert.onnx"))
    os.makedirs(os.path.join(directory, "bert"), exist_ok=True)
    save_file({k: v.contiguous() for k, v in model.state_dict().items() if v.is_floating_point()},
              os.path.join(directory, "bert", "model.safetensors"))
    with open(os.path.join(directory, "bert", "config.json"), "w") as file:
        json.dump({"model_type": "bert", **CONFIG}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
