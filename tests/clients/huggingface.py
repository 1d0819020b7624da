"""Exports of `--to huggingface` in the library transformers: the number of ids of lines, log-probabilities of given
outputs and greedy outputs, beside heed's. A module of `run`.
"""
import json
import pathlib
import subprocess

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
VERSIONS = f"transformers {transformers.__version__} torch {torch.__version__}"
LIMIT = 2e-5
TOKENIZERS = ("char", "byte", "word", "unigram", "bpe")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid")
WORDS = ("--to", "huggingface")
PLAIN = {"activation": ACTIVATIONS, "scale_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}
CASES = {
    "GPT2LMHeadModel": ("lm", {}, {"positions": ("learned", "sinusoidal", "none"), **PLAIN}, WORDS),
    "LlamaForCausalLM": ("lm", {"positions": "rotary", "norm_kind": "rms"},
                         {"activation": ("swiglu", "geglu"), "attention.kv_heads": ("0", "1", "2"),
                          "rotary_base": ("10000", "500000"), "scale_embeddings": ("true", "false"),
                          "tokenizer": TOKENIZERS}, WORDS),
    "MarianMTModel": ("seq2seq", {"norm": "post", "final_norm": "false"},
                      {"positions": ("sinusoidal", "learned", "none"), **PLAIN}, WORDS),
    "BlenderbotForConditionalGeneration": ("seq2seq", {}, {"positions": ("learned", "sinusoidal", "none"), **PLAIN}, WORDS)}


def heed(program, *arguments):
    """Runs heed and returns its standard output."""
    return subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace").stdout  # byte-level models write any bytes


def log_prob(model, source, target):
    """The log-probability of a target (ids), given its source (ids) or, for a language model, its first token."""
    if source is None:
        logits, labels = model(torch.tensor([target[:-1]])).logits[0], target[1:]
    else:
        fed = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
        logits, labels = model(input_ids=torch.tensor([source]), decoder_input_ids=fed).logits[0], target
    return float(torch.log_softmax(logits.double(), -1)[range(len(labels)), labels].sum())


def outputs(program, run, lines_file, lines, tokenizer, model, pairs):
    """The greedy outputs for the lines of heed and of transformers."""
    if pairs:
        ours = heed(program, "generate", run, "--input", lines_file, "decode.beam=1").splitlines()
    else:
        ours = [heed(program, "generate", run, "--prompt", line, "decode.beam=1").rstrip("\n") for line in lines]
    options = {} if pairs else {"max_new_tokens": 24}  # the tests' decode.max_length; the export's limit is the context
    ids = [model.generate(torch.tensor([tokenizer.encode(line)]), **options)[0] for line in lines]
    return ours, [tokenizer.decode(each, skip_special_tokens=True).rstrip("\n") for each in ids]


@torch.no_grad()
def compare(program, lines_file, targets_file, run, export, name):
    """The figures of one export."""
    torch.set_num_threads(1)
    lines, targets = (pathlib.Path(f).read_text(encoding="utf-8").splitlines() for f in (lines_file, targets_file))
    tokenizer = transformers.AutoTokenizer.from_pretrained(export)
    pairs = json.loads((pathlib.Path(export) / "config.json").read_text()).get("is_encoder_decoder", False)
    loader = transformers.AutoModelForSeq2SeqLM if pairs else transformers.AutoModelForCausalLM
    model, about = loader.from_pretrained(export, output_loading_info=True)
    model.eval()
    if pairs:
        options = ("--source", lines_file, "--target", targets_file)
        sources, wanted = [[tokenizer.encode(line) for line in side] for side in (lines, targets)]
    else:
        options = ("--target", lines_file)
        start = tokenizer.encode("\n", add_special_tokens=False) or [tokenizer.eos_token_id]
        sources, wanted = [None] * len(lines), [start + tokenizer.encode(line) for line in lines]
    lengths = [len(ids) - (not pairs) for ids in wanted]
    scores = json.loads(heed(program, "score", run, *options, "--json"))
    theirs = [log_prob(model, source, ids) for source, ids in zip(sources, wanted)]
    ours_text, their_text = outputs(program, run, lines_file, lines, tokenizer, model, pairs)
    wrong = [str(n) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for n in about[key]]
    wrong += [] if type(model).__name__ == name else [type(model).__name__]
    return {"ids": sum(a == b for a, b in zip(lengths, scores["tokens"])),
            "log_prob": max(abs(a - b) / max(n, 1) for a, b, n in zip(theirs, scores["log_prob"], lengths)),
            "greedy": sum(a == b for a, b in zip(ours_text, their_text)),
            "first_difference": next(([a, b] for a, b in zip(ours_text, their_text) if a != b), None),
            "wrong": wrong}
