"""Models of the library transformers in heed: random weights that transformers saves, with a tokenizer that the libraries
learn, are imported, scored, exported, read back by transformers, and imported and exported again. A module of `run`.
"""
import filecmp
import json
import pathlib
import shutil
import subprocess
import sys

import torch
import transformers
from clients import import_tokenizers as learned
from clients.huggingface import pictures
from tokenizers import processors

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
VERSIONS = f"transformers {transformers.__version__} torch {torch.__version__}"
LIMIT = 2e-6
COLUMNS = (("equal numbers of ids", "d", "ids", sum),
           ("largest difference of log-probabilities, per token", ".1e", "log_prob", max),
           ("the same of the export, in transformers", ".1e", "again", max),
           ("second exports with the same bytes", "d", "same", sum))
DTYPES = ("float32", "bfloat16", "float16")
SHARDS = ("10GB", "30KB")
GATED = {"tokenizer": ("Llama 3", "tokenizer.model"), "num_key_value_heads": (4, 1, 2), "tie_word_embeddings": (True, False),
         "rope_theta": (10000.0, 500000.0), "dtype": DTYPES, "shards": SHARDS}
BART = {"activation_function": ("gelu", "relu", "swish"), "scale_embedding": (True, False), "dtype": DTYPES, "shards": SHARDS}
IMAGES = {"hidden_act": ("gelu", "relu", "gelu_new"), "dtype": DTYPES, "shards": SHARDS}
CASES = {
    "GPT2LMHeadModel": ("lm", {}, {"tokenizer": ("GPT-2", "vocab.json and merges.txt"),
                                   "activation_function": ("gelu_new", "gelu", "relu", "silu"),
                                   "tie_word_embeddings": (True, False), "n_inner": (32, 80), "dtype": DTYPES, "shards": SHARDS}, ()),
    "LlamaForCausalLM": ("lm", {}, GATED | {"attention_bias": (False, True), "mlp_bias": (False, True),
                                            "hidden_act": ("silu", "gelu")}, ()),
    "MistralForCausalLM": ("lm", {"sliding_window": None}, GATED, ()),
    "Qwen2ForCausalLM": ("lm", {}, GATED | {"tokenizer": ("Qwen2",)}, ()),
    "MarianMTModel": ("seq2seq", {}, {"tokenizer": ("source.spm and target.spm", "byte pairs")} | BART, ()),
    "BlenderbotForConditionalGeneration": ("seq2seq", {}, {"tokenizer": ("byte pairs",)} | BART, ()),
    "T5ForConditionalGeneration": ("seq2seq", {"tie_word_embeddings": False}, {
        "tokenizer": ("spiece.model",), "feed_forward_proj": ("gated-gelu", "gated-silu", "relu"), "num_decoder_layers": (2, 3),
        "relative_attention_num_buckets": (32, 8), "relative_attention_max_distance": (128, 20), "dtype": DTYPES, "shards": SHARDS}, ()),
    "ViTForImageClassification": ("images", {"image_mean": 0.4, "image_std": 0.3}, IMAGES | {"patch_size": (2, 4)}, ()),
    "SwinForImageClassification": ("images", {"image_mean": 0.5, "image_std": 0.5, "patch_size": 2}, IMAGES | {
        "window_size": (1, 2), "mlp_ratio": (2.0, 1.5)}, ()),
    "BertForMaskedLM": ("mlm", {}, {"tokenizer": ("vocab.txt", "tokenizer.json"), "hidden_act": ("gelu", "relu", "gelu_new"),
                                    "type_vocab_size": (2, 3), "dtype": DTYPES, "shards": SHARDS}, ())}
SIZES = {"BertForMaskedLM": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                             "max_position_embeddings": 160},
         "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 96},
         "T5ForConditionalGeneration": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}}
PICTURES = {"image_size": (8, 12), "num_channels": 1, "id2label": {0: "animal", 1: "other"}, "label2id": {"animal": 0, "other": 1}}
SIZES |= {"ViTForImageClassification": PICTURES | {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                                                   "num_attention_heads": 4},
          "SwinForImageClassification": PICTURES | {"embed_dim": 16, "depths": (2,), "num_heads": (2,)}}
SIZES |= dict.fromkeys(("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM"), {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 96})
SIZES |= dict.fromkeys(("MarianMTModel", "BlenderbotForConditionalGeneration"), {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 160, "forced_eos_token_id": None})


def heed(program, *arguments, folder=None):
    """Runs heed and returns its standard output."""
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"heed {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def pairs_tokenizer(folder, lines):
    """A byte-level BPE tokenizer that ends texts with </s>. Returns the keys of the config."""
    tokenizer = learned.byte_pairs_of(lines, 500, specials=("<pad>", "</s>", "<s>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    size = tokenizer.get_vocab_size() + 3  # three ids without a piece
    return {"vocab_size": size, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "decoder_start_token_id": 2}


# Each saves a tokenizer, and returns the keys of config.json that depend on it.
TOKENIZERS = {
    "GPT-2": learned.byte_pairs(size=500), "vocab.json and merges.txt": learned.byte_pairs(size=500, old_files=True),
    "Llama 3": learned.byte_pairs("Llama 3", size=500, start=True), "Qwen2": learned.byte_pairs("Qwen2", learned.NFC, size=500),
    "tokenizer.model": learned.llama2(size=1200), "spiece.model": learned.t5(size=1000),
    "source.spm and target.spm": learned.marian(size=1000), "byte pairs": pairs_tokenizer, "vocab.txt": learned.word_pieces(True, size=300, lowercase=True),
    "tokenizer.json": learned.word_pieces(False, size=300, lowercase=False)}


def save_processor(folder, keys):
    """Saves how images are read. Removes its keys from those of the model."""
    about = {key: [keys.pop(key)] for key in ("image_mean", "image_std")}
    (folder / "preprocessor_config.json").write_text(json.dumps(about | {
        "image_processor_type": "ViTImageProcessor", "do_normalize": True, "do_rescale": True, "rescale_factor": 1 / 255,
        "do_resize": True, "resample": 2, "size": {"height": 8, "width": 12}}))
    return {}


def make(program, folder, name, case, keys):
    """Saves, imports and exports a model."""
    origin, run, export = (folder / f"{name}{what}" for what in ("-origin", "", "-export"))
    shutil.rmtree(origin, ignore_errors=True)
    origin.mkdir()
    keys = case[1] | keys
    if case[0] == "images":
        config = save_processor(origin, keys)
    else:
        lines = (folder / "source").read_text(encoding="utf-8").splitlines() + learned.make_lines(100, 1)
        config = TOKENIZERS[keys.pop("tokenizer")](origin, lines)
    dtype, shards, kind = keys.pop("dtype"), keys.pop("shards"), name.split("-")[1]
    torch.manual_seed(1)
    model = learned.new_model(kind, SIZES[kind] | config | keys)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data.normal_(0, 0.2)
    model.to(getattr(torch, dtype)).save_pretrained(origin, max_shard_size=shards)
    heed(program, "import", origin, "--run", run, "--overwrite")
    heed(program, "export", run, "--to", "huggingface", "--output", export, "--overwrite", "--check")
    return run, export


def log_probs_of_labels(folder, kind, files):
    """The log-probabilities of the label of each image, as transformers computes them."""
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32).eval()
    images, labels = (file.read_text().split() for file in files)
    ids = [model.config.label2id[label] for label in labels]
    logits = torch.cat([model(image).logits for image in pictures(folder, [files[0].parent / name for name in images])])
    found = torch.log_softmax(logits.double(), -1)[range(len(ids)), ids]
    return [(1, float(each)) for each in found]


def log_probs(folder, kind, lines):
    """The numbers of ids and the log-probabilities of lines, as transformers computes them; a source of an encoder-decoder
    model is its target. For a masked language model, each token of a line is hidden in turn."""
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for line in lines:
        plain, ids = (tokenizer(line, add_special_tokens=special).input_ids for special in (False, True))
        if kind == "BertForMaskedLM":
            rows = torch.tensor(ids).repeat(len(plain), 1)
            at = torch.arange(len(plain))
            rows[at, at + 1] = tokenizer.mask_token_id
            logits, labels = model(rows).logits[at, at + 1], plain
        elif model.config.is_encoder_decoder:
            labels = tokenizer(text_target=line).input_ids
            fed = torch.tensor([[model.config.decoder_start_token_id, *labels[:-1]]])
            logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=fed).logits[0]
        else:
            start = ids[:len(ids) - len(plain)] or tokenizer.encode("\n", add_special_tokens=False)
            logits, labels = model(torch.tensor([[*start, *plain[:-1]]])).logits[0][-len(plain):], plain
        found.append((len(labels), float(torch.log_softmax(logits.double(), -1)[range(len(labels)), labels].sum())))
    return found


@torch.no_grad()
def compare(program, lines_file, _, run, export, name):
    """The figures of one model."""
    torch.set_num_threads(1)
    lines = pathlib.Path(lines_file).read_text(encoding="utf-8").splitlines()
    folders = run.with_name(run.name + "-origin"), export
    source = ("--source", lines_file) if CASES[name][0] == "seq2seq" else ()
    if CASES[name][0] == "images":
        files = [run.parent / f"{side}.images" for side in ("lines", "targets")]
        source, lines_file = ("--source", files[0]), files[1]
        theirs, again = (log_probs_of_labels(folder, name, files) for folder in folders)
    else:
        theirs, again = (log_probs(folder, name, lines) for folder in folders)
    ours = json.loads(heed(program, "score", run, *source, "--target", lines_file, "--json", folder=run.parent))
    second_run, second = (run.with_name(run.name + what) for what in ("-run2", "-export2"))
    heed(program, "import", export, "--run", second_run, "--overwrite")
    heed(program, "export", second_run, "--to", "huggingface", "--output", second, "--overwrite")
    files = sorted(path.name for path in export.iterdir() if path.name != "README.md")
    different = [file for file in files if not filecmp.cmp(export / file, second / file, shallow=False)]
    return {"ids": sum(a == b for (a, _), b in zip(theirs, ours["tokens"])),
            "log_prob": max(abs(a - b) / n for (n, a), b in zip(theirs, ours["log_prob"])),
            "again": max(abs(a - b) / n for (n, a), (_, b) in zip(theirs, again)), "same": int(not different),
            "wrong": different + ["the export, in transformers"] * any(
                abs(a - b) > LIMIT * n for (n, a), (_, b) in zip(theirs, again))}
