#!/usr/bin/env python3
"""Models of the library transformers in heed: random weights that transformers saves, with a tokenizer that tokenizers
learns, are imported, scored, exported, read back by transformers, and imported again.

    build/clients/venv/bin/python tests/clients/import_transformers.py [--heed PROGRAM] [--folder FOLDER] [--only TEXT]

The environment is that of `run`. Prints for each model the number of lines with equal ids, the largest difference of
log-probabilities per token of heed's scores and of the scores of the export, the number of equal greedy outputs, and
whether the second export has the bytes of the first. Exits with 1 if a figure is beyond its limit.
"""
import argparse
import filecmp
import json
import pathlib
import random
import subprocess
import sys

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
LIMIT = 2e-6
ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = ("The quick brown fox jumps over the lazy dog, it's we'll 12345 Füße déjà-vu Ζεύς Привет мир שלום مرحبا नमस्ते "
         "สวัสดี こんにちは 世界 안녕하세요 🙂👍🏽 café naïve e\u0301 I\u0307").split()
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")


def sentences(number):
    """Lines of random words."""
    rng = random.Random(7)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 9))) for _ in range(number)]


def byte_level(lines, llama=False, normalizer=None, specials=("<|endoftext|>",), end=None, start=None):
    """A byte-level BPE tokenizer of 500 pieces."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=llama))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not llama)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated"), cut]) if llama else cut
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(specials),
        show_progress=False))
    if end or start:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{start or ''} $A {end or ''}".strip(),
            special_tokens=[(each, tokenizer.token_to_id(each)) for each in (end, start) if each])
    return tokenizer


def cases(lines):
    """Name: tokenizer, model class, config, further arguments of save_pretrained, type."""
    gpt = byte_level(lines)
    llama = byte_level(lines, llama=True, specials=("<s>", "</s>"), start="<s>")
    qwen = byte_level(lines, llama=True, normalizer=normalizers.NFC())
    pairs = byte_level(lines, specials=("<pad>", "</s>", "<s>"), end="</s>")
    size = max(len(each.get_vocab()) for each in (gpt, llama, qwen, pairs)) + 3  # ids without a piece
    small = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
             "max_position_embeddings": 96, "tie_word_embeddings": True, "vocab_size": size}
    bart = {"vocab_size": size, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 96,
            "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    gpt2 = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=96, vocab_size=size, bos_token_id=0, eos_token_id=0)
    llama_config = transformers.LlamaConfig(**small, attention_bias=True, mlp_bias=True, num_key_value_heads=2,
                                            bos_token_id=0, eos_token_id=1, rope_theta=50000.0)
    plain = transformers.LlamaConfig(**small | {"tie_word_embeddings": False}, bos_token_id=0, eos_token_id=1)
    return {
        "gpt2": (gpt, transformers.GPT2LMHeadModel, gpt2, {}, torch.float32),
        "gpt2-shards-bfloat16": (gpt, transformers.GPT2LMHeadModel, gpt2, {"max_shard_size": "40KB"}, torch.bfloat16),
        "llama-biases": (llama, transformers.LlamaForCausalLM, llama_config, {}, torch.float32),
        "llama-untied-float16": (llama, transformers.LlamaForCausalLM, plain, {}, torch.float16),
        "mistral": (qwen, transformers.MistralForCausalLM, transformers.MistralConfig(
            **small, num_key_value_heads=1, sliding_window=None, bos_token_id=0, eos_token_id=0), {}, torch.float32),
        "qwen2": (qwen, transformers.Qwen2ForCausalLM, transformers.Qwen2Config(
            **small, num_key_value_heads=2, bos_token_id=0, eos_token_id=0), {}, torch.float32),
        "marian": (pairs, transformers.MarianMTModel, transformers.MarianConfig(**bart, scale_embedding=True,
                                                                                activation_function="swish"), {}, torch.float32),
        "blenderbot": (pairs, transformers.BlenderbotForConditionalGeneration, transformers.BlenderbotConfig(**bart), {},
                       torch.float32)}


def save(folder, case):
    """Saves a model with random weights, and its tokenizer."""
    tokenizer, kind, config, options, dtype = case
    torch.manual_seed(1)
    model = kind(config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data.normal_(0, 0.2)
    model.to(dtype).save_pretrained(folder, **options)
    tokenizer.save(str(folder / "tokenizer.json"))


def log_prob(model, source, target):
    """The log-probability of a target (ids), given its source (ids) or, for a language model, its first token."""
    if source is None:
        logits, labels = model(torch.tensor([target[:-1]])).logits[0], target[1:]
    else:
        fed = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
        logits, labels = model(input_ids=torch.tensor([source]), decoder_input_ids=fed).logits[0], target
    return float(torch.log_softmax(logits.double(), -1)[range(len(labels)), labels].sum())


class Client:
    """A folder as transformers and tokenizers read it."""

    def __init__(self, folder):
        self.pairs = json.loads((folder / "config.json").read_text()).get("is_encoder_decoder", False)
        loader = transformers.AutoModelForSeq2SeqLM if self.pairs else transformers.AutoModelForCausalLM
        self.model = loader.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    def scores(self, lines):
        """Numbers of ids and log-probabilities; a source of an encoder-decoder model is its target."""
        encode = self.tokenizer.encode
        ids = [encode(line).ids for line in lines]
        if self.pairs:
            return [len(each) for each in ids], [log_prob(self.model, each, each) for each in ids]
        start = encode("", add_special_tokens=True).ids or encode("\n").ids
        texts = [encode(line, add_special_tokens=False).ids for line in lines]
        return [len(each) for each in texts], [log_prob(self.model, None, start + each) for each in texts]


def heed(program, *arguments):
    """Runs heed and returns its standard output."""
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    if done.returncode != 0:
        sys.exit(f"heed {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


@torch.no_grad()
def check(program, folder, name, case, lines):
    """Prints the figures of a model; returns whether they are within their limits."""
    origin, run, export = (folder / f"{name}-{what}" for what in ("origin", "run", "export"))
    save(origin, case)
    (folder / "lines").write_text("\n".join(lines) + "\n", encoding="utf-8")
    heed(program, "import", origin, "--run", run, "--overwrite")
    client = Client(origin)
    source = ("--source", folder / "lines") if client.pairs else ()
    ours = json.loads(heed(program, "score", run, *source, "--target", folder / "lines", "--json"))
    lengths, theirs = client.scores(lines)
    heed(program, "export", run, "--to", "huggingface", "--output", export, "--overwrite", "--check")
    _, again = Client(export).scores(lines)
    second_run, second = folder / f"{name}-run2", folder / f"{name}-export2"
    heed(program, "import", export, "--run", second_run, "--overwrite")
    heed(program, "export", second_run, "--to", "huggingface", "--output", second, "--overwrite")
    same = [filecmp.cmp(export / file, second / file, shallow=False)
            for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")]
    equal = sum(a == b for a, b in zip(lengths, ours["tokens"]))
    worst = max(abs(a - b) / n for a, b, n in zip(ours["log_prob"], theirs, lengths))
    worst_again = max(abs(a - b) / n for a, b, n in zip(again, theirs, lengths))
    print(f"{name}: {equal} of {len(lines)} lines with equal ids; log-probabilities differ by {worst:.1e}, of the export by "
          f"{worst_again:.1e}; equal bytes {same}", flush=True)
    return equal == len(lines) and worst < LIMIT and worst_again < LIMIT and all(same)


def main():
    """Checks all models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heed", type=pathlib.Path, default=ROOT / "build/release/train/heed")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/clients/import")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    lines = sentences(400)
    chosen = {name: case for name, case in cases(lines).items() if options.only in name}
    return int(not all([check(options.heed.resolve(), options.folder, name, case, lines[:20]) for name, case in chosen.items()]))


if __name__ == "__main__":
    sys.exit(main())
