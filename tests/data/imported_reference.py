#!/usr/bin/env python3
"""Writes imported_golden.json: small tokenizers that the library tokenizers learns, and its ids of lines in many scripts.

Run in an environment with tokenizers, such as build/clients/venv, which tests/clients/run makes.
"""
import json
import pathlib

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

TARGET = pathlib.Path(__file__).with_name("imported_golden.json")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
LINES = ["", " ", "\n\n x", "Hello, world!", "  two  spaces  ", "It's we've THEY'LL don't 'S ſ", "12345 67 ٣٤ ½ Ⅷ",
         "naïve café e\u0301 E\u0301 n\u0303 \u212b \u1e9b\u0323", "\u0130stanbul İ I\u0307 ß ẞ Σίσυφος ΟΔΟΣ",
         "Привет, мир! Ёлка й", "שָׁלוֹם עולם", "مَرْحَبًا بالعالم ١٢٣", "नमस्ते दुनिया क़ क्षेत्र", "สวัสดีชาวโลก น้ำ", "你好，世界。漢字 豈 更",
         "こんにちは カ\u3099 ガ ｶﾞ", "안녕하세요 \u1112\u1161\u11ab", "🙂👍🏽👨‍👩‍👧 ☃\ufe0f", "a\u0328\u0301 a\u0301\u0328 \u0344 \u0f73",
         "tab\there\r\nnew\u0085line\u2028\u00a0\u3000end", "a_b-c/d\\e@f#g$h%i^j&k*l(m)n+o=p~q`r|s<t>u", "x\u200by\u00adz\ufeff\ufffd\u0007",
         "wouldn't do not say ' quoted ' , right ?", "antidisestablishmentarianism" * 5, "fox and John's lazy dog",
         "мир" * 20]  # fewer than 100 characters, but more than 100 bytes


def train(tokenizer, trainer, decoder):
    """The tokenizer, learned from the lines, as the object in tokenizer.json."""
    tokenizer.decoder = decoder
    tokenizer.train_from_iterator(LINES * 3, trainer)
    return tokenizer


def byte_pairs(cut, normalizer=None, **options):
    """A byte-level BPE tokenizer."""
    tokenizer = tokenizers.Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = cut
    if normalizer:
        tokenizer.normalizer = normalizer
    return train(tokenizer, trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                special_tokens=["<|endoftext|>"], show_progress=False), decoders.ByteLevel())


def word_pieces(**options):
    """A WordPiece tokenizer."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return train(tokenizer, trainers.WordPieceTrainer(vocab_size=330, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
                                                      show_progress=False), decoders.WordPiece())


def main():
    """Writes the file."""
    pattern = pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated")
    bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    llama = byte_pairs(pre_tokenizers.Sequence([pattern, bare]), ignore_merges=True)
    llama.add_tokens(["fox", "John"])
    found = {"gpt2": byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False)), "llama3": llama,
             "qwen2": byte_pairs(pre_tokenizers.Sequence([pattern, bare]), normalizers.NFC()),
             "prefix": byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=True)),
             "bert-uncased": word_pieces(lowercase=True), "bert-cased": word_pieces(lowercase=False),
             "bert-accents": word_pieces(lowercase=True, strip_accents=False)}
    cases = []
    for name, tokenizer in found.items():
        ids = [tokenizer.encode(line, add_special_tokens=False).ids for line in LINES]
        cases.append({"name": name, "size": tokenizer.get_vocab_size(), "tokenizer": json.loads(tokenizer.to_str()),
                      "ids": ids, "texts": [tokenizer.decode(each) for each in ids]})
    TARGET.write_text(json.dumps({"lines": LINES, "cases": cases}, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
