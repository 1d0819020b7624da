"""Exports of `--to onnx` in ONNX Runtime and transformers.js: log-probabilities of given outputs and greedy outputs, with a
cache and with padded batches, beside heed's. A module of `run`.
"""
import json
import pathlib
import shutil
import subprocess

import numpy
import onnx
import onnxruntime
import tokenizers

onnxruntime.set_default_logger_severity(3)
VERSIONS = f"onnxruntime {onnxruntime.__version__} onnx {onnx.__version__}"
LIMIT = 2e-5
MORE = (("int8: equal greedy outputs", "d", "int8_greedy", sum), ("int8: largest difference", ".1e", "int8_log_prob", max))
STEPS = 24  # decode.max_length of the tests
BOS, EOS = 1, 2
ROOT = pathlib.Path(__file__).parent
JAVASCRIPT_LINES = 5
IN_JAVASCRIPT = set()  # classes that transformers.js has read
WORDS = ("--to", "onnx", "--int8")
TOKENIZERS = ("char", "byte", "word", "unigram", "bpe")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "swiglu", "geglu")
SCHEMES = ("sinusoidal", "learned", "rotary", "alibi", "relative_shaw", "relative_t5", "relative_xl", "none")
# A value may set further keys, which only it allows.
ATTENTION = {"positions": SCHEMES, "attention.pattern": ("full", "window attention.window=5", "topk attention.top_k=3"),
             "activation": ("relu", "swiglu"), "norm": ("pre", "post"), "norm_kind": ("layer", "rms"), "block": ("serial", "parallel"),
             "attention.kv_heads": ("0", "1", "2"), "scale_embeddings": ("true", "false")}
PIXELS = {"activation": ("gelu", "swiglu"), "positions": ("learned", "sinusoidal", "relative_t5"), "norm_kind": ("layer", "rms"),
          "pool": ("first", "mean")}
CASES = {
    "lm": ("lm", {}, {**ATTENTION, "tie_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}, WORDS),
    "lm, others": ("lm", {}, {"positions": ("rotary rotary_pairs=adjacent", "none", "sinusoidal"), "activation": ACTIVATIONS,
                              "attention.kv_heads": ("0", "2"), "residual": ("true", "false"), "norm": ("pre", "none"),
                              "attention.pattern": ("linear", "full attention.map=hard", "window attention.window=4",
                                                    "full attention.scale=0.3"), "tokenizer": ("char",)}, WORDS),
    "seq2seq": ("seq2seq", {}, {**ATTENTION, "tie_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}, WORDS),
    "seq2seq, two vocabularies": ("seq2seq", {"tokenizer.shared": "false"}, {
        "positions": ("learned", "rotary"), "tie_embeddings": ("true", "false"), "tokenizer": ("char", "word")}, WORDS),
    "captions": ("captions", {}, {"positions": ("learned", "sinusoidal"), "front_end.kind": ("linear", "conv front_end.layers=1"),
                                  "tokenizer": ("char",)}, WORDS),
    "features": ("features", {}, {"positions": ("sinusoidal", "relative_t5"), "norm": ("pre", "post"),
                                  "front_end.kind": ("linear", "conv front_end.layers=2"), "tokenizer": ("char",)}, WORDS),
    "classify": ("classify", {}, {**ATTENTION, "pool": ("first", "mean"), "segments": ("1", "2"), "tokenizer": ("char", "bpe")}, WORDS),
    "tag": ("tag", {}, {**ATTENTION, "norm_kind": ("layer", "rms", "batch"), "norm": ("pre", "post"), "tokenizer": ("word",)}, WORDS),
    "mlm": ("mlm", {}, {**ATTENTION, "tie_embeddings": ("true", "false"), "tokenizer": ("char", "word")}, WORDS),
    "ViT": ("images", {}, {**PIXELS, "tokenizer": ("char",)}, WORDS),
    "Swin": ("images", {"kind": "swin", "pool": "mean", "swin.window": "2"},
             {"swin.depths": ("[2]", "[1,2]"), "norm": ("pre", "post"), "norm_kind": ("layer", "rms"), "attention.kv_heads": ("0", "2"),
              "final_norm": ("true",), "tokenizer": ("char",)}, WORDS)}


def heed(program, folder, *arguments):
    """Runs heed in a folder and returns its standard output."""
    return subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace").stdout  # byte-level models write any bytes


def log_softmax(logits):
    """Log-probabilities in float64."""
    logits = logits.astype(numpy.float64)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))


class Session:
    """A graph in ONNX Runtime. Inputs of the cache that are not given are empty."""

    def __init__(self, path):
        onnx.checker.check_model(str(path), full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.outputs = [each.name for each in self.session.get_outputs()]
        self.inputs = {each.name: each.shape for each in self.session.get_inputs()}

    def __call__(self, **given):
        batch = next(iter(given.values())).shape[0]
        for name, shape in self.inputs.items():
            if name.startswith("past_key_values") and name not in given:
                sizes = [batch if size == "batch_size" else size if isinstance(size, int) else 0 for size in shape]
                given[name] = numpy.zeros(sizes, numpy.float32)
        feeds = {name: value for name, value in given.items() if name in self.inputs}
        return dict(zip(self.outputs, self.session.run(None, feeds)))


class Exported:
    """The graphs of a folder, float32 or int8."""

    def __init__(self, folder, suffix=""):
        graphs = {path.stem.removesuffix(suffix): Session(path) for path in (folder / "onnx").glob(f"*{suffix}.onnx")
                  if suffix or not path.stem.endswith("_quantized")}
        self.encoder, self.decoder, self.model = (graphs.get(n) for n in ("encoder_model", "decoder_model_merged", "model"))

    def encoded(self, source):
        """What the decoder reads of the inputs of the encoder."""
        found = {"encoder_hidden_states": self.encoder(**source)["last_hidden_state"]}
        return found | ({"encoder_attention_mask": source["attention_mask"]} if "attention_mask" in source else {})

    def target_logits(self, source, ids):
        """Logits of a target (ids [batch, length]) of an encoder-decoder, without a cache."""
        return self.decoder(input_ids=ids, use_cache_branch=numpy.array([False]), **self.encoded(source))["logits"]

    def greedy(self, source, prompt):
        """Greedy output (ids), one token at a time with the cache."""
        ids, found, past = numpy.array([prompt], numpy.int64), [], {}
        encoded = self.encoded(source) if self.encoder else {}
        for step in range(STEPS):
            if self.encoder:
                result = self.decoder(input_ids=ids, use_cache_branch=numpy.array([step > 0]), **encoded, **past)
            else:
                mask = numpy.ones((1, len(prompt) + len(found)), numpy.int64)
                result = self.model(input_ids=ids, attention_mask=mask, **past)
            logits = result["logits"][0, -1]
            logits[:BOS + 1] = -numpy.inf  # suppress_tokens
            found.append(int(logits.argmax()))
            if found[-1] == EOS:
                break
            ids = numpy.array([[found[-1]]], numpy.int64)
            cache = {name.replace("present", "past_key_values"): value for name, value in result.items() if name != "logits"}
            past = cache if step == 0 else {name: past[name] if ".encoder." in name else value for name, value in cache.items()}
        return [token for token in found if token != EOS]


def text_inputs(ids):
    """Inputs of an encoder for the ids of a text."""
    return {"input_ids": numpy.array([ids], numpy.int64), "attention_mask": numpy.ones((1, len(ids)), numpy.int64)}


def image_inputs(path, export):
    """Pixels as an image processor makes them from a PGM file."""
    settings = json.loads((export / "preprocessor_config.json").read_text())
    size = settings["size"]
    values = numpy.frombuffer(path.read_bytes()[-size["height"] * size["width"]:], numpy.uint8)
    pixels = values.reshape(1, 1, size["height"], size["width"]) * settings["rescale_factor"]
    return {"pixel_values": ((pixels - settings["image_mean"][0]) / settings["image_std"][0]).astype(numpy.float32)}


def feature_inputs(path):
    """Rows of a matrix."""
    rows = numpy.load(path)[None]
    return {"input_features": rows, "attention_mask": numpy.ones(rows.shape[:2], numpy.int64)}


def padded(inputs, left):
    """One batch of several inputs with a mask, padded on one side."""
    length = max(each["attention_mask"].shape[1] for each in inputs)

    def grown(value):
        spare = length - value.shape[1]
        return numpy.pad(value, ((0, 0), (spare, 0) if left else (0, spare), *((0, 0),) * (value.ndim - 2)), constant_values=0)
    return {name: numpy.concatenate([grown(each[name]) for each in inputs]) for name in inputs[0]}


def batch_difference(alone, together, lengths, left):
    """The largest difference between logits computed alone and in a padded batch."""
    worst = 0.0
    for i, (logits, length) in enumerate(zip(alone, lengths)):
        rows = together[i] if together.ndim == 2 else together[i][-length:] if left else together[i][:length]
        worst = max(worst, float(numpy.abs(rows - logits[0]).max()))
    return worst


class Task:
    """What the comparison needs of a task: sources, targets, heed's figures."""

    def __init__(self, task, program, lines_file, run, export):
        self.task, self.program, self.run, self.export = task, program, run, export
        self.folder = pathlib.Path(lines_file).parent
        self.lines_file, self.targets_file = self.folder / f"lines.{task}", self.folder / f"targets.{task}"
        if not self.targets_file.exists():
            self.targets_file = self.lines_file
        read = lambda path: path.read_text(encoding="utf-8").splitlines()  # noqa: E731
        self.lines, self.targets = read(self.lines_file), read(self.targets_file)
        tokenizer = export / "tokenizer.json"
        self.source = tokenizers.Tokenizer.from_file(str(tokenizer)) if tokenizer.exists() else None
        other = export / "target" / "tokenizer.json"
        self.target = tokenizers.Tokenizer.from_file(str(other)) if other.exists() else self.source
        self.config = json.loads((export / "config.json").read_text())

    def inputs(self, line):
        """Inputs of the encoder."""
        if self.task in ("images", "captions"):
            return image_inputs(self.folder / line, self.export)
        if self.task == "features":
            return feature_inputs(self.folder / line)
        first, _, second = line.partition("\t")
        return text_inputs(self.source.encode(first, second or None).ids)

    def scores(self):
        """heed's log-probabilities and numbers of tokens."""
        source = () if self.task == "lm" else ("--source", self.lines_file)
        return json.loads(heed(self.program, self.folder, "score", self.run, *source, "--target", self.targets_file, "--json"))

    def outputs(self):
        """heed's greedy outputs."""
        options = () if self.task in ("classify", "tag", "mlm", "images") else ("decode.beam=1",)
        if self.task == "lm":
            return [heed(self.program, self.folder, "generate", self.run, "--prompt", line, *options).rstrip("\n") for line in self.lines]
        return heed(self.program, self.folder, "generate", self.run, "--input", self.lines_file, *options).splitlines()

    def target_ids(self, line):
        """Ids of a target without special tokens."""
        return self.target.encode(line, add_special_tokens=False).ids


def of_language_model(task, model):
    """(log-probabilities, numbers of tokens, outputs, difference of a padded batch)"""
    start = task.source.encode("\n").ids or [EOS]
    wanted = [start + task.source.encode(line).ids for line in task.lines]
    inputs = [text_inputs(ids[:-1]) for ids in wanted]
    alone = [model.model(**each)["logits"] for each in inputs]
    log_probs = [log_softmax(logits[0])[range(len(ids) - 1), ids[1:]].sum() for logits, ids in zip(alone, wanted)]
    together = model.model(**padded(inputs[:3], True))["logits"]
    found = [task.source.encode(line).ids for line in task.lines]
    texts = [task.source.decode(ids + model.greedy({}, ids)).rstrip("\n") for ids in found]
    return log_probs, [len(ids) - len(start) for ids in wanted], texts, \
        batch_difference(alone[:3], together, [len(ids) - 1 for ids in wanted], True)


def of_pairs(task, model):
    """As of_language_model, for an encoder and a decoder."""
    inputs = [task.inputs(line) for line in task.lines]
    wanted = [task.target_ids(line) + [EOS] for line in task.targets]
    alone = [model.target_logits(each, numpy.array([[BOS, *ids[:-1]]], numpy.int64)) for each, ids in zip(inputs, wanted)]
    log_probs = [log_softmax(logits[0])[range(len(ids)), ids].sum() for logits, ids in zip(alone, wanted)]
    texts = [task.target.decode(model.greedy(each, [BOS])) for each in inputs]
    difference = 0.0
    if "attention_mask" in inputs[0]:
        length = min(len(ids) for ids in wanted[:3])
        ids = numpy.array([[BOS, *each[:length - 1]] for each in wanted[:3]], numpy.int64)
        difference = batch_difference([logits[:, :length] for logits in alone[:3]], model.target_logits(padded(inputs[:3], False), ids),
                                      [length] * 3, False)
    return log_probs, [len(ids) for ids in wanted], texts, difference


def of_labels(task, model):
    """As of_language_model, for labels of sequences or of tokens."""
    inputs = [task.inputs(line) for line in task.lines]
    alone = [model.model(**each)["logits"] for each in inputs]
    names, ids_of = task.config["id2label"], task.config["label2id"]
    wanted = [[ids_of[label] for label in line.split()] for line in task.targets]
    rows = [logits.reshape(-1, logits.shape[-1]) for logits in alone]
    log_probs = [log_softmax(each)[range(len(ids)), ids].sum() for each, ids in zip(rows, wanted)]
    texts = [" ".join(names[str(label)] for label in each[:, EOS + 1:].argmax(-1) + EOS + 1) for each in rows]
    difference = 0.0
    if "attention_mask" in inputs[0]:
        together = model.model(**padded(inputs[:3], False))["logits"]
        difference = batch_difference(alone[:3], together, [each["attention_mask"].shape[1] for each in inputs], False)
    return log_probs, list(map(len, wanted)), texts, difference


def of_masked(task, model):
    """Filled lines. A masked language model defines no probability of a line."""
    mask = task.source.token_to_id("<mask>")
    texts = []
    for line in task.lines:
        ids = numpy.array(task.source.encode(line).ids)
        logits = model.model(**text_inputs(ids))["logits"][0]
        first = mask + 1
        ids = numpy.where(ids == mask, logits[:, first:].argmax(-1) + first, ids)
        texts.append(task.source.decode(list(ids[1:-1])))
    return None, None, texts, 0.0


def node_modules(folder):
    """Installs transformers.js, without the scripts of its packages, which download more. None without Node.js."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    if not (folder / "node_modules/@huggingface/transformers").exists():
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder, "@huggingface/transformers@4"], check=True)
    return folder / "node_modules"


def of_javascript(task, heeds):
    """Differences of heed's first outputs from those of transformers.js, which has no class for features."""
    modules = node_modules(task.folder)
    if task.task == "features" or modules is None:
        return []
    lines = task.lines[:JAVASCRIPT_LINES]
    found = subprocess.run(["node", ROOT / "transformers_js.mjs", modules, task.export, task.task, "fp32"], cwd=task.folder,
                           input="\n".join(lines), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if found.returncode != 0:
        return [f"transformers.js: {found.stderr[-1500:]}"]
    texts = [text.rstrip("\n") for text in json.loads(found.stdout)]
    return [f"transformers.js: {text!r}, heed: {own!r}" for text, own in zip(texts, heeds) if text != own]


def compare(program, lines_file, _, run, export, name):
    """The figures of one export. The first of each class is also read by transformers.js."""
    export = pathlib.Path(export)
    task = Task(CASES[name][0], program, lines_file, run, export)
    measure = {"lm": of_language_model, "classify": of_labels, "tag": of_labels, "images": of_labels,
               "mlm": of_masked}.get(task.task, of_pairs)
    log_probs, lengths, texts, difference = measure(task, Exported(export))
    wrong = [f"a padded batch differs by {difference}"] if difference > 1e-4 else []
    quantised = measure(task, Exported(export, "_quantized"))
    heeds = task.outputs()
    scores = task.scores() if lengths else {"log_prob": [0.0], "tokens": [0] * len(task.lines)}
    log_probs, lengths = log_probs or [0.0], lengths or scores["tokens"]

    def largest(found):
        return max(abs(a - b) / max(n, 1) for a, b, n in zip(found, scores["log_prob"], lengths))
    if name not in IN_JAVASCRIPT:
        IN_JAVASCRIPT.add(name)
        wrong += of_javascript(task, heeds)
    return {"ids": sum(a == b for a, b in zip(lengths, scores["tokens"])), "log_prob": largest(log_probs),
               "greedy": sum(a == b for a, b in zip(heeds, texts)),
               "first_difference": next(([a, b] for a, b in zip(heeds, texts) if a != b), None),
               "int8_log_prob": largest(quantised[0] or [0.0]),
               "int8_greedy": sum(a == b for a, b in zip(heeds, quantised[2])), "wrong": wrong}
