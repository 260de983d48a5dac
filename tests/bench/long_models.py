"""Shapes of models for long texts, for make_model: name, shape, mean and deviation of each tensor."""

import math

from state_models import matrix, norm_with_bias

COMMON = {"vocabulary": 256, "width": 256, "layers": 2, "heads": 4, "inner": 512, "positions": 65536}
# Tokens that a token sees, or their least number: windows, blocks, segments and chunks of these.
SHAPES = {
    "longformer": {**COMMON, "window": 512},
    "big_bird": {**COMMON, "block": 64},
    "longnet": {**COMMON, "segment": 2048},
    "reformer": {**COMMON, "chunk": 64},
    # A Universal Transformer whose rows all halt in round `halts` of `layers`.
    "universal": {"vocabulary": 256, "width": 256, "layers": 12, "heads": 4, "inner": 512, "halts": 12},
}


def with_bias(name, rows, width):
    yield matrix(name + ".weight", rows, width)
    yield (name + ".bias", [rows], 0.0, 0.1)


def bert_like(size, positions, types, attention):
    """Tensors of BERT without a head; `attention` names the projections of a layer."""
    width, inner = size["width"], size["inner"]
    for name, rows in (("word", size["vocabulary"]), ("position", positions), ("token_type", types)):
        yield (f"embeddings.{name}_embeddings.weight", [rows, width], 0.0, 0.5)
    yield from norm_with_bias("embeddings.LayerNorm", width)
    for layer in range(size["layers"]):
        of = f"encoder.layer.{layer}."
        for name in attention:
            yield from with_bias(f"{of}attention.self.{name}", width, width)
        yield from with_bias(of + "attention.output.dense", width, width)
        yield from norm_with_bias(of + "attention.output.LayerNorm", width)
        yield from with_bias(of + "intermediate.dense", inner, width)
        yield from with_bias(of + "output.dense", width, inner)
        yield from norm_with_bias(of + "output.LayerNorm", width)


def bert_like_config(size, kind, positions, types):
    return {"model_type": kind, "vocab_size": size["vocabulary"], "hidden_size": size["width"],
            "num_hidden_layers": size["layers"], "num_attention_heads": size["heads"],
            "intermediate_size": size["inner"], "hidden_act": "gelu", "max_position_embeddings": positions,
            "type_vocab_size": types, "layer_norm_eps": 1e-12}


def longformer(size):
    own = ["query", "key", "value"]
    yield from bert_like(size, size["positions"] + 2, 1, own + [name + "_global" for name in own])


def longformer_config(size):
    return {**bert_like_config(size, "longformer", size["positions"] + 2, 1), "pad_token_id": 1,
            "attention_window": [size["window"]] * size["layers"]}


def big_bird(size):
    yield from bert_like(size, size["positions"], 2, ["query", "key", "value"])


def big_bird_config(size):
    return {**bert_like_config(size, "big_bird", size["positions"], 2), "attention_type": "block_sparse",
            "use_bias": True, "block_size": size["block"], "num_random_blocks": 3}


def longnet(size):
    width, inner = size["width"], size["inner"]
    yield ("embed_tokens.weight", [size["vocabulary"], width], 0.0, 0.5)
    for layer in range(size["layers"]):
        of = f"layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from with_bias(of + "self_attn." + name, width, width)
        yield from with_bias(of + "ffn.fc1", inner, width)
        yield from with_bias(of + "ffn.fc2", width, inner)
        for name, wide in (("self_attn.inner_attn_ln", width), ("self_attn_layer_norm", width),
                           ("ffn.ffn_layernorm", inner), ("final_layer_norm", width)):
            yield from norm_with_bias(of + name, wide)
    yield from norm_with_bias("layer_norm", width)
    yield matrix("output_projection.weight", size["vocabulary"], width)


def longnet_config(size):
    segment = size["segment"]
    # Each four times as long and sparse, up to the longest text.
    times = [1]
    while segment * times[-1] < size["positions"]:
        times.append(4 * times[-1])
    return {"model_type": "torchscale_longnet_decoder", "vocab_size": size["vocabulary"],
            "decoder_embed_dim": size["width"], "decoder_attention_heads": size["heads"],
            "decoder_ffn_embed_dim": size["inner"], "decoder_layers": size["layers"],
            "decoder_normalize_before": True, "activation_fn": "gelu", "no_scale_embedding": True, "subln": True,
            "max_target_positions": size["positions"], "share_decoder_input_output_embed": False,
            "segment_length": [segment * factor for factor in times], "dilated_ratio": times, "flash_attention": True}


def reformer(size):
    width, inner = size["width"], size["inner"]
    of = "reformer.embeddings."
    yield (of + "word_embeddings.weight", [size["vocabulary"], width], 0.0, 0.5)
    yield (of + "position_embeddings.weights.0", [axial(size)[0], 1, width // 2], 0.0, 0.5)
    yield (of + "position_embeddings.weights.1", [1, axial(size)[1], width // 2], 0.0, 0.5)
    for layer in range(size["layers"]):
        of = f"reformer.encoder.layers.{layer}."
        yield from norm_with_bias(of + "attention.layer_norm", width)
        for name in ("self_attention.query_key", "self_attention.value", "output.dense"):
            yield matrix(f"{of}attention.{name}.weight", width, width)
        yield from norm_with_bias(of + "feed_forward.layer_norm", width)
        yield from with_bias(of + "feed_forward.dense.dense", inner, width)
        yield from with_bias(of + "feed_forward.output.dense", width, inner)
    yield from norm_with_bias("reformer.encoder.layer_norm", 2 * width)
    yield ("lm_head.bias", [size["vocabulary"]], 0.0, 0.1)
    yield matrix("lm_head.decoder.weight", size["vocabulary"], 2 * width)


def axial(size):
    return 256, size["positions"] // 256


def reformer_config(size):
    # As many buckets as chunks, in two factors, as the original counts them itself.
    buckets = 2 * size["positions"] // size["chunk"]
    factor = 1 << (buckets.bit_length() // 2)
    return {"model_type": "reformer", "vocab_size": size["vocabulary"], "hidden_size": size["width"],
            "num_attention_heads": size["heads"], "attention_head_size": size["width"] // size["heads"],
            "num_hidden_layers": size["layers"], "attn_layers": ["lsh"] * size["layers"], "num_hashes": 1,
            "num_buckets": [factor, buckets // factor], "lsh_attn_chunk_length": size["chunk"],
            "lsh_num_chunks_before": 1, "lsh_num_chunks_after": 0, "feed_forward_size": size["inner"],
            "hidden_act": "relu", "max_position_embeddings": size["positions"], "axial_pos_embds": True,
            "axial_pos_shape": list(axial(size)), "axial_pos_embds_dim": [size["width"] // 2] * 2, "is_decoder": True,
            "hash_seed": 1, "tie_word_embeddings": False, "layer_norm_eps": 1e-12}


def universal(size):
    width, inner = size["width"], size["inner"]
    yield ("mask", [11, width], 1.0, 0.1)
    yield ("emb.weight", [size["vocabulary"], width], 0.0, 0.5)
    yield matrix("transformer_enc.embedding_proj.weight", width, width)
    of = "transformer_enc.enc."
    for name in ("query", "key", "value", "output"):
        yield matrix(f"{of}multi_head_attention.{name}_linear.weight", width, width)
    for layer, outputs, inputs in ((0, inner, width), (1, width, inner)):
        name = f"{of}positionwise_feed_forward.layers.{layer}.conv"
        yield (name + ".weight", [outputs, inputs, 3], 0.0, 1.0 / math.sqrt(3 * inputs))
        yield (name + ".bias", [outputs], 0.0, 0.1)
    for name in (of + "layer_norm_mha", of + "layer_norm_ffn", "transformer_enc.layer_norm"):
        yield (name + ".gamma", [width], 1.0, 0.1)
        yield (name + ".beta", [width], 0.0, 0.1)
    # Each round adds the same to what halts above 0.9.
    p = 0.95 / size["halts"]
    yield ("transformer_enc.act_fn.p.weight", [1, width], 0.0, 0.0)
    yield ("transformer_enc.act_fn.p.bias", [1], math.log(p / (1.0 - p)), 0.0)
    yield ("W.bias", [size["vocabulary"]], 0.0, 0.1)


def universal_config(size):
    return {"model_type": "universal_transformer_babi", "num_vocab": size["vocabulary"], "embedding_size": size["width"],
            "hidden_size": size["width"], "num_layers": size["layers"], "num_heads": size["heads"],
            "total_key_depth": size["width"], "total_value_depth": size["width"], "filter_size": size["inner"],
            "act": True}


MODELS = {"universal": (universal, universal_config), "longformer": (longformer, longformer_config), "big_bird": (big_bird, big_bird_config),
          "longnet": (longnet, longnet_config), "reformer": (reformer, reformer_config)}
