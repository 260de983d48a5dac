"""Random configurations of Hugging Face's models beside ours; started by tests/random-configs."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import traceback

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from transformers.utils import logging
from safetensors.torch import save_file

rng = random.Random()


def one(*values):
    return rng.choice(values)


def vocabulary():
    return {"vocab_size": one(61, 97), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def heads(*widths):
    """Heads, heads of keys and values, and their width."""
    count = one(1, 2, 3, 4, 6)
    return count, rng.choice([k for k in range(1, count + 1) if count % k == 0]), one(*widths)


def rope(part=None, width=None):
    """With the width of a head as Phi-3 has it, where pairs may have divisors of their own."""
    if width is not None:
        kind = one("default", "longrope")
    else:
        kind = one("default", "default", "linear", "llama3", "yarn") if part is None else one("default", "yarn")
    result = {"rope_type": kind, "rope_theta": one(1e4, 5e5)}
    if kind not in ("default", "longrope"):
        result["factor"] = one(2.0, 3.5, 8.0)
    if kind == "llama3":
        result.update(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
    if kind == "yarn":
        result["original_max_position_embeddings"] = one(32, 64)
        result.update(one({}, {}, {"attention_factor": 1.3}, {"beta_fast": 16, "beta_slow": 2}, {"truncate": False},
                          {"mscale": 1.0, "mscale_all_dim": 0.7}))
    if kind == "longrope":
        pairs = int(width * (part or 1)) // 2
        result["original_max_position_embeddings"] = 64
        for name in ("short_factor", "long_factor"):
            result[name] = [round(rng.uniform(1, 4), 2) for _ in range(pairs)]
        result.update(one({}, {"attention_factor": 1.2}, {"factor": 16.0}))
    if part is not None:
        result["partial_rotary_factor"] = part
    return result


def decoder(count, kv, width, hidden=None):
    return dict(vocabulary(), hidden_size=hidden or count * width, num_attention_heads=count,
                num_hidden_layers=one(1, 2, 3), num_key_value_heads=kv, intermediate_size=one(37, 64),
                max_position_embeddings=128, tie_word_embeddings=one(True, False))


def layer_types(layers, *kinds):
    return [one(*kinds) for _ in range(layers)]


# Decoders: what AutoConfig takes.


def gpt2():
    count = one(1, 2, 3, 4)
    return dict(vocabulary(), n_positions=64, n_embd=count * one(5, 8, 12), n_layer=one(1, 2, 3), n_head=count,
                n_inner=one(None, 37), activation_function=one("gelu_new", "gelu", "relu", "silu"),
                scale_attn_by_inverse_layer_idx=one(False, True), scale_attn_weights=one(True, True, False),
                tie_word_embeddings=one(True, False), layer_norm_epsilon=one(1e-5, 1e-3))


def llama():
    count, kv, width = heads(4, 6, 8, 10, 16)
    return dict(decoder(count, kv, width, count * width + one(0, 0, 8)), head_dim=width, rope_parameters=rope(),
                hidden_act=one("silu", "gelu", "relu"), rms_norm_eps=one(1e-6, 1e-3), attention_bias=one(False, True),
                mlp_bias=one(False, True))


def mistral():
    config = dict(llama(), sliding_window=one(None, 7, 20))
    del config["attention_bias"], config["mlp_bias"]
    return config


def qwen2():
    return dict(decoder(*heads(4, 8, 12)), rope_parameters=rope(), use_sliding_window=one(False, True),
                sliding_window=one(5, 16), max_window_layers=one(0, 1, 2))


def qwen3():
    return dict(qwen2(), head_dim=one(4, 8, 12), attention_bias=one(False, True))


def phi():
    return dict(decoder(*heads(8, 16)), hidden_act=one("gelu_new", "gelu"), rope_parameters=rope(one(0.5, 1.0)),
                qk_layernorm=one(False, True))


def phi3():
    count, kv, width = heads(8, 16)
    rotary = rope(one(0.5, 0.75, 1.0), width)
    return dict(decoder(count, kv, width), rope_parameters=rotary, sliding_window=one(None, 9, 500),
                original_max_position_embeddings=rotary.get("original_max_position_embeddings", 128))


def gpt_neox():
    count = one(1, 2, 3, 4)
    config = dict(decoder(count, count, one(8, 16)), hidden_act=one("gelu", "gelu_new", "relu"),
                  rope_parameters=rope(one(0.25, 0.5, 1.0)), use_parallel_residual=one(True, False),
                  attention_bias=one(True, False))
    del config["num_key_value_heads"]
    return config


def opt():
    count, _, width = heads(8, 12)
    hidden, post = count * width, one(False, False, True)
    return dict(vocabulary(), hidden_size=hidden, ffn_dim=one(37, 64), num_hidden_layers=one(1, 2, 3),
                num_attention_heads=count, activation_function=one("relu", "gelu"), do_layer_norm_before=not post,
                enable_bias=one(True, False), layer_norm_elementwise_affine=one(True, True, False),
                word_embed_proj_dim=one(hidden, hidden, hidden // 2), max_position_embeddings=128)


def gemma3_text():
    count, kv, width = heads(4, 8, 12)
    layers = one(1, 2, 3, 4)
    return dict(decoder(count, kv, width, one(24, 48)), num_hidden_layers=layers, head_dim=width,
                query_pre_attn_scalar=one(width, 7), sliding_window=one(5, 12), attention_bias=one(False, True),
                layer_types=layer_types(layers, "sliding_attention", "full_attention"),
                final_logit_softcapping=one(None, 20.0))


def bloom():
    count = one(1, 2, 3, 4, 6)
    return dict(vocabulary(), hidden_size=count * one(6, 8), n_layer=one(1, 2, 3), n_head=count,
                apply_residual_connection_post_layernorm=one(False, True), tie_word_embeddings=one(True, False))


def mpt():
    count = one(1, 2, 4)
    return dict(vocabulary(), d_model=count * 8, n_heads=count, n_layers=one(1, 2, 3), expansion_ratio=one(2, 4),
                max_seq_len=64)


def mamba():
    return dict(vocabulary(), hidden_size=one(20, 32), state_size=one(1, 3, 8, 16), num_hidden_layers=one(1, 2, 3),
                expand=one(1, 2, 3), conv_kernel=one(1, 2, 3, 4, 7), use_bias=one(False, True),
                hidden_act=one("silu", "gelu", "relu"), layer_norm_epsilon=one(1e-5, 1e-3),
                use_conv_bias=one(True, False), time_step_rank=one("auto", 1, 5), tie_word_embeddings=one(True, False))


def mamba2():
    count, width = one(2, 4, 6), one(4, 8)
    return dict(vocabulary(), num_heads=count, head_dim=width, hidden_size=count * width // 2, expand=2,
                state_size=one(1, 4, 9, 16), num_hidden_layers=one(1, 2, 3), n_groups=one(1, 2, count),
                conv_kernel=one(1, 2, 3, 4, 6), hidden_act=one("silu", "gelu"), layer_norm_epsilon=one(1e-5, 1e-3),
                chunk_size=one(4, 16, 64), use_bias=one(False, True), use_conv_bias=one(True, False),
                tie_word_embeddings=one(True, False), time_step_limit=one([0.0, float("inf")], [0.01, 0.5]))


def lfm2():
    layers = one(1, 2, 3, 4)
    return dict(decoder(*heads(8)), num_hidden_layers=layers, conv_bias=one(False, True), conv_L_cache=one(1, 2, 3, 4, 6),
                layer_types=[*layer_types(layers - 1, "conv", "full_attention"), "full_attention"],
                block_auto_adjust_ff_dim=one(False, True),
                block_multiple_of=one(1, 8, 16), block_ffn_dim_multiplier=one(1.0, 1.5), norm_eps=one(1e-5, 1e-3),
                rope_parameters=rope())


def recurrent_gemma():
    count, width = one(1, 2, 4), one(8, 12)
    return dict(vocabulary(), hidden_size=count * width, lru_width=one(count * width, None),
                num_hidden_layers=one(2, 3, 5), num_attention_heads=count, num_key_value_heads=one(1, count),
                head_dim=width, intermediate_size=one(48, 64), attention_window_size=one(2, 5, 12),
                conv1d_width=one(1, 2, 3, 4), logits_soft_cap=one(30.0, 8.0), attention_bias=one(False, True),
                hidden_activation=one("gelu_pytorch_tanh", "gelu", "silu"), rms_norm_eps=one(1e-6, 1e-3),
                tie_word_embeddings=one(True, True, False), rope_parameters=rope(one(0.5, 1.0)),
                block_types=one(["recurrent", "attention"], ["attention", "recurrent"], ["attention"],
                                ["attention", "recurrent", "recurrent"]))


def rwkv():
    return dict(vocabulary(), hidden_size=one(20, 32), intermediate_size=one(None, 50), num_hidden_layers=one(2, 3, 5),
                rescale_every=one(0, 1, 2, 6), context_length=64,
                tie_word_embeddings=one(False, True), layer_norm_epsilon=one(1e-5, 1e-3))


def qwen3_5_text():
    count, kv, width = heads(8, 16)
    layers, key_heads = one(1, 2, 3, 5), one(1, 2, 3)
    kinds = layer_types(layers - 1, "linear_attention", "full_attention", "linear_attention")
    return dict(decoder(count, kv, width, one(24, 36, 48)), num_hidden_layers=layers, head_dim=width,
                layer_types=[*kinds, "full_attention"],
                linear_num_key_heads=key_heads, linear_num_value_heads=key_heads * one(1, 2, 3),
                linear_key_head_dim=one(4, 8, 12), linear_value_head_dim=one(8, 10, 16),
                linear_conv_kernel_dim=one(2, 3, 4, 5), attention_bias=one(False, True),
                hidden_act=one("silu", "gelu"), rms_norm_eps=one(1e-6, 1e-3),
                rope_parameters=dict(rope(one(0.25, 0.5, 1.0)), mrope_section=[1, 1, 0]))


def xlstm():
    width, count = one(64, 128), one(1, 2, 4)
    return dict(vocabulary(), hidden_size=width, num_heads=count, num_hidden_layers=one(1, 2, 3), use_bias=one(False, True),
                qk_dim_factor=one(0.5, 1.0), v_dim_factor=one(0.5, 1.0, 2.0), ffn_proj_factor=one(0.6, 1.3, 2.667),
                ffn_round_up_to_multiple_of=one(1, 8, 64), gate_soft_cap=one(15.0, 4.0), norm_eps=one(1e-6, 1e-3),
                output_logit_soft_cap=one(30.0, 8.0), weight_mode=one("single", "fused"), chunk_size=one(8, 16),
                autocast_kernel_dtype="float32", add_out_norm=one(True, False), tie_word_embeddings=one(False, True))


# Encoders: configuration, name of the classes, and which heads.


def encoder(**more):
    count, _, width = heads(6, 8, 12)
    return dict(vocab_size=one(61, 97), hidden_size=count * width, num_attention_heads=count, pad_token_id=0,
                num_hidden_layers=one(1, 2, 3), intermediate_size=one(37, 64), hidden_act=one("gelu", "relu", "gelu_new"),
                max_position_embeddings=64, type_vocab_size=one(1, 2, 3), **more)


def distilbert():
    config = encoder(sinusoidal_pos_embds=one(False, True))
    names = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers",
             "intermediate_size": "hidden_dim", "hidden_act": "activation"}
    del config["type_vocab_size"]
    return {names.get(key, key): value for key, value in config.items()}


def modernbert():
    config = encoder(norm_bias=one(False, True), attention_bias=one(False, True), mlp_bias=one(False, True),
                     decoder_bias=one(True, False), classifier_bias=one(False, True), local_attention=one(6, 10),
                     global_attn_every_n_layers=one(1, 2, 3), classifier_pooling=one("cls", "mean"), bos_token_id=1,
                     eos_token_id=2, cls_token_id=1, sep_token_id=2, tie_word_embeddings=one(True, False))
    del config["type_vocab_size"]
    config["hidden_activation"] = config.pop("hidden_act")
    return config


def albert():
    layers = one(1, 2, 4)
    return dict(encoder(embedding_size=one(16, 20)), num_hidden_layers=layers, num_hidden_groups=one(1, layers))


# Of text, sound or pictures.


def t5():
    return dict(vocab_size=one(61, 97), d_model=one(24, 40), d_kv=one(5, 8, 12), d_ff=one(37, 64), num_layers=one(1, 2, 3),
                num_decoder_layers=one(1, 2), num_heads=one(1, 2, 3, 4), relative_attention_num_buckets=one(6, 8, 32),
                relative_attention_max_distance=one(20, 128), tie_word_embeddings=one(True, False), pad_token_id=0,
                feed_forward_proj=one("relu", "gated-gelu", "gelu", "gated-silu"), eos_token_id=1, decoder_start_token_id=0)


def whisper():
    count, _, width = heads(6, 8, 12)
    return dict(vocabulary(), d_model=count * width, encoder_layers=one(1, 2), decoder_layers=one(1, 2, 3),
                encoder_attention_heads=count, decoder_attention_heads=count, encoder_ffn_dim=one(37, 64),
                decoder_ffn_dim=one(37, 64), num_mel_bins=one(16, 20, 80), max_source_positions=one(30, 45),
                max_target_positions=48, activation_function=one("gelu", "relu"), scale_embedding=one(False, True),
                decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[2])


def vit():
    config, patch = encoder(qkv_bias=one(True, False), num_channels=one(1, 3)), one(4, 5, 6)
    for key in ("vocab_size", "max_position_embeddings", "type_vocab_size", "pad_token_id"):
        del config[key]
    return dict(config, patch_size=patch, image_size=patch * one(3, 5, 7))


def longt5():
    config = dict(t5(), local_radius=one(2, 3, 5, 8), global_block_size=one(2, 4, 8),
                  encoder_attention_type=one("local", "transient-global"), feed_forward_proj=one("relu", "gated-gelu"))
    return config


def nystromformer():
    landmarks = one(4, 8)
    return encoder(num_landmarks=landmarks, segment_means_seq_len=landmarks * one(1, 2, 3), conv_kernel_size=one(None, 3, 5),
                   inv_coeff_init_option=one(False, True))


def fnet():
    config = encoder()
    config["type_vocab_size"] = 2
    del config["num_attention_heads"]
    return config


def big_bird():
    return encoder(attention_type=one("block_sparse", "original_full"), block_size=one(2, 4), num_random_blocks=one(1, 2),
                   use_bias=one(True, False), rescale_embeddings=one(False, True))


def longformer():
    config, window = encoder(), one(4, 6, 10)
    # The original fills texts up to the widest.
    return dict(config, attention_window=[one(window, 2 * window) for _ in range(config["num_hidden_layers"])])


def switch_transformers():
    return dict(t5(), feed_forward_proj="relu", num_experts=one(2, 3, 4), expert_capacity=64, num_layers=one(2, 4),
                num_decoder_layers=one(1, 2), num_sparse_encoder_layers=one(1, 2), num_sparse_decoder_layers=1,
                tie_word_embeddings=True)


def xlnet():
    count, _, width = heads(4, 6, 8)
    return dict(vocab_size=one(61, 97), d_model=count * width, n_layer=one(1, 2, 3), n_head=count, d_inner=one(37, 64),
                ff_activation=one("gelu", "relu"), attn_type="bi", mem_len=one(None, 9), clamp_len=one(-1, 6),
                layer_norm_eps=one(1e-12, 1e-3), tie_word_embeddings=one(True, False), pad_token_id=5)


def reformer():
    """With rounds, lists of buckets and lengths that leave chunks unfilled."""
    axes, part = one([4, 8], [8, 16], [16, 8]), one(8, 12)
    width, causal, axial = one(24, 32, 40), one(True, False), one(True, True, False)
    return dict(vocab_size=one(61, 97), hidden_size=width, num_attention_heads=one(1, 2, 3, 4),
                attention_head_size=one(4, 8, 10, 12), attn_layers=layer_types(one(1, 2, 3, 4), "local", "lsh"),
                num_hashes=one(1, 2, 3, 4), num_buckets=one(2, 4, 6, 8, 16, [2, 4], [4, 2]),
                lsh_attn_chunk_length=one(4, 8, 12, 16), local_attn_chunk_length=one(4, 6, 8, 12),
                lsh_num_chunks_before=one(1, 1, 0, 2), local_num_chunks_before=one(1, 1, 0, 2),
                lsh_num_chunks_after=0 if causal else one(0, 1), local_num_chunks_after=0 if causal else one(0, 1),
                hidden_act=one("relu", "gelu", "gelu_new"), feed_forward_size=one(37, 64), is_decoder=causal,
                axial_pos_embds=axial, axial_pos_shape=axes, axial_pos_embds_dim=[part, width - part],
                max_position_embeddings=axes[0] * axes[1] if axial else 128, hash_seed=rng.randrange(1000),
                pad_token_id=0, eos_token_id=2, tie_word_embeddings=False)


DECODERS = [gpt2, llama, mistral, qwen2, qwen3, phi, phi3, gpt_neox, opt, gemma3_text, bloom, mpt, mamba, mamba2, lfm2,
            recurrent_gemma, rwkv, qwen3_5_text, xlstm]
ENCODERS = {
    "bert": ("Bert", lambda: encoder()),
    "roberta": ("Roberta", lambda: dict(encoder(), type_vocab_size=1, pad_token_id=1)),
    "electra": ("Electra", lambda: encoder(embedding_size=one(16, 24))),
    "albert": ("Albert", albert),
    "distilbert": ("DistilBert", distilbert),
    "modernbert": ("ModernBert", modernbert),
}
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")


def shake(model):
    """Nothing stays 0 or 1, and logits are of the size of 1."""
    torch.manual_seed(rng.randrange(1 << 30))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn_like(weight)
            if weight.dim() >= 2 and weight.shape[-1] > 1 and "A_log" not in name:
                weight.copy_(noise / weight[0].numel() ** 0.5)
            else:
                weight.add_(0.1 * noise)
    model.tie_weights()


def new_decoder(kind):
    config = transformers.AutoConfig.for_model(kind.__name__, **kind())
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    shake(model)
    tokens = torch.randint(3, config.vocab_size, (one(1, 2), one(13, 29, 41)))
    return model, {"input_ids": tokens}, "logits"


def new_encoder(name):
    prefix, make = ENCODERS[name]
    values, head = make(), one(*HEADS)
    config = getattr(transformers, prefix + "Config")(**values)
    if "Classification" in head:
        config.num_labels = one(2, 3, 5)
    model = getattr(transformers, prefix + head)(config).float().eval()
    shake(model)
    shape = (one(1, 2), one(11, 23, 37))
    inputs = {"input_ids": torch.randint(4, config.vocab_size, shape), "attention_mask": torch.ones(shape, dtype=torch.long)}
    if values.get("type_vocab_size", 1) > 1:
        inputs["token_type_ids"] = torch.randint(0, values["type_vocab_size"], shape)
    return model, inputs, "last_hidden_state" if head == "Model" else "logits"


def new_translator():
    config = transformers.T5Config(**t5())
    model = transformers.T5ForConditionalGeneration(config).float().eval()
    shake(model)
    rows, tokens = one(1, 2), one(9, 19, 31)
    inputs = {"input_ids": torch.randint(2, config.vocab_size, (rows, tokens)),
              "attention_mask": torch.ones((rows, tokens), dtype=torch.long),
              "decoder_input_ids": torch.randint(2, config.vocab_size, (rows, one(7, 12)))}
    return model, inputs, "logits"


def new_long_translator():
    config = transformers.LongT5Config(**longt5())
    model = transformers.LongT5ForConditionalGeneration(config).float().eval()
    shake(model)
    tokens = one(9, 22, 37)
    inputs = {"input_ids": torch.randint(2, config.vocab_size, (1, tokens)),
              "attention_mask": torch.ones((1, tokens), dtype=torch.long),
              "decoder_input_ids": torch.randint(2, config.vocab_size, (1, one(7, 12)))}
    return model, inputs, "logits"


def new_mixer(prefix, values, tokens, masked):
    """An encoder that has no attention over all keys, with or without its head for words."""
    head = one("Model", "ForMaskedLM", "ForSequenceClassification")
    config = getattr(transformers, prefix + "Config")(**values)
    model = getattr(transformers, prefix + head)(config).float().eval()
    shake(model)
    inputs = {"input_ids": torch.randint(4, config.vocab_size, (1, tokens))}
    if masked:
        inputs["attention_mask"] = torch.ones((1, tokens), dtype=torch.long)
    if prefix == "Longformer":
        # The original's own choice when it classifies and is given nothing.
        inputs["global_attention_mask"] = torch.zeros((1, tokens), dtype=torch.long)
        inputs["global_attention_mask"][:, 0] = head == "ForSequenceClassification" or one(True, False)
    return model, inputs, "last_hidden_state" if head == "Model" else "logits"


def new_switch():
    config = transformers.SwitchTransformersConfig(**switch_transformers())
    model = transformers.SwitchTransformersForConditionalGeneration(config).float().eval()
    shake(model)
    tokens = one(9, 22, 37)
    inputs = {"input_ids": torch.randint(2, config.vocab_size, (1, tokens)),
              "attention_mask": torch.ones((1, tokens), dtype=torch.long),
              "decoder_input_ids": torch.randint(2, config.vocab_size, (1, one(7, 12)))}
    return model, inputs, "logits"


def new_xlnet():
    config = transformers.XLNetConfig(**xlnet())
    model = transformers.XLNetLMHeadModel(config).float().eval()
    shake(model)
    shape = (one(1, 2), one(5, 13, 29))
    inputs = {"input_ids": torch.randint(6, config.vocab_size, shape)}
    if one(True, False):
        inputs["token_type_ids"] = torch.randint(0, 2, shape)
    return model, inputs, "logits"


def hashes_in_floats(attention, kept):
    """Rotations are drawn as floats for doubles too, and the buckets that come of them are kept."""
    original = attention._hash_vectors

    def hash_vectors(*arguments, **more):
        draw = torch.randn
        torch.randn = lambda *shape, dtype=None, **others: draw(*shape, **others).to(dtype)
        try:
            found = original(*arguments, **more)
        finally:
            torch.randn = draw
        kept.append(found.clone())
        return found

    attention._hash_vectors = hash_vectors


def new_reformer():
    """The original's float32 is off by up to 1e-2 where rounds are mixed whose tokens see but themselves, at -1e5: its float64
    is as good an answer. Buckets are what the original hashes to."""
    values = reformer()
    config = transformers.ReformerConfig(**values)
    head = "ModelWithLMHead" if values["is_decoder"] else one("Model", "ForMaskedLM", "ForSequenceClassification")
    model = getattr(transformers, "Reformer" + head)(config).float().eval()
    shake(model)
    # Up to version 4 the bias is the decoder's, from 5 on it is added to nothing.
    if hasattr(model, "lm_head"):
        model.lm_head.bias.data.zero_()
    tokens = min(one(3, 9, 17, 29, 41, 61), config.max_position_embeddings - 16)
    inputs = {"input_ids": torch.randint(1, config.vocab_size, (one(1, 2), tokens))}
    output, buckets = "last_hidden_state" if head == "Model" else "logits", {}
    for index, layer in enumerate((model if head == "Model" else model.reformer).encoder.layers):
        if values["attn_layers"][index] == "lsh":
            hashes_in_floats(layer.attention.self_attention, buckets.setdefault("layer%d.buckets" % index, []))

    def more():
        result = {name: kept[0] for name, kept in buckets.items() if kept}
        result[output + ".fp64"] = getattr(model.double()(**inputs), output).float()
        return result

    model.more_expected = more
    return model, inputs, output


def new_nystromformer():
    values = nystromformer()
    return new_mixer("Nystromformer", values, values["segment_means_seq_len"], True)


def new_listener():
    config = transformers.WhisperConfig(**whisper())
    model = transformers.WhisperForConditionalGeneration(config).float().eval()
    fixed = model.model.encoder.embed_positions.weight.clone()
    shake(model)
    with torch.no_grad():
        model.model.encoder.embed_positions.weight.copy_(fixed)
    inputs = {"input_features": torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions),
              "decoder_input_ids": torch.randint(4, config.vocab_size, (1, one(7, 12)))}
    return model, inputs, "logits"


def new_viewer():
    config = transformers.ViTConfig(**vit())
    config.num_labels = one(2, 7)
    model = transformers.ViTForImageClassification(config).float().eval()
    shake(model)
    shape = (one(1, 2), config.num_channels, config.image_size, config.image_size)
    return model, {"pixel_values": torch.randn(shape)}, "logits"


def write(model, inputs, output, folder):
    """As the original saves it, before the run: some models change their weights then."""
    model.save_pretrained(folder)
    with torch.no_grad():
        tensors = dict(inputs, **{output: getattr(model(**inputs), output).float()})
        if hasattr(model, "more_expected"):
            tensors.update(model.more_expected())
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder + "/io.safetensors",
              metadata={"atol_fp32": "2e-4"})


def last_line(result):
    return ((result.stderr.strip() or result.stdout.strip()).splitlines() or [""])[-1]


def compare(folder, programs):
    """None, or what is wrong; and whether it was refused."""
    for weights, more in (("f32", []), ("int8", ["--min-cosine", "0.98"])):
        path = folder + "/" + weights + ".oxb"
        command = [programs + "/oxbow-convert", folder, "-o", path, "--weights", weights, "--no-quality"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            return last_line(result), True
        command = [programs + "/oxbow", "verify", path, folder + "/io.safetensors"] + more
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            return weights + ": " + last_line(result), False
    return None, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("types", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    makers = {kind.__name__: (lambda kind=kind: new_decoder(kind)) for kind in DECODERS}
    makers.update({name: (lambda name=name: new_encoder(name)) for name in ENCODERS})
    makers.update(t5=new_translator, whisper=new_listener, vit=new_viewer, longt5=new_long_translator,
                  nystromformer=new_nystromformer, fnet=lambda: new_mixer("FNet", fnet(), one(11, 23, 37), False),
                  big_bird=lambda: new_mixer("BigBird", big_bird(), one(13, 29, 61), True),
                  longformer=lambda: new_mixer("Longformer", longformer(), one(13, 29, 61), True),
                  switch_transformers=new_switch, xlnet=new_xlnet, reformer=new_reformer)
    unknown = [name for name in options.types if name not in makers]
    if unknown:
        sys.exit("tests/random-configs: unknown type " + ", ".join(unknown) + "; known are " + ", ".join(makers))
    passed = failed = 0
    for name in options.types or makers:
        counts = {"same": 0, "refused": 0, "passed over": 0}
        for index in range(options.each):
            rng.seed("%s %d %d" % (name, options.seed, index))
            folder = "%s/%s-%d-%d" % (options.folder, name, options.seed, index)
            shutil.rmtree(folder, ignore_errors=True)
            try:
                model, inputs, output = makers[name]()
                write(model, inputs, output, folder)
            except Exception:
                counts["passed over"] += 1
                print("  %s: the original: %s" % (folder, traceback.format_exc().strip().splitlines()[-1]))
                continue
            problem, refused = compare(folder, options.bin)
            if problem is None:
                counts["same"] += 1
                passed += 1
                shutil.rmtree(folder)
            elif refused:
                counts["refused"] += 1
                print("  " + problem)
            else:
                failed += 1
                print("  FAILED %s: %s" % (folder, problem))
        print(name + ": " + ", ".join("%d %s" % (n, what) for what, n in counts.items() if n), flush=True)
    print("tests: %d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(1 if failed or passed == 0 else 0)


if __name__ == "__main__":
    main()
