#!/usr/bin/env python3
"""A slow reference implementation of BLEU, chrF and ROUGE: prints metrics_golden.json.

Written from the published definitions: mteval-v13a's and sacreBLEU's zh tokenizers as regular expressions over
Unicode text, BLEU with "exp" smoothing, chrF with effective order, ROUGE-N by counting n-grams, and
ROUGE-L by a table of longest common subsequences.
    python3 metrics_reference.py > metrics_golden.json
"""
import json
import math
import random
import re
from collections import Counter
from fractions import Fraction

SIGNS = re.compile("([" + "".join(re.escape(chr(c)) for c in range(32, 127)
                                  if not chr(c).isalnum() and chr(c) not in "',-.") + "])")


def tokenize(line):
    line = line.rstrip()
    for what, by in [("<skipped>", ""), ("-\n", ""), ("\n", " "),
                     ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")]:
        line = line.replace(what, by)
    return split_signs(" " + line + " ")


def split_signs(line):
    line = SIGNS.sub(r" \1 ", line)
    line = re.sub(r"([^0-9])([.,])", r"\1 \2 ", line)
    line = re.sub(r"([.,])([^0-9])", r" \1 \2", line)
    line = re.sub(r"([0-9])(-)", r"\1 \2 ", line)
    return line.split()


# The table of sacreBLEU 2.6.0, whose bounds are strings. Those of extension B and of the supplement have two characters.
CHINESE = [("\u3400", "\u4db5"), ("\u4e00", "\u9fa5"), ("\u9fa6", "\u9fbb"), ("\uf900", "\ufa2d"), ("\ufa30", "\ufa6a"),
           ("\ufa70", "\ufad9"), ("\u20000", "\u2a6d6"), ("\u2f800", "\u2fa1d"), ("\uff00", "\uffef"), ("\u2e80", "\u2eff"),
           ("\u3000", "\u303f"), ("\u31c0", "\u31ef"), ("\u2f00", "\u2fdf"), ("\u2ff0", "\u2fff"), ("\u3100", "\u312f"),
           ("\u31a0", "\u31bf"), ("\ufe10", "\ufe1f"), ("\ufe30", "\ufe4f"), ("\u2600", "\u26ff"), ("\u2700", "\u27bf"),
           ("\u3200", "\u32ff"), ("\u3300", "\u33ff")]


def is_chinese(c):
    return any(a <= c <= b for a, b in CHINESE)


def chinese_ranges():
    """The first and last code points of all runs of Chinese characters."""
    all_of_them = [n for n in range(0x110000) if is_chinese(chr(n))]
    first = [n for n, before in zip(all_of_them, [-1] + all_of_them) if n != before + 1]
    last = [n for n, after in zip(all_of_them, all_of_them[1:] + [-1]) if n != after - 1]
    return list(zip(first, last))


def tokenize_zh(line):
    return split_signs("".join(f" {c} " if is_chinese(c) else c for c in line.strip()))


def tokenize_characters(line):
    return " ".join(line).split()


def ngrams(items, n):
    return Counter(tuple(items[i:i + n]) for i in range(len(items) - n + 1))


def bleu(hypotheses, references, words):
    matches, totals, hyp_len, ref_len = [0] * 4, [0] * 4, 0, 0
    for hypothesis, reference in zip(hypotheses, references):
        hypothesis, reference = words(hypothesis), words(reference)
        hyp_len += len(hypothesis)
        ref_len += len(reference)
        for n in range(4):
            have = ngrams(hypothesis, n + 1)
            matches[n] += sum((have & ngrams(reference, n + 1)).values())
            totals[n] += sum(have.values())
    penalty = 1.0
    if hyp_len < ref_len:
        penalty = math.exp(1 - ref_len / hyp_len) if hyp_len else 0.0
    score = 0.0
    if any(matches) and all(totals):
        product, halvings = Fraction(1), 0
        for match, total in zip(matches, totals):
            if match == 0:
                halvings += 1
                product *= Fraction(1, 2 ** halvings * total)
            else:
                product *= Fraction(match, total)
        score = 100 * penalty * math.sqrt(math.sqrt(product))
    return {"matches": matches, "totals": totals, "hyp_len": hyp_len, "ref_len": ref_len,
            "brevity_penalty": penalty, "score": score}


def chrf(hypotheses, references, beta=2):
    prepare = lambda line: "".join(line.split())
    precisions, recalls = [], []
    for n in range(1, 7):
        matched = made = wanted = 0
        for hypothesis, reference in zip(hypotheses, references):
            have, want = ngrams(prepare(hypothesis), n), ngrams(prepare(reference), n)
            matched += sum((have & want).values())
            wanted += sum(want.values())
            made += sum(have.values()) if want else 0
        if made and wanted:
            precisions.append(Fraction(matched, made))
            recalls.append(Fraction(matched, wanted))
    if not sum(precisions):
        return 0.0
    p, r = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return float(100 * (1 + beta ** 2) * p * r / (beta ** 2 * p + r))


def rouge(hypotheses, references):
    words = lambda line: re.findall("[a-z0-9\u0080-\U0010ffff]+", line.lower())
    f1 = lambda common, a, b: Fraction(200 * common, a + b) if common else Fraction(0)
    totals = [Fraction(0)] * 3
    for hypothesis, reference in zip(hypotheses, references):
        h, r = words(hypothesis), words(reference)
        for n in (1, 2):
            have, want = ngrams(h, n), ngrams(r, n)
            totals[n - 1] += f1(sum((have & want).values()), sum(have.values()), sum(want.values()))
        longest = [[0] * (len(r) + 1) for _ in range(len(h) + 1)]
        for i, a in enumerate(h):
            for j, b in enumerate(r):
                longest[i + 1][j + 1] = longest[i][j] + 1 if a == b else max(longest[i][j + 1], longest[i + 1][j])
        totals[2] += f1(longest[-1][-1], len(h), len(r))
    return [float(t / len(hypotheses)) for t in totals]


def random_line(rng):
    pieces = ["Ein", "Mann", "fährt", "straße", "Größe", "1", "23", "1,000.5", ".", ",", "..", "-", "--",
              "3-4", "a-b", " ", "  ", "\u00a0", "\u3000", "\u2009", "\t", "&quot;", "&amp;lt;", "&amp;",
              "<skipped>", "(", ")", "[", "]", "{", "}", "'", "’s", "don't", "$5", "50%", "#", "@", "~",
              "`", "^", "_", "|", "\\", "/", ":", ";", "!", "?", "=", "+", "*", "<", ">", '"', "“", "…",
              "日本", "語", "。", "٣.٤", "é.", "5.", ".5", "5.é", "😀", "😀.", "U.S.", "e.g.,", "x"]
    return "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randrange(0, 16)))


def main():
    rng = random.Random(20240229)
    lines = [random_line(rng) for _ in range(300)]
    corpora = []
    for size, change in [(1, 0.3), (2, 0.5), (40, 0.2), (40, 0.4), (7, 0.9), (3, 1.0)]:
        references = [random_line(rng) for _ in range(size)]
        hypotheses = []
        for i in range(size):
            words = references[i].split(" ")
            words = [random_line(rng) if rng.random() < change / 2 else w for w in words
                     if rng.random() > change / 2]
            line = " ".join(words)
            hypotheses.append(line.upper() if rng.random() < 0.2 else line)
        corpora.append({
            "hypotheses": hypotheses, "references": references,
            "bleu": bleu(hypotheses, references, tokenize),
            "bleu_none": bleu(hypotheses, references, str.split),
            "bleu_zh": bleu(hypotheses, references, tokenize_zh),
            "bleu_char": bleu(hypotheses, references, tokenize_characters),
            "chrf": chrf(hypotheses, references),
            "rouge": rouge(hypotheses, references)})
    golden = {"tokens": [[line, " ".join(tokenize(line))] for line in lines],
              "tokens_zh": [[line, " ".join(tokenize_zh(line))] for line in lines],
              "chinese_ranges": chinese_ranges(), "corpora": corpora}
    print(json.dumps(golden, ensure_ascii=True, indent=0))


if __name__ == "__main__":
    main()
