"""Exports of `--to gguf` in llama.cpp, through the npm package node-llama-cpp, whose binaries need no compiler: the number
of ids of lines, log-probabilities of given outputs and greedy outputs, beside heed's. The file is also read by PyPI's gguf,
whose own quantiser must yield the same bytes. A module of `run`.
"""
import json
import pathlib
import subprocess

import gguf

from clients.huggingface import heed

NODE_PACKAGE = "node-llama-cpp@3"
LIMIT = 5e-3  # llama.cpp reads GELU from a table of float16; its cache, usually float16 too, is float32 here
LIMITS = {"q8_0": 5e-2}  # llama.cpp also rounds the inputs of products to bytes
TOKENIZERS = ("char", "byte", "unigram", "bpe")
FILE, HALF, BYTES = (("--to", "gguf", "--precision", p) for p in ("float32", "float16", "int8"))
COMMON = {"scale_embeddings": ("true", "false"), "attention.kv_heads": ("0", "2"), "tokenizer": TOKENIZERS}
LAYER = {"activation": "gelu_tanh"}
ROTARY = {"rotary_base": ("10000", "500000"), **COMMON}
PAIRS = {"rotary_pairs": ("halves", "adjacent"), **ROTARY}
SMALL = {"scale_embeddings": ("true", "false"), "tokenizer": TOKENIZERS}
CASES = {
    "gpt2": ("lm", LAYER, {"positions": ("learned", "sinusoidal", "none"), **COMMON, "attention.kv_heads": ("0", "1", "2")}, FILE),
    "starcoder2": ("lm", LAYER | {"positions": "rotary"}, PAIRS, FILE),
    "gptneox": ("lm", LAYER | {"positions": "rotary", "block": "parallel"}, ROTARY, FILE),
    "mpt": ("lm", LAYER | {"positions": "alibi"}, COMMON, FILE),
    "llama": ("lm", {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu"}, PAIRS, FILE),
    "float16": ("lm", {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu"}, SMALL, HALF),
    "q8_0": ("lm", LAYER, {"positions": ("learned", "rotary"), **SMALL}, BYTES)}
# One thread: others would wait for each other in a loop. Loading tokenises a sentence of its own, unless it is stopped.
SCRIPT = """
import {getLlama, LlamaModel} from "node-llama-cpp";
import fs from "node:fs";
LlamaModel.prototype.getWarnings = () => [];
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 128, batchSize: 128, threads: 1, flashAttention: false,
                                            experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
const sequence = context.getSequence();
const whole = {generateNext: {token: false, probabilities: true, options: {temperature: 1, topK: 0, topP: 1, minP: 0}}};
const greedy = {generateNext: {token: true, probabilities: true, options: {temperature: 0}}};
for (const line of fs.readFileSync(process.argv[3], "utf8").split("\\n").slice(0, -1)) {
  const ids = model.tokenize(line, false, "trimLeadingSpace"), newline = model.tokenize("\\n", false);
  const all = [...(newline.length ? newline : [2]), ...ids], first = all.length - ids.length;
  await sequence.clearHistory();
  const scored = await sequence.controlledEvaluate(all.map((id, i) => i + 1 < first ? id : [id, whole]));
  const logProbs = ids.map((id, i) => Math.log(scored[first + i - 1].next.probabilities.get(id) ?? 0));
  await sequence.clearHistory();
  const more = [], steps = [];  // steps: the text before each token, and how much more probable it is than the next one
  for (let fed = ids; more.length < 24; fed = [more.at(-1)]) {
    const found = await sequence.controlledEvaluate([...fed.slice(0, -1), [fed.at(-1), greedy]]);
    const {token, probabilities} = found.at(-1).next;
    const [best, second] = probabilities.values();
    steps.push([model.detokenize([...ids, ...more], false), Math.log(best / second)]);
    if (token == null || model.isEogToken(token)) break;
    more.push(token);
  }
  console.log(JSON.stringify({steps, tokens: ids.length, log_prob: logProbs.reduce((a, b) => a + b, 0),
                              text: model.detokenize([...ids, ...more], false)}));
}
process.exit(0);
"""
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build/clients/llama"


def install():
    """The folder with node-llama-cpp, which the first call installs without its packages for graphics cards."""
    package = FOLDER / "node_modules/node-llama-cpp/package.json"
    if not package.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        npm = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", FOLDER)
        subprocess.run([*npm, "--omit=optional", NODE_PACKAGE], check=True, stdout=subprocess.DEVNULL)
        binaries = "@node-llama-cpp/linux-x64@" + json.loads(package.read_text())["version"]
        subprocess.run([*npm, "--no-save", "--omit=optional", binaries], check=True, stdout=subprocess.DEVNULL)
    return json.loads(package.read_text())["version"]


VERSIONS = f"node-llama-cpp {install()}"


def wrong_tensors(export):
    """The tensors of the type q8_0 whose bytes differ from those of the package gguf."""
    quantised = gguf.GGUFReader(export)
    plain = {t.name: t.data for t in gguf.GGUFReader(str(export) + ".f32").tensors}
    return [t.name for t in quantised.tensors if t.tensor_type == gguf.GGMLQuantizationType.Q8_0 and
            (t.data != gguf.quants.quantize(plain[t.name], t.tensor_type)).any()]


def equal(theirs, ours, limit):
    """Whether an output is heed's, or differs from it after a token whose successor is as probable as another one. The
    limit concerns means of many tokens; that of a single token is four times as high."""
    if theirs["text"].rstrip("\n") == ours:
        return True
    *_, (_, margin) = (step for step in theirs["steps"] if ours.startswith(step[0].rstrip("\n")))
    return margin < 4 * limit


def compare(program, lines_file, targets_file, run, export, name):
    """The figures of one export."""
    del targets_file  # language models have none
    (FOLDER / "client.mjs").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(["node", "client.mjs", export, lines_file], cwd=FOLDER, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
    theirs = list(map(json.loads, done.stdout.splitlines()))
    scores = json.loads(heed(program, "score", run, "--target", lines_file, "--json"))
    lines = lines_file.read_text(encoding="utf-8").splitlines()
    ours = [heed(program, "generate", run, "--prompt", line, "decode.beam=1").rstrip("\n") for line in lines]
    texts = [each["text"].rstrip("\n") for each in theirs]
    wrong = [] if name in ("float16", "q8_0") or gguf.GGUFReader(export).get_field("general.architecture").contents() == name \
        else ["general.architecture"]
    if name == "q8_0":
        heed(program, "export", run, "--to", "gguf", "--output", f"{export}.f32", "--overwrite")
        wrong += wrong_tensors(export)
    return {"ids": sum(a["tokens"] == b for a, b in zip(theirs, scores["tokens"])),
            "log_prob": max(abs(a["log_prob"] - b) / max(a["tokens"], 1) for a, b in zip(theirs, scores["log_prob"])),
            "greedy": sum(equal(a, b, LIMITS.get(name, LIMIT)) for a, b in zip(theirs, ours)),
            "first_difference": next(([a, b] for a, b in zip(texts, ours) if a != b), None),
            "wrong": wrong}
