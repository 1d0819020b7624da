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
BYTES = ("unigram+bytes", "bpe+bytes")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid")
WORDS = ("--to", "huggingface")
TABLES = ("learned", "sinusoidal", "none")
PLAIN = {"activation": ACTIVATIONS, "scale_embeddings": ("true", "false"), "bias": ("true", "false"), "tokenizer": TOKENIZERS}
BERT = {"norm": "post", "final_norm": "false", "embedding_norm": "true"}
CASES = {
    "GPT2LMHeadModel": ("lm", {"output_bias": "false"},
                        {"positions": TABLES, "tie_embeddings": ("true", "false"), **PLAIN, "tokenizer": (*TOKENIZERS, *BYTES)}, WORDS),
    "LlamaForCausalLM": ("lm", {"positions": "rotary", "norm_kind": "rms", "output_bias": "false"},
                         {"activation": ("swiglu", "geglu", "geglu_tanh"), "attention.kv_heads": ("0", "1", "2"),
                          "rotary_base": ("10000", "500000"), "scale_embeddings": ("true", "false"), "bias": ("true", "false"),
                          "tie_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}, WORDS),
    "MarianMTModel": ("seq2seq", {"norm": "post", "final_norm": "false"},
                      {"positions": TABLES, "output_bias": ("true", "false"), **PLAIN}, WORDS),
    "BlenderbotForConditionalGeneration": ("seq2seq", {},
                                           {"positions": TABLES, "output_bias": ("true", "false"), **PLAIN}, WORDS),
    "T5ForConditionalGeneration": ("seq2seq", {"positions": "relative_t5", "attention.scale": "none", "norm_kind": "rms",
                                               "bias": "false", "output_bias": "false"},
                                   {"activation": (*ACTIVATIONS, "swiglu", "geglu", "geglu_tanh"), "tie_output": ("true", "false"),
                                    "t5_buckets": ("32", "8"), "t5_distance": ("128", "20"), "scale_embeddings": ("true", "false"),
                                    "tokenizer": TOKENIZERS}, WORDS),
    "BertForMaskedLM": ("mlm", {**BERT, "head_transform": "true"},
                        {"positions": TABLES, "segments": ("1", "2"), "output_bias": ("true", "false"),
                         "tie_embeddings": ("true", "false"), **PLAIN, "tokenizer": ("char", "word")}, WORDS),
    "BertForTokenClassification": ("tag", BERT, {"positions": TABLES, "segments": ("1", "2"), **PLAIN, "tokenizer": ("word",)}, WORDS),
    "ViTForImageClassification": ("images", {"pool": "first"},
                                  {"positions": TABLES, "activation": ACTIVATIONS, "data.image.patch": ("2", "4"),
                                   "data.image.mean": ("0.5", "0.1"), "bias": ("true", "false")}, WORDS),
    "SwinForImageClassification": ("images", {"kind": "swin", "pool": "mean"},
                                   {"swin.window": ("2 swin.depths=[2]", "1 swin.depths=[2,2]"), "data.image.deviation": ("0.5", "0.2"), "activation": ACTIVATIONS, "bias": ("true", "false")}, WORDS)}


def heed(program, *arguments, folder="."):
    """Runs heed in a folder and returns its standard output."""
    return subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
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
    if "<0x00>" in tokenizer.get_vocab():  # the library decodes the valid bytes beside an invalid one as U+FFFD, too
        ids = [each[len(tokenizer.encode(line)):] for each, line in zip(ids, lines)]
        ours = [text.removeprefix(line).strip() for text, line in zip(ours, lines)]
        theirs = [tokenizer.decode(each, skip_special_tokens=True).strip() for each in ids]
        return zip(*((len(a), len(b)) if "\ufffd" in b else (a, b) for a, b in zip(ours, theirs)))
    return ours, [tokenizer.decode(each, skip_special_tokens=True).rstrip("\n") for each in ids]


def fill(model, tokenizer, line):
    """A line whose <mask> is replaced with the model's prediction, which is no special piece."""
    ids = tokenizer.encode(line)
    logits = model(torch.tensor([ids])).logits[0]
    logits[:, [0, 1, 2, tokenizer.mask_token_id]] = -torch.inf
    best = logits.argmax(-1)
    filled = [int(b) if i == tokenizer.mask_token_id else i for i, b in zip(ids, best)]
    return tokenizer.decode(filled, skip_special_tokens=True)


def compare_masked(program, file, run, tokenizer, model):
    """The figures of a masked language model: the texts that both fill in."""
    lines = file.read_text(encoding="utf-8").splitlines()
    ours = heed(program, "generate", run, "--input", file).splitlines()
    theirs = [fill(model, tokenizer, line) for line in lines]
    return {"ids": len(lines), "log_prob": 0.0, "greedy": sum(a == b for a, b in zip(ours, theirs)),
            "first_difference": next(([a, b] for a, b in zip(ours, theirs) if a != b), None)}


def compare_labels(program, run, data, inputs, labels, model):
    """The figures of a classifier: the mean log-probability of the labels, and the predicted ones."""
    output = pathlib.Path(run) / "reports" / "predicted"
    output.parent.mkdir(exist_ok=True)
    figures = json.loads(heed(program, "eval", run, "--json", "--source", data[0], "--target", data[1], "--output", output, folder=data[0].parent))
    names, total, predicted = model.config.label2id, [], []
    for each, expected in zip(inputs, labels):
        log_probs = torch.log_softmax(model(each).logits.double(), -1).reshape(-1, len(names))
        total += [float(row[names[label]]) for row, label in zip(log_probs, expected)]
        predicted.append(" ".join(model.config.id2label[int(best)] for best in log_probs.argmax(-1)))
    ours = output.read_text(encoding="utf-8").splitlines()
    return {"ids": sum(len(expected) == model(each).logits.reshape(-1, len(names)).shape[0] for each, expected in zip(inputs, labels)),
            "log_prob": abs(figures["loss"] + sum(total) / len(total)), "greedy": sum(a == b for a, b in zip(ours, predicted)),
            "first_difference": next(([a, b] for a, b in zip(ours, predicted) if a != b), None)}


def pictures(export, paths):
    """PGM files of 12 × 8 pixels, prepared as preprocessor_config.json says."""
    about = json.loads((pathlib.Path(export) / "preprocessor_config.json").read_text())
    for path in paths:
        pixels = torch.frombuffer(bytearray(path.read_bytes()[-96:]), dtype=torch.uint8).reshape(1, 1, 8, 12)
        yield ((pixels * about["rescale_factor"] - about["image_mean"][0]) / about["image_std"][0]).float()


def load(export, name):
    """The model, its tokenizer, and what is wrong with the loading."""
    model, about = getattr(transformers, name).from_pretrained(export, output_loading_info=True)
    wrong = [str(n) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for n in about[key]]
    declared = json.loads((pathlib.Path(export) / "config.json").read_text())["architectures"]
    if declared != [name]:
        wrong.append(f"architectures {declared}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(export) if (pathlib.Path(export) / "tokenizer.json").exists() else None
    return model.eval(), tokenizer, wrong


@torch.no_grad()
def compare(program, lines_file, targets_file, run, export, name):
    """The figures of one export."""
    torch.set_num_threads(1)
    model, tokenizer, wrong = load(export, name)
    folder = pathlib.Path(lines_file).parent
    task = CASES[name][0]
    if task in ("images", "tag"):
        files = folder / f"lines.{task}", folder / f"targets.{task}"
        lines, labels = (file.read_text(encoding="utf-8").splitlines() for file in files)
        inputs = list(pictures(export, [folder / line for line in lines])) if task == "images" else \
            [torch.tensor([tokenizer.encode(line)]) for line in lines]
        return compare_labels(program, run, files, inputs, [label.split() for label in labels], model) | {"wrong": wrong}
    if task == "mlm":
        return compare_masked(program, folder / "lines.mlm", run, tokenizer, model) | {"wrong": wrong}
    return compare_generative(program, lines_file, targets_file, run, tokenizer, model) | {"wrong": wrong}


def compare_generative(program, lines_file, targets_file, run, tokenizer, model):
    """The figures of a model that writes text."""
    lines, targets = (pathlib.Path(f).read_text(encoding="utf-8").splitlines() for f in (lines_file, targets_file))
    pairs = model.config.is_encoder_decoder
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
    return {"ids": sum(a == b for a, b in zip(lengths, scores["tokens"])),
            "log_prob": max(abs(a - b) / max(n, 1) for a, b, n in zip(theirs, scores["log_prob"], lengths)),
            "greedy": sum(a == b for a, b in zip(ours_text, their_text)),
            "first_difference": next(([a, b] for a, b in zip(ours_text, their_text) if a != b), None)}
