"""Imported tokenizers beside the libraries that made them: the ids of 10,000 lines in ten scripts, and the text of these
ids. A module of `run`, which uses the Python module of heed.

Each tokenizer is learned from other lines of the same kind, saved beside a small model of transformers as its users do, and
imported. The lines are made of random words; their characters are those of Unicode 8, whose tables tokenizers has.
"""
import json
import random
import shutil
import subprocess
import sys

import sentencepiece
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import records

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
VERSIONS = f"tokenizers {tokenizers.__version__} sentencepiece {sentencepiece.__version__} transformers {transformers.__version__}"
LETTERS = {  # ranges of characters of each script, the last ones included
    "Latin": ("az", "az", "AZ", "\u00c0\u00d6", "\u00d8\u00ff", "\u0100\u017f"),
    "Cyrillic": ("\u0410\u042f", "\u0430\u044f", "\u0430\u044f", "\u0450\u045f"),
    "Greek": ("\u0391\u03a1", "\u03b1\u03c9", "\u03b1\u03c9", "\u03ac\u03ce", "\u1f00\u1f07"),
    "Hebrew": ("\u05d0\u05ea", "\u05d0\u05ea", "\u05b0\u05bc"), "Arabic": ("\u0621\u063a", "\u0641\u064a", "\u0641\u064a", "\u064b\u0652"),
    "Devanagari": ("\u0905\u0939", "\u0915\u0939", "\u093e\u094d", "\u0958\u095f"),
    "Thai": ("\u0e01\u0e2e", "\u0e01\u0e2e", "\u0e30\u0e3a", "\u0e40\u0e4e"),
    "Han": ("\u4e00\u4e2f", "\u4eba\u4ebf", "\u7684\u76a4", "\u3400\u340f", "\uf900\uf908"),
    "Kana": ("\u3042\u3093", "\u3041\u3094", "\u30a1\u30fa", "\uff66\uff9f", "\u3099\u309a"),
    "Hangul": ("\uac00\uac1b", "\ub098\ub0b3", "\ud558\ud573", "\u1100\u1112", "\u1161\u1175")}
DIGITS = ("09", "\u0660\u0669", "\u0966\u096f", "\u0e50\u0e59", "\uff10\uff19", "\u00b2\u00b3", "\u2160\u217b")
EXTRA = ("🙂", "👍🏽", "👨‍👩‍👧", "☃\ufe0f", "🇩🇪", "e\u0301", "I\u0307", "İ", "ß", "ǅ", "ﬁ", "ſ", "K", "Å", "…", "—", "“", "’s", "'ll", "'RE",
         "don't", "...", "!?", "a_b", "x=1;", "<b>", "№", "€", "½", "™", "a\u0328\u0301", "q\u0307\u0323", "\u0344")
SPACES = (" ",) * 12 + ("  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u00ad", "\ufeff", "\u0085",
                        "\u2028", "\u0007", "\u0000", "\u007f", "\ufffd", "\u200e")
SPLITS = {"Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                     r"\s+(?!\S)|\s+",
          "Qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                   r"\s+(?!\S)|\s+"}
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_lines(number, seed):
    """Lines of the ten scripts in turn; without NUL, which SentencePiece's training cannot read, but for `seed` 0."""
    rng = random.Random(seed)

    def among(ranges):
        first, *_, last = rng.choice(ranges)
        return chr(rng.randint(ord(first), ord(last)))

    words = {script: ["".join(among(ranges) for _ in range(rng.randint(1, 7))) for _ in range(400)] for script, ranges in LETTERS.items()}
    spaces = [space for space in SPACES if seed == 0 or space != "\0"]

    def word(script):
        kind = rng.random()
        if kind < 0.6:
            return rng.choice(words[script])
        if kind < 0.8:
            return "".join(among(LETTERS[script]) for _ in range(rng.randint(1, 9)))
        if kind < 0.9:
            return "".join(among(DIGITS) for _ in range(rng.randint(1, 6)))
        return rng.choice(EXTRA)

    def line(script):
        text = "".join(word(script) + rng.choice(spaces) for _ in range(rng.randint(1, 12)))
        return text if rng.random() < 0.2 else text.strip(" ")

    return [line(script) for _ in range(number // len(LETTERS)) for script in LETTERS]


def new_model(kind, config):
    """A model with initial values. The output matrix of T5 is separate, as in files of v1.1, which transformers 5 reads, but does
    not make."""
    model_class = getattr(transformers, kind)
    model = model_class(model_class.config_class(**config))
    if kind == "T5ForConditionalGeneration":
        model.lm_head.weight = torch.nn.Parameter(model.shared.weight.clone())
    return model


# ---- learning: each saves the files of a tokenizer, and returns the keys of config.json that depend on it ----
def byte_pairs_of(lines, size, pattern=None, normalizer=None, specials=("<|endoftext|>",)):
    """A byte-level BPE tokenizer; without a pattern, that of GPT-2."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=pattern == "Llama 3"))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tokenizer.pre_tokenizer = cut if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(tokenizers.Regex(SPLITS[pattern]), "isolated"), cut])
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(specials), show_progress=False))
    return tokenizer


def byte_pairs(pattern=None, normalizer=None, size=4000, old_files=False, start=False):
    """Byte-level BPE in tokenizer.json, which may put a token before texts, or in vocab.json and merges.txt."""
    def make(folder, lines):
        tokenizer = byte_pairs_of(lines, size, pattern, normalizer)
        if start:
            tokenizer.post_processor = processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
        if old_files:
            tokenizer.model.save(str(folder))
            (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
        else:
            tokenizer.save(str(folder / "tokenizer.json"))
            (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
        return {"vocab_size": tokenizer.get_vocab_size(), "bos_token_id": 0, "eos_token_id": 0}
    return make


def word_pieces(old_files, size=4000, **options):
    """WordPiece in tokenizer.json, or in vocab.txt with tokenizer_config.json."""
    def make(folder, lines):
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(**options)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(BERT), show_progress=False))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[(name, BERT.index(name)) for name in ("[CLS]", "[SEP]")])
        config = {"tokenizer_class": "BertTokenizer", "model_max_length": 512, "do_lower_case": options["lowercase"]}
        if old_files:
            tokenizer.model.save(str(folder))
            names = {"strip_accents": "strip_accents", "handle_chinese_chars": "tokenize_chinese_chars"}
            config |= {name: options[key] for key, name in names.items() if key in options}
        else:
            tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return {"vocab_size": tokenizer.get_vocab_size()}
    return make


def learn_pieces(path, lines, **options):
    """Learns a SentencePiece model; returns it."""
    sentences = iter([line.replace("\n", " ").replace("\r", " ") for line in lines])
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=sentences, model_writer=file, minloglevel=2,
                                                 hard_vocab_limit=False, **options)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def t5(size=4000):
    """A unigram model with the normaliser nmt_nfkc and the special ids of T5, in spiece.model."""
    def make(folder, lines):
        pieces = learn_pieces(folder / "spiece.model", lines, model_type="unigram", vocab_size=size, pad_id=0, eos_id=1,
                              unk_id=2, bos_id=-1)
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": 100}))
        return {"vocab_size": pieces.get_piece_size() + 128, "decoder_start_token_id": 0}  # 28 ids have no piece
    return make


def llama2(size=4000):
    """A BPE model with pieces for bytes, without normaliser, and the special ids of Llama, in tokenizer.model."""
    def make(folder, lines):
        pieces = learn_pieces(folder / "tokenizer.model", lines, model_type="bpe", vocab_size=size, byte_fallback=True, split_digits=True,
                              normalization_rule_name="identity", remove_extra_whitespaces=False, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}))
        return {"vocab_size": pieces.get_piece_size(), "bos_token_id": 1, "eos_token_id": 2}
    return make


def marian(size=3000):
    """Two unigram models, and vocab.json with the pieces of both in another order, but without one of each hundred."""
    def make(folder, lines):
        half = len(lines) // 2
        both = [learn_pieces(folder / name, part, model_type="unigram", vocab_size=size, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
                for name, part in (("source.spm", lines[:half]), ("target.spm", lines[half:]))]
        found = {model.id_to_piece(i) for model in both for i in range(3, model.get_piece_size()) if i % 100 != 50}
        vocabulary = ["</s>", "<unk>", *sorted(found, key=lambda piece: (len(piece), piece[::-1])), "<pad>"]
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
        pad = len(vocabulary) - 1
        return {"vocab_size": len(vocabulary), "pad_token_id": pad, "decoder_start_token_id": pad,
                "eos_token_id": 0}
    return make


# ---- libraries: encode and decode of the files in a folder ----
def of_tokenizers(folder):
    """The library tokenizers."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return (lambda line: tokenizer.encode(line, add_special_tokens=False).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False))


def of_transformers(name):
    """A fast tokenizer of transformers, which it makes of older files."""
    def load(folder):
        tokenizer = getattr(transformers, name).from_pretrained(folder).backend_tokenizer
        return (lambda line: tokenizer.encode(line, add_special_tokens=False).ids,
                lambda ids: tokenizer.decode(ids, skip_special_tokens=False))
    return load


def of_sentencepiece(name):
    """The library SentencePiece."""
    def load(folder):
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        return pieces.encode, pieces.decode
    return load


def of_marian(target):
    """Marian's tokenizer, which contains SentencePiece."""
    def load(folder):
        tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
        if target:
            tokenizer._switch_to_target_mode()

        def decode(ids):
            text = tokenizer.spm_target.decode_pieces([tokenizer.decoder[each] for each in ids]).replace("\u2581", " ")
            return text if text.startswith(" \u2047 ") else text.removeprefix(" ")  # U+2047: <unk>
        return lambda line: tokenizer.convert_tokens_to_ids(tokenizer._tokenize(line)), decode
    return load


MODELS = {"BertForMaskedLM": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1},
          "GPT2LMHeadModel": {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 8},
          "LlamaForCausalLM": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1},
          "MarianMTModel": {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 1,
                            "decoder_attention_heads": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8},
          "T5ForConditionalGeneration": {"d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "tie_word_embeddings": False}}
NFC = normalizers.NFC()
# Name: how it is made, the class of its model, the library that it is compared with, and whether lines are targets.
CASES = {
    "byte-level BPE, GPT-2": (byte_pairs(), "GPT2LMHeadModel", "tokenizers", of_tokenizers),
    "byte-level BPE, GPT-2, `vocab.json`, `merges.txt`": (byte_pairs(old_files=True), "GPT2LMHeadModel", "transformers",
                                                          of_transformers("GPT2TokenizerFast")),
    "byte-level BPE, Llama 3": (byte_pairs("Llama 3"), "GPT2LMHeadModel", "tokenizers", of_tokenizers),
    "byte-level BPE, Qwen2": (byte_pairs("Qwen2", NFC), "GPT2LMHeadModel", "tokenizers", of_tokenizers),
    "WordPiece, uncased": (word_pieces(False, lowercase=True), "BertForMaskedLM", "tokenizers", of_tokenizers),
    "WordPiece, cased": (word_pieces(False, lowercase=False), "BertForMaskedLM", "tokenizers", of_tokenizers),
    "WordPiece, uncased, `vocab.txt`": (word_pieces(True, lowercase=True), "BertForMaskedLM", "transformers",
                                        of_transformers("BertTokenizerFast")),
    "WordPiece, accents kept, `vocab.txt`": (word_pieces(True, lowercase=True, strip_accents=False, handle_chinese_chars=False),
                                             "BertForMaskedLM", "transformers", of_transformers("BertTokenizerFast")),
    "SentencePiece unigram, T5": (t5(), "T5ForConditionalGeneration", "sentencepiece", of_sentencepiece("spiece.model")),
    "SentencePiece BPE, Llama 2": (llama2(), "LlamaForCausalLM", "sentencepiece", of_sentencepiece("tokenizer.model")),
    "SentencePiece, Marian's source": (marian(), "MarianMTModel", "transformers", of_marian(False)),
    "SentencePiece, Marian's target": (marian(), "MarianMTModel", "transformers", of_marian(True), True),
    "T5, normalised by tokenizers": (t5(), "T5ForConditionalGeneration", "transformers", of_transformers("T5Tokenizer")),
    "Llama 2, merged by tokenizers": (llama2(), "LlamaForCausalLM", "transformers", of_transformers("LlamaTokenizer"))}
MAY_DIFFER = "by tokenizers"  # whose rules are not exactly those of SentencePiece


def differing(heed, program, folder, case, learnt, lines):
    """The lines whose ids, and whose decoded texts, differ."""
    make, kind, _, library, *target = case
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = make(folder, learnt)
    torch.manual_seed(1)
    new_model(kind, MODELS[kind] | config).save_pretrained(folder)
    run = folder.with_name(folder.name + "-run")
    done = subprocess.run([program, "import", folder, "--run", run, "--overwrite"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"heed import {folder}: {done.stderr}")
    ours = heed.Run(run)
    encode, decode = library(folder)
    ids = [encode(line) for line in lines]
    return ([line for line, each in zip(lines, ids) if ours.encode(line, *target) != each],
            [line for line, each in zip(lines, ids) if ours.decode(each) != decode(each)])


def table(options, folder, _):
    """The columns and rows of the table, and the number of failures."""
    columns = [*records.texts("tokenizer", "compared with"),
               *(records.column(head, "d") for head in ("lines", "lines with equal ids", "equal texts"))]
    sys.path.append(str(options.heed.parent / "python"))
    try:
        import heed  # noqa: PLC0415: built beside the program
    except ImportError as missing:
        print(f"import_tokenizers: skipped: {missing}: cmake --build build/release --target heed_python")
        return columns, [], 0
    number = 10_000 if options.most is None else 1000
    learnt, lines = make_lines(number // 2, 1), make_lines(number, 0)
    rows, failed = [], 0
    for i, (name, case) in enumerate(CASES.items()):
        if options.only not in name:
            continue
        ids, texts = differing(heed, options.heed, folder / "tokenizers" / str(i), case, learnt, lines)
        rows.append([name, case[2], len(lines), len(lines) - len(ids), len(lines) - len(texts)])
        print(*rows[-1], *map(repr, ids[:2]), *map(repr, texts[:2]), flush=True)
        failed += bool(ids or texts) and not name.endswith(MAY_DIFFER)
    return columns, rows, failed
