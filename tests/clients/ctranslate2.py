"""Exports of `--to ctranslate2` in CTranslate2: the number of ids of lines, log-probabilities of given outputs and greedy
outputs, beside heed's. An int8 export must score as CTranslate2's own int8 form of the float32 export does. A module of `run`.
"""
import json
import os
import pathlib

# On processors without VNNI, the int8 products of oneDNN saturate; those of MKL do not. The library reads this when it loads.
os.environ["CT2_USE_MKL"] = "1"

import ctranslate2  # noqa: E402
import tokenizers  # noqa: E402

from clients.huggingface import heed  # noqa: E402

VERSIONS = f"ctranslate2 {ctranslate2.__version__} tokenizers {tokenizers.__version__}"
LIMIT = 2e-5
LIMITS = {"decoder int8": 5e-2, "encoder-decoder int8": 5e-2}
WORDS = ("--to", "ctranslate2")
TOKENIZERS = ("char", "byte", "word", "unigram", "bpe")
BLOCK = {"activation": ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "swiglu", "geglu"), "norm_kind": ("layer", "rms"),
         "scale_embeddings": ("true", "false"), "attention.kv_heads": ("0", "1", "2"),
         "attention.scale": ("sqrt", "0.4"), "tie_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}
NORMS = ("pre", "post", "post final_norm=false")
ROTARY = ("rotary", "rotary rotary_pairs=adjacent", "rotary rotary_base=500000")
SMALL = {"scale_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}
CASES = {
    "decoder": ("lm", {}, {"positions": ("learned", "sinusoidal", *ROTARY, "alibi", "none"), "norm": NORMS, **BLOCK},
                WORDS),
    "decoder of parallel blocks": ("lm", {"block": "parallel"}, {"positions": ("learned", "rotary", "alibi"), **BLOCK,
                                                                   "activation": ("relu", "swiglu")}, WORDS),
    "encoder-decoder": ("seq2seq", {}, {"positions": ("learned", "sinusoidal", *ROTARY, "relative_t5", "none"),
                                        "norm": NORMS, "tokenizer.shared": ("true", "false"), **BLOCK}, WORDS),
    "decoder int8": ("lm", {}, SMALL, (*WORDS, "--int8")),
    "encoder-decoder int8": ("seq2seq", {}, SMALL, (*WORDS, "--int8"))}


def scores_of(model, sources, targets):
    """The log-probabilities of the tokens of each target; one target at a time, so that none is padded."""
    if sources is None:
        return [model.score_batch([tokens])[0].log_probs for tokens in targets]
    return [model.score_batch([source], [target])[0].log_probs for source, target in zip(sources, targets)]


def outputs_of(model, prompts, pairs):
    """The greedy outputs as pieces, without those that heed's search excludes. A language model continues the prompt."""
    options = {"beam_size": 1, "disable_unk": True, "suppress_sequences": [["<s>"]]}
    if pairs:
        options |= {"max_decoding_length": 24, "min_decoding_length": 0}
        return [model.translate_batch([prompt], **options)[0].hypotheses[0] for prompt in prompts]
    options |= {"max_length": 24, "include_prompt_in_result": False}
    return [prompt + model.generate_batch([prompt], **options)[0].sequences[0] for prompt in prompts]


def compare(program, lines_file, targets_file, run, export, name):
    """The figures of one export."""
    lines, targets = (pathlib.Path(f).read_text(encoding="utf-8").splitlines() for f in (lines_file, targets_file))
    pairs = "encoder" in name
    make = ctranslate2.Translator if pairs else ctranslate2.Generator
    model = make(str(export), inter_threads=1, intra_threads=1)
    source_tokenizer = tokenizers.Tokenizer.from_file(str(export / "tokenizer.json"))
    second = export / "target_tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(second)) if second.exists() else source_tokenizer
    prompts = [source_tokenizer.encode(line).tokens for line in lines]
    if pairs:
        options = ("--source", lines_file, "--target", targets_file)
        wanted = [tokenizer.encode(line, add_special_tokens=False).tokens for line in targets]
        ours = heed(program, "generate", run, "--input", lines_file, "decode.beam=1").splitlines()
    else:
        options = ("--target", lines_file)
        wanted = [(tokenizer.encode("\n").tokens or ["</s>"]) + prompt for prompt in prompts]
        ours = [heed(program, "generate", run, "--prompt", line, "decode.beam=1").rstrip("\n") for line in lines]
    scores = json.loads(heed(program, "score", run, *options, "--json"))
    sources, wrong = prompts if pairs else None, []
    theirs, found = scores_of(model, sources, wanted), outputs_of(model, prompts, pairs)
    texts = [tokenizer.decode(list(map(tokenizer.token_to_id, tokens))).rstrip("\n") for tokens in found]
    if "int8" in name:  # rounded weights may yield another output than heed's, but not than CTranslate2's own
        heed(program, "export", run, *WORDS, "--output", f"{export}-f32", "--overwrite")
        converted = make(f"{export}-f32", compute_type="int8", inter_threads=1, intra_threads=1)
        wrong = [line for line, a, b in zip(lines, theirs, scores_of(converted, sources, wanted)) if a != b]
        texts, ours = found, outputs_of(converted, prompts, pairs)
    return {"ids": sum(len(a) == b for a, b in zip(theirs, scores["tokens"])),
            "log_prob": max(abs(sum(a) - b) / max(len(a), 1) for a, b in zip(theirs, scores["log_prob"])),
            "greedy": sum(a == b for a, b in zip(texts, ours)),
            "first_difference": next(([a, b] for a, b in zip(texts, ours) if a != b), None),
            "wrong": wrong}
