"""For make_gguf: how llama.cpp's files name what models with a state have. Matrices that llama.cpp itself leaves as floats
when it quantises, the small ones of RWKV-7's mixtures and Mamba's convolution, are floats here too."""

F32, Q8_0 = 0, 8


def either(matrix):
    """Blocks of 32 need rows of whole blocks."""
    return Q8_0 if matrix.shape[-1] % 32 == 0 else F32


def parts(ours, theirs, tensor):
    for part in (".weight", ".bias"):
        yield theirs + part, F32, tensor(ours + part)


def rwkv7(numpy, config, tensor):
    yield "token_embd.weight", Q8_0, tensor("emb.weight")
    yield from parts("blocks.0.ln0", "token_embd_norm", tensor)
    for layer in range(config["n_layer"]):
        ours, theirs = f"blocks.{layer}.", f"blk.{layer}."
        att, mix = ours + "att.", theirs + "time_mix_"
        yield from parts(ours + "ln1", theirs + "attn_norm", tensor)
        yield from parts(ours + "ln2", theirs + "attn_norm_2", tensor)
        yield (mix + "lerp_fused.weight", F32,
               numpy.stack([tensor(f"{att}x_{letter}").reshape(1, 1, -1) for letter in "rwkvag"]))
        for letter in "wavg":
            # The first layer's v is not used, but has to be there.
            of = att + ("a" if letter == "v" and layer == 0 else letter)
            if letter != "g":
                yield f"{mix}{letter}0.weight", F32, tensor(of + "0").ravel()
            for number in "12":
                yield f"{mix}{letter}{number}.weight", F32, numpy.ascontiguousarray(tensor(of + number).T)
        for name in ("k_k", "k_a", "r_k"):
            yield f"{mix}{name}.weight", F32, tensor(att + name).ravel()
        for name in ("receptance", "key", "value", "output"):
            yield f"{mix}{name}.weight", Q8_0, tensor(f"{att}{name}.weight")
        yield from parts(att + "ln_x", mix + "ln", tensor)
        yield theirs + "channel_mix_lerp_k.weight", F32, tensor(ours + "ffn.x_k").ravel()
        for name in ("key", "value"):
            yield f"{theirs}channel_mix_{name}.weight", Q8_0, tensor(f"{ours}ffn.{name}.weight")
    yield from parts("ln_out", "output_norm", tensor)
    yield "output.weight", Q8_0, tensor("head.weight")


def rwkv7_pairs(config):
    return {"context_length": 1 << 20, "embedding_length": config["n_embd"], "block_count": config["n_layer"],
            "attention.layer_norm_epsilon": 1e-5, "attention.head_count": 0, "feed_forward_length": config["dim_ffn"],
            "wkv.head_size": config["head_size"], "attention.decay_lora_rank": config["D_DECAY_LORA"],
            "attention.iclr_lora_rank": config["D_AAA_LORA"],
            "attention.value_residual_mix_lora_rank": config["D_MV_LORA"],
            "attention.gate_lora_rank": config["D_GATE_LORA"], "vocab_size": config["vocab_size"]}


def mamba(numpy, config, tensor):
    yield "token_embd.weight", Q8_0, tensor("backbone.embeddings.weight")
    for layer in range(config["num_hidden_layers"]):
        ours, theirs = f"backbone.layers.{layer}.mixer.", f"blk.{layer}."
        yield theirs + "attn_norm.weight", F32, tensor(f"backbone.layers.{layer}.norm.weight")
        yield theirs + "ssm_conv1d.weight", F32, tensor(ours + "conv1d.weight")[:, 0]
        yield theirs + "ssm_conv1d.bias", F32, tensor(ours + "conv1d.bias")
        for from_, to in (("in_proj", "ssm_in"), ("x_proj", "ssm_x"), ("dt_proj", "ssm_dt"), ("out_proj", "ssm_out")):
            matrix = tensor(f"{ours}{from_}.weight")
            yield f"{theirs}{to}.weight", either(matrix), matrix
        yield theirs + "ssm_dt.bias", F32, tensor(ours + "dt_proj.bias")
        yield theirs + "ssm_a", F32, -numpy.exp(tensor(ours + "A_log"))
        yield theirs + "ssm_d", F32, tensor(ours + "D")
    yield "output_norm.weight", F32, tensor("backbone.norm_f.weight")


def mamba_pairs(config):
    return {"context_length": 1 << 20, "embedding_length": config["hidden_size"], "feed_forward_length": 0,
            "block_count": config["num_hidden_layers"], "attention.head_count": 0,
            "attention.layer_norm_rms_epsilon": float(config["layer_norm_epsilon"]),
            "ssm.conv_kernel": config["conv_kernel"], "ssm.inner_size": config["intermediate_size"],
            "ssm.state_size": config["state_size"], "ssm.time_step_rank": config["time_step_rank"],
            "vocab_size": config["vocab_size"]}


def qwen35(numpy, config, tensor):
    def norm(ours, theirs):
        """Stored as what is added to 1."""
        return theirs + ".weight", F32, tensor(ours + ".weight") + 1

    yield "token_embd.weight", Q8_0, tensor("model.embed_tokens.weight")
    for layer, kind in enumerate(config["layer_types"]):
        ours, theirs = f"model.layers.{layer}.", f"blk.{layer}."
        if kind == "linear_attention":
            att = ours + "linear_attn."
            for from_, to in (("in_proj_qkv", "attn_qkv"), ("in_proj_z", "attn_gate"), ("in_proj_b", "ssm_beta"),
                              ("in_proj_a", "ssm_alpha"), ("out_proj", "ssm_out")):
                yield f"{theirs}{to}.weight", Q8_0, tensor(f"{att}{from_}.weight")
            yield theirs + "ssm_conv1d.weight", F32, tensor(att + "conv1d.weight")[:, 0]
            yield theirs + "ssm_dt.bias", F32, tensor(att + "dt_bias")
            yield theirs + "ssm_a", F32, -numpy.exp(tensor(att + "A_log"))
            yield theirs + "ssm_norm.weight", F32, tensor(att + "norm.weight")
        else:
            att = ours + "self_attn."
            for from_, to in (("q_proj", "attn_q"), ("k_proj", "attn_k"), ("v_proj", "attn_v"), ("o_proj", "attn_output")):
                yield f"{theirs}{to}.weight", Q8_0, tensor(f"{att}{from_}.weight")
            yield norm(att + "q_norm", theirs + "attn_q_norm")
            yield norm(att + "k_norm", theirs + "attn_k_norm")
        for name in ("gate", "up", "down"):
            yield f"{theirs}ffn_{name}.weight", Q8_0, tensor(f"{ours}mlp.{name}_proj.weight")
        yield norm(ours + "input_layernorm", theirs + "attn_norm")
        yield norm(ours + "post_attention_layernorm", theirs + "post_attention_norm")
    yield norm("model.norm", "output_norm")
    yield "output.weight", Q8_0, tensor("lm_head.weight")


def qwen35_pairs(config):
    rope = config["rope_parameters"]
    turned = int(config["head_dim"] * rope["partial_rotary_factor"])
    third = turned // 2 // 3
    return {"context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
            "feed_forward_length": config["intermediate_size"], "block_count": config["num_hidden_layers"],
            "attention.head_count": config["num_attention_heads"],
            "attention.head_count_kv": config["num_key_value_heads"], "attention.key_length": config["head_dim"],
            "attention.value_length": config["head_dim"],
            "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]), "rope.dimension_count": turned,
            # Of text all of them have the same position.
            "rope.dimension_sections": [turned // 2 - 2 * third, third, third, 0],
            "rope.freq_base": float(rope["rope_theta"]), "full_attention_interval": 4,
            "ssm.conv_kernel": config["linear_conv_kernel_dim"], "ssm.state_size": config["linear_key_head_dim"],
            "ssm.group_count": config["linear_num_key_heads"], "ssm.time_step_rank": config["linear_num_value_heads"],
            "ssm.inner_size": config["linear_num_value_heads"] * config["linear_value_head_dim"],
            "vocab_size": config["vocab_size"]}


# By model_type: the architecture's name, tensors, keys.
ARCHITECTURES = {"rwkv7": ("rwkv7", rwkv7, rwkv7_pairs), "mamba": ("mamba", mamba, mamba_pairs),
                 "qwen3_5_text": ("qwen35", qwen35, qwen35_pairs)}
