#!/usr/bin/env python3
"""A slow reference implementation of BLEU and chrF: prints metrics_golden.json.

Written from the published definitions: mteval-v13a's tokenizer as regular expressions over Unicode
text, BLEU with "exp" smoothing, chrF with effective order.
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
    line = SIGNS.sub(r" \1 ", " " + line + " ")
    line = re.sub(r"([^0-9])([.,])", r"\1 \2 ", line)
    line = re.sub(r"([.,])([^0-9])", r" \1 \2", line)
    line = re.sub(r"([0-9])(-)", r"\1 \2 ", line)
    return line.split()


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
            "chrf": chrf(hypotheses, references)})
    golden = {"tokens": [[line, " ".join(tokenize(line))] for line in lines], "corpora": corpora}
    print(json.dumps(golden, ensure_ascii=True, indent=0))


main()
