"""Makes the folders beside this file: a narrow Llama whose matrices are quantised as GPTQ, AWQ and compressed-tensors store them, and
the same as floats (expected.safetensors: the matrices alone).

python make.py       needs: pip install compressed-tensors==0.17.3 torch transformers safetensors psutil

compressed-tensors is made and read back by its own library; the layouts of the two others, which need a GPU to be installed, are
written here from what their programs document.
"""

import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file

from compressed_tensors.compressors.naive_quantized import IntQuantizationCompressor
from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

HERE = pathlib.Path(__file__).parent
WIDTH, INNER, KEYS, VOCABULARY = 32, 64, 16, 16
LAYER = "model.layers.0."
MATRICES = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (KEYS, WIDTH), "self_attn.v_proj": (KEYS, WIDTH),
            "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH),
            "mlp.down_proj": (WIDTH, INNER)}
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH,
          "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
          "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}


def plain():
    random = lambda *shape: (torch.randn(shape) * 8).round() / 64
    return {"model.embed_tokens.weight": random(VOCABULARY, WIDTH), "model.norm.weight": random(WIDTH) + 1,
            LAYER + "input_layernorm.weight": random(WIDTH) + 1,
            LAYER + "post_attention_layernorm.weight": random(WIDTH) + 1}


def packed(rows, bits, order=None):
    """The last dimension, so many numbers in an int32; the lowest bits are those of `order[0]`."""
    each = 32 // bits
    order = order or list(range(each))
    groups = rows.reshape(*rows.shape[:-1], -1, each)[..., order].to(torch.int64)
    words = sum(groups[..., i] << (bits * i) for i in range(each))
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def quantised(out, width, group, bits, symmetric):
    """Codes from 0, zero points and scales of groups of columns."""
    codes = torch.randint(0, 1 << bits, (out, width))
    zeros = torch.full((out, width // group), 1 << (bits - 1)) if symmetric else torch.randint(1, 1 << bits, (out, width // group))
    scales = (torch.rand(out, width // group) * 0.02 + 0.001).half()
    return codes, zeros, scales


def values(codes, zeros, scales, of_column):
    return scales.float()[:, of_column] * (codes - zeros[:, of_column]).float()


def gptq(bits, group, symmetric, shuffled):
    tensors, expected = plain(), {}
    for name, (out, width) in MATRICES.items():
        codes, zeros, scales = quantised(out, width, group, bits, symmetric)
        of_column = torch.arange(width) // group
        if shuffled:
            of_column = of_column[torch.randperm(width)]
        at = LAYER + name
        tensors[at + ".qweight"] = packed(codes, bits).T.contiguous()
        # The first version stores one less.
        tensors[at + ".qzeros"] = packed((zeros - 1).T, bits)
        tensors[at + ".scales"] = scales.T.contiguous()
        tensors[at + ".g_idx"] = of_column.to(torch.int32)
        expected[at + ".weight"] = values(codes, zeros, scales, of_column)
    settings = {"quant_method": "gptq", "bits": bits, "group_size": group, "damp_percent": 0.1, "desc_act": shuffled, "sym": symmetric,
                "true_sequential": True, "checkpoint_format": "gptq"}
    return settings, tensors, expected


def awq(group):
    tensors, expected = plain(), {}
    for name, (out, width) in MATRICES.items():
        codes, zeros, scales = quantised(out, width, group, 4, False)
        at, order = LAYER + name, [0, 2, 4, 6, 1, 3, 5, 7]
        tensors[at + ".qweight"] = packed(codes.T, 4, order)
        tensors[at + ".qzeros"] = packed(zeros.T, 4, order)
        tensors[at + ".scales"] = scales.T.contiguous()
        expected[at + ".weight"] = values(codes, zeros, scales, torch.arange(width) // group)
    settings = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm",
                "modules_to_not_convert": None}
    return settings, tensors, expected


def compressed(compressor, form, **arguments):
    tensors, expected = plain(), {}
    weights = QuantizationArgs(**arguments)
    scheme = QuantizationScheme(targets=["Linear"], weights=weights)
    for name, (out, width) in MATRICES.items():
        groups = width // weights.group_size if weights.group_size else 1
        half = 1 << (weights.num_bits - 1)
        state = {"weight_scale": torch.rand(out, groups) * 0.02 + 0.001}
        if not weights.symmetric:
            state["weight_zero_point"] = torch.randint(-half, half, (out, groups)).to(torch.int8)
        codes = torch.randint(-half, half, (out, width)).float()
        columns = torch.arange(width) * groups // width
        zeros = state["weight_zero_point"].float()[:, columns] if not weights.symmetric else 0
        state["weight"] = state["weight_scale"][:, columns] * (codes - zeros)
        stored = compressor.compress(state, scheme)
        back = compressor.decompress(stored, scheme)["weight"]
        assert torch.allclose(back, state["weight"], atol=1e-5)
        for key, value in stored.items():
            tensors[f"{LAYER}{name}.{key}"] = value
        expected[f"{LAYER}{name}.weight"] = back
    settings = {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"], "kv_cache_scheme": None,
                "quantization_status": "compressed",
                "config_groups": {"group_0": {"weights": json.loads(weights.model_dump_json()), "targets": ["Linear"],
                                              "input_activations": None, "output_activations": None}}}
    return settings, tensors, expected


def main():
    torch.manual_seed(5)
    for name, (settings, tensors, expected) in {
            "gptq": gptq(4, 32, True, False), "gptq_shuffled": gptq(4, 16, False, True), "gptq_8bits": gptq(8, 32, True, False),
            "awq": awq(16),
            "packed": compressed(PackedQuantizationCompressor, "pack-quantized", num_bits=4, group_size=32, strategy="group"),
            "packed_asymmetric": compressed(PackedQuantizationCompressor, "pack-quantized", num_bits=4, group_size=16, strategy="group",
                                            symmetric=False),
            "int8": compressed(IntQuantizationCompressor, "int-quantized", num_bits=8, strategy="channel")}.items():
        shutil.rmtree(HERE / name, ignore_errors=True)
        (HERE / name).mkdir()
        (HERE / name / "config.json").write_text(json.dumps(dict(CONFIG, quantization_config=settings), indent=2) + "\n")
        save_file({key: value.contiguous() for key, value in tensors.items()}, HERE / name / "model.safetensors")
        save_file({key: value.contiguous() for key, value in expected.items()}, HERE / name / "expected.safetensors")


main()
