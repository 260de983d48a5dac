#!/usr/bin/env python3
"""Train a Compressive Transformer character model on one text file.

The text is read by parallel streams, segment after segment, each stream carrying its
memories along. The loss is the cross entropy of the next character plus the
attention-reconstruction loss of the compression convolutions; the gradient of the
latter reaches only the convolutions, and memories are detached.

To make the model robust to what it meets at run time:
  * some segments are shorter than the rest, so memories of every length occur;
  * now and then all memories are emptied;
  * now and then the compressed memory is hidden from a segment, so the model has also
    learned to work without it.

The output folder receives config.json, model.safetensors (16-bit floats),
char_vocab.json, training.json, and resume.pt for --resume (not needed to run the
model). The learning rate follows the clock: warm-up, then a cosine down to --minutes.
Where the Python package oxbow is installed, the checkpoint is converted at the end and
its logits are compared.

Example:
  ./train_compressive.py --text train.txt --heldout heldout.txt --out demo --minutes 65
"""

import argparse
import hashlib
import importlib.util
import json
import math
import os
import sys
import tempfile
import time

# Must be set before numpy and torch load their BLAS.
if "--threads" not in sys.argv:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.nn.functional as F

from compressive_torch import CompressiveTransformer, read_safetensors, write_safetensors_f16


# --------------------------------------------------------------------------------------
# Text
# --------------------------------------------------------------------------------------


def read_text(path):
    """Return the text and the SHA-256 of the file."""
    with open(path, "rb") as f:
        raw = f.read()
    return raw.decode("utf-8"), hashlib.sha256(raw).hexdigest()


def encode(text, vocab):
    index = {char: i for i, char in enumerate(vocab)}
    unknown = sorted(set(text) - set(vocab))
    if unknown:
        raise SystemExit(f"characters that the training text does not contain: {unknown}")
    return torch.tensor([index[char] for char in text], dtype=torch.long)


class Streams:
    """`count` readers of one text, evenly spaced; past its end they start over."""

    def __init__(self, ids, count):
        self.ids = ids
        self.positions = torch.arange(count) * (len(ids) // count)

    def next(self, length):
        """Return inputs and targets, each [count, length]."""
        places = (self.positions[:, None] + torch.arange(length + 1)) % len(self.ids)
        self.positions = (self.positions + length) % len(self.ids)
        chunk = self.ids[places]
        return chunk[:, :-1], chunk[:, 1:]


# --------------------------------------------------------------------------------------
# Checkpoints
# --------------------------------------------------------------------------------------


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


def rounded_copy(model):
    """A copy of the model with its weights rounded to 16 bits, as stored."""
    copy = CompressiveTransformer(model.cfg)
    copy.load_state_dict({k: v.half().float() for k, v in model.state_dict().items()})
    copy.eval()
    return copy


def load_checkpoint(folder):
    """Return (model, vocabulary) of an output folder."""
    with open(os.path.join(folder, "config.json")) as f:
        cfg = json.load(f)
    with open(os.path.join(folder, "char_vocab.json")) as f:
        vocab = json.load(f)
    model = CompressiveTransformer(cfg)
    weights, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    model.load_state_dict({k: v.float() for k, v in weights.items()})
    model.eval()
    return model, vocab


def save_checkpoint(folder, model, vocab, record):
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, "config.json"), model.cfg)
    write_json(os.path.join(folder, "char_vocab.json"), vocab)
    write_json(os.path.join(folder, "training.json"), record)
    path = os.path.join(folder, "model.safetensors")
    write_safetensors_f16(path + ".new", model.state_dict())
    os.replace(path + ".new", path)


def save_resume(folder, model, optimizer, streams, progress):
    path = os.path.join(folder, "resume.pt")
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "positions": streams.positions,
        "progress": progress,
    }
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


# --------------------------------------------------------------------------------------
# Evaluation and sampling
# --------------------------------------------------------------------------------------


@torch.no_grad()
def bits_per_character(model, ids, segment, streams=1, mem_len=None, c_mem_len=None):
    """Mean bits per predicted character over a text read from empty memories.

    With streams > 1 the text is cut into that many pieces read side by side, which is
    faster but gives each piece a cold start. mem_len and c_mem_len replace the sizes of
    the model's memories for this measurement.
    """
    kept = model.mem_len, model.c_mem_len
    model.mem_len = kept[0] if mem_len is None else mem_len
    model.c_mem_len = kept[1] if c_mem_len is None else c_mem_len
    length = (len(ids) - 1) // streams
    places = torch.arange(streams)[:, None] * length + torch.arange(length + 1)
    rows = ids[places]
    memory = model.empty_memory(streams)
    total = 0.0
    for begin in range(0, length, segment):
        end = min(begin + segment, length)
        logits, memory, _ = model(rows[:, begin:end], memory)
        targets = rows[:, begin + 1 : end + 1]
        total += F.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction="sum"
        ).item()
    model.mem_len, model.c_mem_len = kept
    return total / (streams * length) / math.log(2)


@torch.no_grad()
def sample(model, vocab, prompt, length, temperature, seed):
    """Continue the prompt one character at a time, updating the memory after each."""
    generator = torch.Generator().manual_seed(seed)
    memory = model.empty_memory(1)
    text = prompt
    for i in range(len(prompt) + length - 1):
        char = encode(text[i], vocab).view(1, 1)
        logits, memory, _ = model(char, memory)
        if i + 1 == len(text):
            weights = torch.softmax(logits[0, -1] / temperature, dim=-1)
            text += vocab[torch.multinomial(weights, 1, generator=generator).item()]
    return text


def measure(model, ids, sha256, segment, chars_single=2000):
    """The numbers for training.json, for a model with weights as stored (16 bits)."""
    cfg = model.cfg
    full = cfg["mem_len"] + cfg["c_mem_len"]
    with_memory = bits_per_character(model, ids, segment)
    without = bits_per_character(model, ids, segment, c_mem_len=0)
    longer = bits_per_character(model, ids, segment, mem_len=full, c_mem_len=0)
    none = bits_per_character(model, ids, segment, mem_len=0, c_mem_len=0)
    single = ids[: chars_single + 1]
    return {
        "heldout_sha256": sha256,
        "heldout_characters": len(ids),
        "bpc": round(with_memory, 4),
        "bpc_without_compressed_memory": round(without, 4),
        "bpc_gain_of_compressed_memory": round(without - with_memory, 4),
        "bpc_without_any_memory": round(none, 4),
        "bpc_all_slots_uncompressed": round(longer, 4),
        f"bpc_first_{chars_single}_in_segments": round(
            bits_per_character(model, single, segment), 4
        ),
        f"bpc_first_{chars_single}_one_character_at_a_time": round(
            bits_per_character(model, single, 1), 4
        ),
        "how": (
            f"Mean of -log2 p(next character) over the held-out text read as one stream in "
            f"segments of {segment} from empty memories; 32-bit arithmetic on the weights "
            f"rounded to 16 bits as stored. bpc: mem_len {cfg['mem_len']} and c_mem_len "
            f"{cfg['c_mem_len']}. bpc_without_compressed_memory: same weights, c_mem_len 0. "
            f"bpc_without_any_memory: same weights, both 0. bpc_all_slots_uncompressed: same "
            f"weights, mem_len {full}, c_mem_len 0. No separate model was trained without "
            f"compressed memory."
        ),
    }


# --------------------------------------------------------------------------------------
# Training
# --------------------------------------------------------------------------------------


def learning_rate(args, step, fraction):
    """Linear warm-up over steps, then a cosine over the fraction of the time used."""
    warm = min(1.0, (step + 1) / args.warmup)
    low = 0.02
    return args.lr * warm * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(1.0, fraction))))


def train(args):
    text, sha256 = read_text(args.text)
    vocab = sorted(set(text))
    ids = encode(text, vocab)
    heldout, heldout_sha256 = read_text(args.heldout)
    heldout = encode(heldout, vocab)
    print(f"text: {len(ids)} characters, {len(vocab)} different; held out: {len(heldout)}")

    cfg = {
        "model_type": "labml_compressive_transformer",
        "architectures": ["AutoregressiveModel"],
        "n_tokens": len(vocab),
        "vocab_size": len(vocab),
        "d_model": args.d_model,
        "heads": args.heads,
        "d_ff": args.d_ff or 4 * args.d_model,
        "n_layers": args.layers,
        "mem_len": args.mem_len,
        "c_mem_len": args.c_mem_len,
        "compression_rate": args.rate,
        "P": args.mem_len + args.c_mem_len + args.segment,
        "dropout": 0.0,
        "activation": "relu",
        "layer_norm_eps": 1e-5,
        "is_gated": False,
        "segment_lengths": [args.segment],
    }
    torch.manual_seed(args.seed)
    model = CompressiveTransformer(cfg)
    model.init_weights()
    compression = [p for n, p in model.named_parameters() if ".compress." in n]
    main = [p for n, p in model.named_parameters() if ".compress." not in n]
    optimizer = torch.optim.Adam(main + compression, lr=args.lr, betas=(0.9, 0.99), eps=1e-9)
    streams = Streams(ids, args.streams)
    progress = {"step": 0, "seconds": 0.0, "characters": 0, "log": [], "stages": []}
    if args.resume:
        state = torch.load(os.path.join(args.out, "resume.pt"))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        streams.positions = state["positions"]
        progress = state["progress"]
        torch.manual_seed(args.seed + progress["step"])
        print(f"resumed at step {progress['step']}, {progress['seconds']:.0f} s")
    settings = {k: v for k, v in vars(args).items() if k not in NOT_RECORDED}
    progress.setdefault("stages", []).append({"from_step": progress["step"], **settings})
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters, {sum(p.numel() for p in compression)} of them compression")

    os.makedirs(args.out, exist_ok=True)
    limit = args.minutes * 60
    memory = model.empty_memory(args.streams)
    sums = {"ce": 0.0, "ar": 0.0, "chars": 0, "segments": 0}
    clock = last_log = last_save = last_eval = time.time()
    last_log_chars = progress["characters"]

    def save(final=False):
        """Write the checkpoint; the time this takes is not training time."""
        record = {
            "text_sha256": sha256,
            "text_characters": len(ids),
            "steps": progress["step"],
            "seconds": round(progress["seconds"]),
            "characters_seen": progress["characters"],
            "parameters": parameters,
            "torch": torch.__version__,
            "final": final,
            "stages": progress["stages"],
            "progress": progress["log"],
        }
        save_checkpoint(args.out, model, vocab, record)
        save_resume(args.out, model, optimizer, streams, progress)

    while progress["seconds"] < limit and progress["step"] < args.max_steps:
        # What this step looks like: its length and which memories it sees.
        dice = torch.rand(3).tolist()
        length = args.segment
        if dice[0] < args.short_segments:
            length = int(torch.randint(1, args.segment, (1,)))
        if dice[1] < args.empty_memory:
            memory = model.empty_memory(args.streams)
        hide = dice[2] < args.hide_compressed

        inputs, targets = streams.next(length)
        logits, memory, ar_loss = model(inputs, memory, hide_c_mem=hide, want_ar_loss=True)
        ce = F.cross_entropy(logits.reshape(-1, len(vocab)), targets.reshape(-1))
        loss = ce * (length / args.segment)
        if ar_loss is not None:
            loss = loss + ar_loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(main, args.clip)
        torch.nn.utils.clip_grad_norm_([p for p in compression if p.grad is not None], args.clip)
        lr = learning_rate(args, progress["step"], progress["seconds"] / limit)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()

        now = time.time()
        progress["seconds"] += now - clock
        clock = now
        progress["step"] += 1
        progress["characters"] += inputs.numel()
        sums["ce"] += ce.item() * inputs.numel()
        sums["chars"] += inputs.numel()
        if ar_loss is not None:
            sums["ar"] += ar_loss.item()
            sums["segments"] += 1

        if now - last_log >= args.log_seconds:
            speed = (progress["characters"] - last_log_chars) / (now - last_log)
            print(
                f"step {progress['step']:6d}  {progress['seconds'] / 60:5.1f} min  "
                f"{progress['characters'] / 1e6:6.2f} M chars  {speed:5.0f}/s  lr {lr:.2e}  "
                f"bpc {sums['ce'] / sums['chars'] / math.log(2):.4f}  "
                f"ar {sums['ar'] / max(1, sums['segments']):.5f}",
                flush=True,
            )
            sums = {"ce": 0.0, "ar": 0.0, "chars": 0, "segments": 0}
            last_log, last_log_chars = now, progress["characters"]

        if now - last_eval >= args.eval_minutes * 60:
            copy = rounded_copy(model)
            part = heldout[: 64 * 1024]
            a = bits_per_character(copy, part, args.segment, streams=8)
            b = bits_per_character(copy, part, args.segment, streams=8, c_mem_len=0)
            progress["log"].append(
                {
                    "minutes": round(progress["seconds"] / 60, 1),
                    "steps": progress["step"],
                    "quick_bpc": round(a, 4),
                    "quick_bpc_without_compressed_memory": round(b, 4),
                }
            )
            print(f"  held out (quick): bpc {a:.4f}, without compressed memory {b:.4f}", flush=True)
            last_eval = last_log = clock = time.time()
            last_log_chars = progress["characters"]

        if now - last_save >= args.save_minutes * 60:
            save()
            last_save = last_log = clock = time.time()
            last_log_chars = progress["characters"]

    save(final=True)
    print("trained; now measuring on the held-out text", flush=True)
    evaluate(args)


def evaluate(args):
    """Measure a checkpoint on the held-out text; note the result in its training.json."""
    model, vocab = load_checkpoint(args.out)
    text, sha256 = read_text(args.heldout)
    result = measure(model, encode(text, vocab), sha256, args.segment)
    path = os.path.join(args.out, "training.json")
    with open(path) as f:
        record = json.load(f)
    record["heldout"] = result
    write_json(path, record)
    print(json.dumps(result, indent=1))


@torch.no_grad()
def compare(args):
    """Does the model that is shipped give the logits of the one that was trained?"""
    import oxbow  # The package of the folder python; training goes without it.

    net, vocab = load_checkpoint(args.out)
    ids = torch.randint(len(vocab), (3, net.cfg["segment_lengths"][0]))
    theirs, memory = [], net.empty_memory(1)
    for segment in ids:
        logits, memory, _ = net(segment.view(1, -1), memory)
        theirs.append(logits[0])
    with tempfile.TemporaryDirectory() as folder:
        oxbow.convert(args.out, os.path.join(folder, "net.oxb"), weights="f32")
        model = oxbow.Model(os.path.join(folder, "net.oxb"))
        ours = torch.from_numpy(model.session().run(ids.flatten().numpy()))
        model.close()
    most = (ours - torch.cat(theirs)).abs().max().item()
    print(f"converted: logits differ by at most {most:.1e}")
    if not most < 1e-3:
        sys.exit("the converted model is another one")


# Options that say nothing about how the model was trained.
NOT_RECORDED = {
    "text", "heldout", "out", "resume", "eval_only", "compare", "sample", "prompt", "temperature",
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--text", help="training text (UTF-8)")
    add("--heldout", help="text to measure on, not trained on (UTF-8)")
    add("--out", required=True, help="checkpoint folder")
    add("--minutes", type=float, default=65, help="training time (default %(default)s)")
    add("--max-steps", type=int, default=10**9, help="stop after this many steps")
    add("--resume", action="store_true", help="go on from resume.pt in the checkpoint folder")
    add(
        "--eval-only",
        action="store_true",
        help="only measure the checkpoint on --heldout (and note it in training.json)",
    )
    add(
        "--compare",
        action="store_true",
        help="only convert the checkpoint with oxbow and compare its logits",
    )
    add("--sample", type=int, default=0, metavar="N", help="only write N characters of text")
    add("--prompt", default="\n", help="start of the sample")
    add("--temperature", type=float, default=0.7, help="of the sample (default %(default)s)")
    add("--d-model", type=int, default=192)
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=4)
    add("--d-ff", type=int, default=0, help="default: 4 * d_model")
    add("--segment", type=int, default=64)
    add("--mem-len", type=int, default=64)
    add("--c-mem-len", type=int, default=64)
    add("--rate", type=int, default=4, help="rows per compressed row (default %(default)s)")
    add("--streams", type=int, default=16, help="parallel streams (default %(default)s)")
    add("--lr", type=float, default=2e-3, help="peak learning rate (default %(default)s)")
    add("--warmup", type=int, default=200, help="warm-up steps (default %(default)s)")
    add("--clip", type=float, default=1.0, help="gradient norm limit (default %(default)s)")
    add("--short-segments", type=float, default=0.05, help="share (default %(default)s)")
    add("--empty-memory", type=float, default=0.01, help="chance per step (default %(default)s)")
    add("--hide-compressed", type=float, default=0.1, help="share (default %(default)s)")
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=1)
    add("--log-seconds", type=float, default=30)
    add("--eval-minutes", type=float, default=5, help="between quick measurements")
    add("--save-minutes", type=float, default=5, help="between checkpoints")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    if args.sample:
        model, vocab = load_checkpoint(args.out)
        print(sample(model, vocab, args.prompt, args.sample, args.temperature, args.seed))
    elif args.compare:
        compare(args)
    elif args.eval_only:
        if not args.heldout:
            parser.error("--eval-only needs --heldout")
        evaluate(args)
    else:
        if not (args.text and args.heldout):
            parser.error("training needs --text and --heldout")
        train(args)
        if importlib.util.find_spec("oxbow"):
            compare(args)


if __name__ == "__main__":
    main()
