"""Shapes of models that carry a state, for make_model: name, shape, mean and deviation of each tensor."""

import math

SHAPES = {
    # RetNet as torchscale has it, about 110 million parameters.
    "retnet": {"vocabulary": 32000, "width": 768, "layers": 10, "heads": 3, "inner": 1536, "value": 1536},
    # RWKV-4 169M.
    "rwkv": {"vocabulary": 50277, "width": 768, "layers": 12, "heads": 1, "inner": 3072},
    # RWKV-7 World 0.1B.
    "rwkv7": {"vocabulary": 65536, "width": 768, "layers": 12, "heads": 12, "inner": 3072},
    # Mamba 130M.
    "mamba": {"vocabulary": 50280, "width": 768, "layers": 24, "heads": 1, "inner": 1536, "state": 16},
    # Qwen3.5's kinds of layers, attention every fourth, at 0.1 billion parameters.
    "qwen3_5": {"vocabulary": 32000, "width": 768, "layers": 8, "heads": 6, "kv-heads": 2, "inner": 2048,
                "positions": 2048},
}


def matrix(name, rows, width):
    return (name, [rows, width], 0.0, 1.0 / math.sqrt(width))


def norm(name, width, mean=1.0):
    return (name + ".weight", [width], mean, 0.1)


def norm_with_bias(name, width):
    yield norm(name, width)
    yield (name + ".bias", [width], 0.0, 0.1)


def retnet(size):
    width, value, inner = size["width"], size["value"], size["inner"]
    yield ("embed_tokens.weight", [size["vocabulary"], width], 0.0, 0.1)
    for layer in range(size["layers"]):
        of = f"layers.{layer}."
        for name, rows, columns in (("q_proj", width, width), ("k_proj", width, width), ("v_proj", value, width),
                                    ("g_proj", value, width), ("out_proj", width, value)):
            yield matrix(f"{of}retention.{name}.weight", rows, columns)
        for name, rows, columns in (("fc1", inner, width), ("gate", inner, width), ("fc2", width, inner)):
            yield matrix(f"{of}ffn.{name}.weight", rows, columns)
        yield norm(of + "retention_layer_norm", width)
        yield norm(of + "final_layer_norm", width)
    yield norm("layer_norm", width)
    yield matrix("output_projection.weight", size["vocabulary"], width)


def retnet_config(size):
    return {"model_type": "torchscale_retnet", "vocab_size": size["vocabulary"], "decoder_embed_dim": size["width"],
            "decoder_value_embed_dim": size["value"], "decoder_retention_heads": size["heads"],
            "decoder_ffn_embed_dim": size["inner"], "decoder_layers": size["layers"], "recurrent_chunk_size": 64}


def rwkv(size):
    width, inner = size["width"], size["inner"]
    yield ("rwkv.embeddings.weight", [size["vocabulary"], width], 0.0, 0.1)
    yield from norm_with_bias("rwkv.blocks.0.pre_ln", width)
    for layer in range(size["layers"]):
        of = f"rwkv.blocks.{layer}."
        yield from norm_with_bias(of + "ln1", width)
        yield from norm_with_bias(of + "ln2", width)
        yield (of + "attention.time_decay", [width], -1.0, 1.0)
        yield (of + "attention.time_first", [width], 0.0, 0.5)
        for name in ("key", "value", "receptance"):
            yield (f"{of}attention.time_mix_{name}", [1, 1, width], 0.5, 0.1)
        for name in ("key", "receptance"):
            yield (f"{of}feed_forward.time_mix_{name}", [1, 1, width], 0.5, 0.1)
        for name in ("key", "value", "receptance", "output"):
            yield matrix(f"{of}attention.{name}.weight", width, width)
        yield matrix(of + "feed_forward.key.weight", inner, width)
        yield matrix(of + "feed_forward.receptance.weight", width, width)
        yield matrix(of + "feed_forward.value.weight", width, inner)
    yield from norm_with_bias("rwkv.ln_out", width)
    yield matrix("head.weight", size["vocabulary"], width)


def rwkv_config(size):
    return {"model_type": "rwkv", "vocab_size": size["vocabulary"], "hidden_size": size["width"],
            "attention_hidden_size": size["width"], "intermediate_size": size["inner"], "context_length": 1024,
            "num_hidden_layers": size["layers"], "layer_norm_epsilon": 1e-5, "rescale_every": 6,
            "tie_word_embeddings": False}


def rwkv7(size):
    width, inner, head = size["width"], size["inner"], size["width"] // size["heads"]
    yield ("emb.weight", [size["vocabulary"], width], 0.0, 0.1)
    yield from norm_with_bias("blocks.0.ln0", width)
    for layer in range(size["layers"]):
        of, att = f"blocks.{layer}.", f"blocks.{layer}.att."
        yield from norm_with_bias(of + "ln1", width)
        yield from norm_with_bias(of + "ln2", width)
        for letter in "rwkvag":
            yield (f"{att}x_{letter}", [1, 1, width], 0.5, 0.1)
        ranks = [("w", 64), ("a", 64), ("g", 128)] + [("v", 32)] * (layer > 0)
        for letter, rank in ranks:
            if letter != "g":
                yield (f"{att}{letter}0", [1, 1, width], -1.0 if letter == "w" else 0.0, 0.5)
            yield (f"{att}{letter}1", [width, rank], 0.0, 1.0 / math.sqrt(width))
            yield (f"{att}{letter}2", [rank, width], 0.0, 0.3 / math.sqrt(rank))
        yield (att + "k_k", [1, 1, width], 0.85, 0.05)
        yield (att + "k_a", [1, 1, width], 1.0, 0.05)
        yield (att + "r_k", [size["heads"], head], 0.0, 0.1)
        for name in ("receptance", "key", "value", "output"):
            yield matrix(f"{att}{name}.weight", width, width)
        yield from norm_with_bias(att + "ln_x", width)
        yield (of + "ffn.x_k", [1, 1, width], 0.5, 0.1)
        yield matrix(of + "ffn.key.weight", inner, width)
        yield matrix(of + "ffn.value.weight", width, inner)
    yield from norm_with_bias("ln_out", width)
    yield matrix("head.weight", size["vocabulary"], width)


def rwkv7_config(size):
    return {"model_type": "rwkv7", "vocab_size": size["vocabulary"], "n_embd": size["width"], "n_layer": size["layers"],
            "head_size": size["width"] // size["heads"], "dim_ffn": size["inner"], "D_DECAY_LORA": 64, "D_AAA_LORA": 64,
            "D_MV_LORA": 32, "D_GATE_LORA": 128}


def mamba(size):
    width, inner, state, rank = size["width"], size["inner"], size["state"], -(-size["width"] // 16)
    yield ("backbone.embeddings.weight", [size["vocabulary"], width], 0.0, 0.1)
    for layer in range(size["layers"]):
        of = f"backbone.layers.{layer}.mixer."
        yield norm(f"backbone.layers.{layer}.norm", width)
        yield (of + "A_log", [inner, state], 1.0, 0.5)
        yield (of + "D", [inner], 1.0, 0.1)
        yield (of + "conv1d.weight", [inner, 1, 4], 0.0, 0.5)
        yield (of + "conv1d.bias", [inner], 0.0, 0.1)
        yield matrix(of + "in_proj.weight", 2 * inner, width)
        yield matrix(of + "x_proj.weight", rank + 2 * state, inner)
        yield matrix(of + "dt_proj.weight", inner, rank)
        yield (of + "dt_proj.bias", [inner], -3.0, 0.5)
        yield matrix(of + "out_proj.weight", width, inner)
    yield norm("backbone.norm_f", width)


def mamba_config(size):
    return {"model_type": "mamba", "vocab_size": size["vocabulary"], "hidden_size": size["width"],
            "num_hidden_layers": size["layers"], "state_size": size["state"], "expand": size["inner"] // size["width"],
            "intermediate_size": size["inner"], "conv_kernel": 4, "time_step_rank": -(-size["width"] // 16),
            "use_bias": False, "use_conv_bias": True, "hidden_act": "silu", "layer_norm_epsilon": 1e-5,
            "tie_word_embeddings": True}


def kinds(size):
    return ["full_attention" if layer % 4 == 3 else "linear_attention" for layer in range(size["layers"])]


def qwen3_5(size):
    width, inner, head = size["width"], size["inner"], size["width"] // size["heads"]
    keys, values = size["heads"] * head, size["heads"] * head
    yield ("model.embed_tokens.weight", [size["vocabulary"], width], 0.0, 0.1)
    for layer, kind in enumerate(kinds(size)):
        of = f"model.layers.{layer}."
        if kind == "linear_attention":
            att = of + "linear_attn."
            yield (att + "dt_bias", [size["heads"]], 0.0, 0.5)
            yield (att + "A_log", [size["heads"]], 0.5, 0.3)
            yield (att + "conv1d.weight", [2 * keys + values, 1, 4], 0.0, 0.5)
            yield norm(att + "norm", head)
            for name, rows in (("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), ("in_proj_b", size["heads"]),
                               ("in_proj_a", size["heads"])):
                yield matrix(f"{att}{name}.weight", rows, width)
            yield matrix(att + "out_proj.weight", width, values)
        else:
            att = of + "self_attn."
            yield matrix(att + "q_proj.weight", 2 * size["heads"] * head, width)
            yield matrix(att + "k_proj.weight", size["kv-heads"] * head, width)
            yield matrix(att + "v_proj.weight", size["kv-heads"] * head, width)
            yield matrix(att + "o_proj.weight", width, size["heads"] * head)
            yield norm(att + "q_norm", head, 0.0)
            yield norm(att + "k_norm", head, 0.0)
        for name, rows, columns in (("gate_proj", inner, width), ("up_proj", inner, width), ("down_proj", width, inner)):
            yield matrix(f"{of}mlp.{name}.weight", rows, columns)
        yield norm(of + "input_layernorm", width, 0.0)
        yield norm(of + "post_attention_layernorm", width, 0.0)
    yield norm("model.norm", width, 0.0)
    yield matrix("lm_head.weight", size["vocabulary"], width)


def qwen3_5_config(size):
    head = size["width"] // size["heads"]
    return {"model_type": "qwen3_5_text", "vocab_size": size["vocabulary"], "hidden_size": size["width"],
            "intermediate_size": size["inner"], "num_hidden_layers": size["layers"], "num_attention_heads": size["heads"],
            "num_key_value_heads": size["kv-heads"], "head_dim": head, "layer_types": kinds(size),
            "linear_num_key_heads": size["heads"], "linear_num_value_heads": size["heads"], "linear_key_head_dim": head,
            "linear_value_head_dim": head, "linear_conv_kernel_dim": 4, "max_position_embeddings": size["positions"],
            "rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
            "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"}}


MODELS = {"retnet": (retnet, retnet_config), "rwkv": (rwkv, rwkv_config), "rwkv7": (rwkv7, rwkv7_config),
          "mamba": (mamba, mamba_config), "qwen3_5": (qwen3_5, qwen3_5_config)}
