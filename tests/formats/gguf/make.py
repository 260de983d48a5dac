"""Makes the GGUF files of this folder, and what they must be read as, with ggml's own Python library.

python make.py        needs: pip install gguf==0.19.0 sentencepiece safetensors numpy ml_dtypes
"""

import json
import pathlib

import gguf
import ml_dtypes
import numpy as np
import sentencepiece
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent.parent
TYPES = {name: gguf.GGMLQuantizationType[name] for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0")}
CONV1D = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")


def permuted(rows, heads):
    """As llama.cpp wants queries and keys: the two rows of a rotated pair next to each other."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(shape)


def unpermuted(rows, heads):
    shape = rows.shape
    return rows.reshape(heads, shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(shape)


def moved(name, values, config, rotary):
    """From the layout of transformers to that of GGUF, or back."""
    if name.endswith(CONV1D):
        return np.ascontiguousarray(values.T)
    if ".q_proj." in name:
        return rotary(values, config["num_attention_heads"])
    if ".k_proj." in name:
        return rotary(values, config["num_key_value_heads"])
    return values


def rope_factors(config):
    """The tensor rope_freqs of Llama 3's scaling."""
    scaling = config["rope_scaling"]
    width = config["hidden_size"] // config["num_attention_heads"]
    frequencies = np.float32(config["rope_theta"]) ** (-np.arange(0, width, 2, dtype=np.float32) / width)
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - kept) / scaling["factor"] + kept)).astype(np.float32)


def add_keys(writer, config):
    if config["model_type"] == "gpt2":
        writer.add_block_count(config["n_layer"])
        writer.add_context_length(config["n_positions"])
        writer.add_embedding_length(config["n_embd"])
        writer.add_feed_forward_length(config.get("n_inner") or 4 * config["n_embd"])
        writer.add_head_count(config["n_head"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
        return
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    scaling = config.get("rope_scaling") or {}
    if scaling.get("type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(scaling["factor"])
    if scaling.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config))


def add_tokens(writer, config):
    for name, add in (("bos", writer.add_bos_token_id), ("eos", writer.add_eos_token_id)):
        if config.get(name + "_token_id") is not None:
            add(config[name + "_token_id"])


def write(name, config, tensors, type_name, add_vocabulary=add_tokens):
    """Writes the file, and returns the tensors as they are after what the type does to them."""
    arch = config["model_type"]
    layers = config.get("n_layer") or config["num_hidden_layers"]
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper()), layers)
    writer = gguf.GGUFWriter(str(HERE / (name + ".gguf")), arch)
    writer.add_type("model")
    writer.add_name(pathlib.Path(name).name)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_keys(writer, config)
    add_vocabulary(writer, config)
    after = {}
    for hf_name, values in tensors.items():
        stored = moved(hf_name, values, config, permuted)
        # Vectors stay as they are, as with llama.cpp's converter.
        kind = TYPES[type_name if stored.ndim > 1 else "F32"]
        data = gguf.quants.quantize(stored, kind)
        gguf_name = names.get_name(hf_name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(gguf_name, data, raw_dtype=kind)
        back = gguf.quants.dequantize(data, kind).reshape(stored.shape)
        back = np.ascontiguousarray(moved(hf_name, back, config, unpermuted))
        narrow = {"F16": np.float16, "BF16": ml_dtypes.bfloat16}.get(kind.name, np.float32)
        after[hf_name] = back.astype(narrow)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return after


def write_expected(name, config, tensors):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(tensors, folder / "model.safetensors")


def golden(name):
    folder = TESTS / "golden" / name
    return json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")


def cut(values, *shape):
    """The first numbers of each row, in this shape."""
    return np.resize(values[tuple(slice(n) for n in shape)], shape).astype(np.float32)


def small_gpt2(vocabulary):
    _, full = golden("gpt2/g1_tied")
    width, inner, positions = 32, 128, 16
    config = {
        "model_type": "gpt2", "vocab_size": vocabulary, "n_positions": positions, "n_embd": width,
        "n_layer": 1, "n_head": 4, "n_inner": inner, "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0,
    }
    shapes = {
        "wte.weight": (vocabulary, width), "wpe.weight": (positions, width),
        "h.0.ln_1.weight": (width,), "h.0.ln_1.bias": (width,),
        "h.0.attn.c_attn.weight": (width, 3 * width), "h.0.attn.c_attn.bias": (3 * width,),
        "h.0.attn.c_proj.weight": (width, width), "h.0.attn.c_proj.bias": (width,),
        "h.0.ln_2.weight": (width,), "h.0.ln_2.bias": (width,),
        "h.0.mlp.c_fc.weight": (width, inner), "h.0.mlp.c_fc.bias": (inner,),
        "h.0.mlp.c_proj.weight": (inner, width), "h.0.mlp.c_proj.bias": (width,),
        "ln_f.weight": (width,), "ln_f.bias": (width,),
    }
    return config, {"transformer." + k: cut(full["transformer." + k], *s) for k, s in shapes.items()}


def small_llama(vocabulary):
    _, full = golden("llama/l1_gqa")
    width, inner, keys = 32, 64, 16
    config = {
        "model_type": "llama", "vocab_size": vocabulary, "max_position_embeddings": 16,
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "attention_bias": True, "mlp_bias": True,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
    }
    layer = "model.layers.0."
    matrices = {
        "self_attn.q_proj": (width, width), "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width), "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    tensors = {"model.embed_tokens.weight": cut(full["model.embed_tokens.weight"], vocabulary, width)}
    for name, shape in matrices.items():
        values = full[layer + name + ".weight"]
        tensors[layer + name + ".weight"] = cut(values, *shape)
        # The golden model has no biases; numbers of the next layer will do.
        tensors[layer + name + ".bias"] = cut(full["model.layers.1." + name + ".weight"][:, 0], shape[0])
    for name in ("input_layernorm", "post_attention_layernorm"):
        tensors[layer + name + ".weight"] = cut(full[layer + name + ".weight"], width)
    tensors["model.norm.weight"] = cut(full["model.norm.weight"], width)
    tensors["lm_head.weight"] = cut(full["lm_head.weight"], vocabulary, width)
    return config, tensors


def blocks():
    """All that can be special about a block, as raw tensors and as what the library makes of them."""
    random = np.random.default_rng(7)
    # 0, the smallest and the largest half, -0, and everyday numbers with both signs.
    scales = np.array([0x0000, 0x0001, 0x7BFF, 0x8000, 0x83FF, 0x3C00, 0xBC00, 0x2E66] * 4, np.uint16)
    writer = gguf.GGUFWriter(str(HERE / "blocks.gguf"), "none")
    expected = {}
    for name, number_bytes in (("Q8_0", 32), ("Q4_0", 16)):
        numbers = random.integers(0, 256, (len(scales), number_bytes), np.uint8)
        data = np.concatenate([scales.view(np.uint8).reshape(-1, 2), numbers], axis=1)
        data = np.ascontiguousarray(data.reshape(8, -1))
        writer.add_tensor(name, data, raw_dtype=TYPES[name])
        expected[name] = np.ascontiguousarray(gguf.quants.dequantize(data, TYPES[name]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, HERE / "blocks.safetensors")


# Where the halves of a block lie: its scales, and its least value.
BLOCK_HALVES = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
    "Q8_K": [], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
    "MXFP4": [], "NVFP4": [],
}


def all_blocks():
    """Random blocks of every type that is read, as bytes and as what the library makes of them."""
    random = np.random.default_rng(7)
    tensors = {}
    for name, halves in BLOCK_HALVES.items():
        number = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[number]
        raw = random.integers(0, 256, (6, size), dtype=np.uint8)
        for place in halves:
            raw[:, place:place + 2] = random.normal(0, 0.1, 6).astype(np.float16).view(np.uint8).reshape(6, 2)
        if name == "Q8_K":
            # The library cannot read it: a scale, numbers, and their sums.
            scales = random.normal(0, 0.1, (6, 1)).astype(np.float32)
            raw[:, :4] = scales.view(np.uint8)
            tensors[name + ".raw"] = raw
            tensors[name] = scales * raw[:, 4:260].view(np.int8).astype(np.float32)
            continue
        if name == "IQ1_M":
            # The scale's four parts are the upper bits of four numbers.
            half = random.normal(0, 0.1, 6).astype(np.float16).view(np.uint16)
            for i in range(4):
                raw[:, 49 + 2 * i] = (raw[:, 49 + 2 * i] & 15) | ((half >> (4 * i) & 15) << 4).astype(np.uint8)
        if name == "MXFP4":
            raw[:, 0] = [0, 1, 2, 120, 127, 130]
        tensors[name + ".raw"] = raw
        tensors[name] = gguf.quants.dequantize(raw, number).astype(np.float32).reshape(6, block)
    save_file(tensors, HERE / "all_blocks.safetensors")


def byte_level(writer, tokens, merges, special, pre):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges(merges)


def gpt2_vocabulary():
    folder = TESTS / "tokenizers" / "gpt2" / "latin"
    ids = json.loads((folder / "vocab.json").read_text())
    lines = (folder / "merges.txt").read_text().splitlines()
    merges = [line for line in lines if not line.startswith("#version")]

    def add(writer, _):
        tokens = sorted(ids, key=ids.get)
        byte_level(writer, tokens, merges, {"<|endoftext|>"}, "gpt-2")
        writer.add_bos_token_id(ids["<|endoftext|>"])
        writer.add_eos_token_id(ids["<|endoftext|>"])

    return len(ids), add


def llama3_vocabulary():
    file = json.loads((TESTS / "tokenizers" / "llama3" / "arabic_hebrew" / "tokenizer.json").read_text())
    ids = dict(file["model"]["vocab"])
    added = {token["content"]: token["id"] for token in file["added_tokens"]}
    ids.update(added)
    merges = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]

    def add(writer, _):
        byte_level(writer, sorted(ids, key=ids.get), merges, set(added), "llama-bpe")
        writer.add_bos_token_id(ids["<|begin_of_text|>"])
        writer.add_eos_token_id(ids["<|end_of_text|>"])
        writer.add_add_bos_token(True)

    return len(ids), add


def llama2_vocabulary():
    model = sentencepiece.SentencePieceProcessor(
        model_file=str(TESTS / "tokenizers" / "spbpe" / "latin" / "tokenizer.model")
    )

    def kind(i):
        for is_kind, token_type in (
            (model.IsUnknown, gguf.TokenType.UNKNOWN),
            (model.IsControl, gguf.TokenType.CONTROL),
            (model.IsUnused, gguf.TokenType.UNUSED),
            (model.IsByte, gguf.TokenType.BYTE),
        ):
            if is_kind(i):
                return token_type
        return gguf.TokenType.NORMAL

    def add(writer, _):
        count = model.GetPieceSize()
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([model.IdToPiece(i).encode() for i in range(count)])
        writer.add_token_scores([model.GetScore(i) for i in range(count)])
        writer.add_token_types([kind(i) for i in range(count)])
        writer.add_bos_token_id(model.bos_id())
        writer.add_eos_token_id(model.eos_id())
        writer.add_unk_token_id(model.unk_id())
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(False)
        writer.add_add_space_prefix(True)

    return model.GetPieceSize(), add


def toy_byte_level(writer, _):
    byte_level(writer, ["a", "b", "ab", "\u0120", "<|endoftext|>"], ["a b"], {"<|endoftext|>"}, "gpt-2")
    writer.add_eos_token_id(4)


def toy_sentencepiece(writer, _):
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", "<0x0A>", "\u2581a"])
    writer.add_token_scores([0.0, 0.0, 0.0, 0.0, -1.0])
    writer.add_token_types([2, 3, 3, 6, 1])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages }}")


def main():
    write("gpt2-f32", *golden("gpt2/g1_tied"), "F32")
    write("llama-f32", *golden("llama/l2_mha_linear"), "F32")
    for arch, make in (("gpt2", small_gpt2), ("llama", small_llama)):
        for type_name in ("F16", "BF16", "Q8_0", "Q4_0"):
            config, tensors = make(40)
            name = f"{arch}-{type_name.lower()}"
            write_expected(name, config, write(name, config, tensors, type_name))
    blocks()
    all_blocks()
    for name, make, vocabulary in (
        ("gpt2-vocabulary", small_gpt2, gpt2_vocabulary),
        ("llama2-vocabulary", small_llama, llama2_vocabulary),
        ("llama3-vocabulary", small_llama, llama3_vocabulary),
    ):
        count, add = vocabulary()
        config, tensors = make(count)
        tensors.pop("lm_head.weight", None)
        write(name, config, tensors, "Q4_0", add)
    # Seeds of the fuzzer.
    write("../../fuzz/seeds/gguf/gpt2", *small_gpt2(5), "Q4_0", toy_byte_level)
    write("../../fuzz/seeds/gguf/llama", *small_llama(5), "Q8_0", toy_sentencepiece)


main()
