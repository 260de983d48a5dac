"""Runs a Marian checkpoint of make_model with CTranslate2; the commands translate, memory and quit of peers.py.

    translation_server.py DIR FOLDER THREADS [int8]

FOLDER is where its own form of the model is kept. The converter of CTranslate2 wants PyTorch, transformers and a
tokenizer; its specification is filled here with the same tensors instead, words being their numbers.
"""

import json
import math
import os
import sys

import ctranslate2
import numpy
from ctranslate2.specs import common_spec, transformer_spec

from checkpoint import Checkpoint
from serving import Clock, answer, status_bytes


def positions(count, width):
    """Sines of all columns first, then cosines, as Marian has them."""
    angle = numpy.arange(count)[:, None] / 10000 ** (2 * (numpy.arange(width) // 2) / width)
    return numpy.concatenate([numpy.sin(angle[:, 0::2]), numpy.cos(angle[:, 1::2])], axis=1).astype("f4")


class Filler:
    def __init__(self, tensor):
        self._tensor = tensor

    def linear(self, spec, *names):
        spec.weight = numpy.concatenate([self._tensor(name + ".weight") for name in names])
        spec.bias = numpy.concatenate([self._tensor(name + ".bias") for name in names])

    def norm(self, spec, name):
        spec.gamma, spec.beta = self._tensor(name + ".weight"), self._tensor(name + ".bias")

    def layer(self, spec, prefix, decoder):
        own, other = prefix + "self_attn.", prefix + "encoder_attn."
        self.linear(spec.self_attention.linear[0], own + "q_proj", own + "k_proj", own + "v_proj")
        self.linear(spec.self_attention.linear[1], own + "out_proj")
        self.norm(spec.self_attention.layer_norm, prefix + "self_attn_layer_norm")
        if decoder:
            self.linear(spec.attention.linear[0], other + "q_proj")
            self.linear(spec.attention.linear[1], other + "k_proj", other + "v_proj")
            self.linear(spec.attention.linear[2], other + "out_proj")
            self.norm(spec.attention.layer_norm, prefix + "encoder_attn_layer_norm")
        self.linear(spec.ffn.linear_0, prefix + "fc1")
        self.linear(spec.ffn.linear_1, prefix + "fc2")
        self.norm(spec.ffn.layer_norm, prefix + "final_layer_norm")


def write_model(source, folder, int8):
    checkpoint = Checkpoint(source)
    config, tensor = checkpoint.config, checkpoint.tensor
    fill = Filler(lambda name: numpy.array(tensor(name)))
    spec = transformer_spec.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]), config["encoder_attention_heads"], pre_norm=False,
        activation=common_spec.Activation.SWISH)
    words = numpy.array(tensor("model.shared.weight"))
    for side, embeddings in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
        side.scale_embeddings = math.sqrt(config["d_model"])
        side.position_encodings.encodings = positions(config["max_position_embeddings"], config["d_model"])
        embeddings.weight = words
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for i, layer in enumerate(side.layer):
            fill.layer(layer, f"model.{name}.layers.{i}.", name == "decoder")
    spec.decoder.projection.weight = words
    spec.decoder.projection.bias = numpy.array(tensor("final_logits_bias")).reshape(-1)
    vocabulary = [str(i) for i in range(config["vocab_size"])]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.eos_token = str(config["eos_token_id"])
    spec.config.decoder_start_token = str(config["decoder_start_token_id"])
    spec.config.bos_token = spec.config.unk_token = spec.config.eos_token
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="int8" if int8 else None)
    os.makedirs(folder, exist_ok=True)
    spec.save(folder)
    with open(os.path.join(folder, "done.json"), "w", encoding="utf-8") as file:
        json.dump({"int8": int8}, file)


def main():
    source, folder, threads, int8 = sys.argv[1], sys.argv[2], int(sys.argv[3]), "int8" in sys.argv[4:]
    if not os.path.exists(os.path.join(folder, "done.json")):
        write_model(source, folder, int8)
    before = status_bytes("VmRSS:")
    clock = Clock()
    translator = ctranslate2.Translator(folder, device="cpu", compute_type="int8" if int8 else "float32", inter_threads=1,
                                        intra_threads=threads)
    answer(name="CTranslate2", version=ctranslate2.__version__, load_seconds=clock.seconds(), before=before)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            break
        if command == "memory":
            answer(peak=status_bytes("VmHWM:"), resident=status_bytes("VmRSS:"), anonymous=status_bytes("RssAnon:"))
        elif command == "translate":
            beams, length = int(words[0]), int(words[1])
            clock = Clock()
            best = translator.translate_batch([words[2:]], beam_size=beams, min_decoding_length=length,
                                              max_decoding_length=length)[0]
            answer(seconds=clock.seconds(), processor=clock.processor(), tokens=[int(word) for word in best.hypotheses[0]])
        else:
            sys.exit(f"unknown command {command!r}")


if __name__ == "__main__":
    main()
