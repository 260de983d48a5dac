"""Makes the files of families/: models of one or two narrow layers, as Hugging Face's library stores them and as llama.cpp's
own converter makes GGUF files of them.

python make_families.py LLAMA_CPP     the folder with llama.cpp's convert_hf_to_gguf.py and gguf-py, e.g. of the source package
                                      of PyPI's llama-cpp-python 0.3.16; needs torch, transformers and what that program needs
"""

import json
import pathlib
import shutil
import sys

LLAMA_CPP = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(LLAMA_CPP / "gguf-py"), str(LLAMA_CPP)]

import convert_hf_to_gguf as llama
import gguf
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent / "families"
VOCABULARY = 16
DECODER = dict(vocab_size=VOCABULARY, hidden_size=8, num_attention_heads=2, num_key_value_heads=1, intermediate_size=12,
               num_hidden_layers=1, max_position_embeddings=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
ENCODER = dict(vocab_size=VOCABULARY, hidden_size=8, num_attention_heads=2, intermediate_size=12, num_hidden_layers=1,
               max_position_embeddings=20, pad_token_id=0)
ROPE = {"rope_type": "default", "rope_theta": 50000.0}
SLIDING = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
           "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
# Name of the folder: model type, class, configuration.
MODELS = {
    "bloom": ("bloom", "BloomForCausalLM", dict(vocab_size=VOCABULARY, hidden_size=8, n_layer=1, n_head=2, seq_length=8)),
    "gemma3": ("gemma3_text", "Gemma3ForCausalLM", dict(
        DECODER, num_hidden_layers=6, head_dim=6, query_pre_attn_scalar=6, sliding_window=5, rope_parameters=SLIDING)),
    "gptneox": ("gpt_neox", "GPTNeoXForCausalLM", dict(
        {k: v for k, v in DECODER.items() if k != "num_key_value_heads"},
        rope_parameters=dict(ROPE, rope_theta=1e4, partial_rotary_factor=0.5))),
    "lfm2": ("lfm2", "Lfm2ForCausalLM", dict(
        DECODER, num_hidden_layers=2, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False,
        block_ff_dim=12, conv_bias=False)),
    "mamba": ("mamba", "MambaForCausalLM", dict(
        vocab_size=VOCABULARY, hidden_size=6, state_size=3, num_hidden_layers=1, time_step_rank=2)),
    "mamba2": ("mamba2", "Mamba2ForCausalLM", dict(
        vocab_size=VOCABULARY, hidden_size=6, state_size=3, num_hidden_layers=1, num_heads=4, head_dim=3, n_groups=2,
        tie_word_embeddings=True)),
    "mpt": ("mpt", "MptForCausalLM", dict(vocab_size=VOCABULARY, d_model=8, n_heads=2, n_layers=1, max_seq_len=32)),
    "phi2": ("phi", "PhiForCausalLM", dict(
        DECODER, num_key_value_heads=2, intermediate_size=32, rope_parameters=dict(ROPE, rope_theta=1e4, partial_rotary_factor=0.5))),
    "phi3": ("phi3", "Phi3ForCausalLM", dict(
        DECODER, hidden_size=16, sliding_window=9, original_max_position_embeddings=32, tie_word_embeddings=False,
        rope_parameters=dict(ROPE, partial_rotary_factor=0.75))),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", dict(DECODER, rope_parameters=ROPE, tie_word_embeddings=True)),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", dict(DECODER, head_dim=6, rope_parameters=ROPE, tie_word_embeddings=False)),
    "bert": ("bert", "BertModel", ENCODER),
    "distilbert": ("distilbert", "DistilBertModel", dict(
        vocab_size=VOCABULARY, dim=8, n_heads=2, hidden_dim=12, n_layers=1, max_position_embeddings=20, pad_token_id=0)),
}


def classes(kind):
    yield kind
    for inner in kind.__subclasses__():
        yield from classes(inner)


def no_vocabulary(self):
    if isinstance(self, llama.BertModel):
        self.gguf_writer.add_token_type_count(self.hparams.get("type_vocab_size", 1))
    self._set_vocab_none()


for kind in classes(llama.TextModel):
    kind.set_vocab = no_vocabulary
llama.TextModel._create_vocab_sentencepiece = lambda self: ([b"x"] * VOCABULARY, [0.0] * VOCABULARY, [1] * VOCABULARY)


def shake(model):
    """Multiples of 1/64, so that adding 1 loses nothing; a logarithm of 0 is exact."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_((torch.randn_like(weight) * 16).round() / 64)
            if name.endswith("A_log"):
                weight.zero_()


def old_names(config):
    """llama.cpp's converter knows the names of before version 5."""
    rope = config.get("rope_parameters") or {}
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = 6
        rope = rope["full_attention"]
        config["rope_scaling"] = {"rope_type": rope["rope_type"], "factor": rope["factor"]}
    if rope:
        config.pop("rope_parameters", None)
        config["rope_theta"] = rope["rope_theta"]
        if "partial_rotary_factor" in rope:
            config["partial_rotary_factor"] = rope["partial_rotary_factor"]
    if config["model_type"] == "gpt_neox":
        config["rotary_pct"] = config.pop("partial_rotary_factor")
        config["rotary_emb_base"] = config.pop("rope_theta")
    return config


def to_gguf(folder, config, file):
    """As the program does it, without a vocabulary."""
    # The name that the authors of MPT gave it.
    name = config["architectures"][0].replace("Mpt", "MPT")
    kind = llama.ModelBase.from_model_architecture(name)
    with torch.inference_mode():
        kind(dir_model=folder, ftype=gguf.LlamaFileType.ALL_F32, fname_out=file, hparams=config).write()


def rwkv7():
    """llama.cpp's converter reads other checkpoints of it than ours; this is what it writes."""
    layers, width, head, inner = 2, 8, 4, 12
    ranks = {"w": 3, "a": 2, "v": 5, "g": 6}
    tensors = {"emb.weight": (VOCABULARY, width), "head.weight": (VOCABULARY, width)}
    for name in ("blocks.0.ln0", "ln_out"):
        tensors[name + ".weight"] = tensors[name + ".bias"] = (width,)
    for i in range(layers):
        of = f"blocks.{i}."
        for name in ("ln1", "ln2", "att.ln_x"):
            tensors[f"{of}{name}.weight"] = tensors[f"{of}{name}.bias"] = (width,)
        for letter in "rwkvag":
            tensors[f"{of}att.x_{letter}"] = (1, 1, width)
        for letter, rank in ranks.items():
            if letter != "g":
                tensors[f"{of}att.{letter}0"] = (1, 1, width)
            tensors[f"{of}att.{letter}1"] = (width, rank)
            tensors[f"{of}att.{letter}2"] = (rank, width)
        for name in ("k_k", "k_a"):
            tensors[f"{of}att.{name}"] = (1, 1, width)
        tensors[f"{of}att.r_k"] = (width // head, head)
        for name in ("receptance", "key", "value", "output"):
            tensors[f"{of}att.{name}.weight"] = (width, width)
        tensors[f"{of}ffn.x_k"] = (1, 1, width)
        tensors[f"{of}ffn.key.weight"] = (inner, width)
        tensors[f"{of}ffn.value.weight"] = (width, inner)
    torch.manual_seed(7)
    values = {name: ((torch.randn(shape) * 16).round() / 64) for name, shape in tensors.items()}
    config = {"model_type": "rwkv7", "vocab_size": VOCABULARY, "n_embd": width, "head_size": head, "n_layer": layers,
              "dim_ffn": inner, "D_DECAY_LORA": 3, "D_AAA_LORA": 2, "D_MV_LORA": 5, "D_GATE_LORA": 6,
              "layer_norm_eps": 1e-5}
    writer = gguf.GGUFWriter(str(HERE / "rwkv7.gguf"), "rwkv7")
    writer.add_context_length(1048576)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_layer_norm_eps(1e-5)
    writer.add_wkv_head_size(head)
    writer.add_decay_lora_rank(3)
    writer.add_iclr_lora_rank(2)
    writer.add_value_residual_mix_lora_rank(5)
    writer.add_gate_lora_rank(6)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.RWKV7, layers)
    for i in range(layers):
        fused = torch.stack([values[f"blocks.{i}.att.x_{letter}"] for letter in "rwkvag"])
        writer.add_tensor(f"blk.{i}.time_mix_lerp_fused.weight", fused.numpy())
    for name, value in values.items():
        if ".att.x_" in name:
            continue
        value = value.squeeze()
        # The names that llama.cpp's table has.
        theirs = name.replace("blocks", "model.layers").replace(".att.", ".attention.").replace("ffn", "feed_forward")
        theirs = theirs.replace("model.layers.0.ln0", "model.pre_ln").replace("emb.weight", "model.embeddings.weight")
        theirs = theirs.replace("ln_out", "model.ln_out")
        new = names.get_name(theirs, try_suffixes=(".weight", ".bias")) or names.get_name(
            theirs.removeprefix("model."), try_suffixes=(".weight", ".bias"))
        assert new is not None, name
        if not new.endswith((".weight", ".bias")):
            new += ".weight"
        if new.split(".")[-2][-2:] in ("w1", "w2", "a1", "a2", "v1", "v2", "g1", "g2"):
            value = value.T
        if "r_k" in new:
            value = value.flatten()
        writer.add_tensor(new, value.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    store("rwkv7", config, values)


def store(name, config, tensors):
    (HERE / name).mkdir(parents=True, exist_ok=True)
    (HERE / name / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, HERE / name / "model.safetensors")


def main():
    HERE.mkdir(exist_ok=True)
    for name, (model_type, kind, values) in MODELS.items():
        torch.manual_seed(7)
        config = transformers.AutoConfig.for_model(model_type, **values)
        # Without a pooler, which llama.cpp leaves out.
        more = {"add_pooling_layer": False} if kind == "BertModel" else {}
        model = getattr(transformers, kind)(config, **more).float().eval()
        shake(model)
        folder = HERE / name
        model.save_pretrained(folder)
        stored = old_names(json.loads((folder / "config.json").read_text()))
        stored.update({key: value for key, value in values.items() if key == "block_ff_dim"})
        stored["architectures"] = [kind]
        # A vocabulary would tell the tokens.
        for key in ("dtype", "transformers_version", "bos_token_id", "eos_token_id", "pad_token_id"):
            stored.pop(key, None)
        (folder / "config.json").write_text(json.dumps(stored, indent=2) + "\n")
        to_gguf(folder, dict(stored), HERE / (name + ".gguf"))
        store(name, stored, load_file(folder / "model.safetensors"))
        for extra in set(folder.iterdir()) - {folder / "config.json", folder / "model.safetensors"}:
            extra.unlink()
    rwkv7()


main()
