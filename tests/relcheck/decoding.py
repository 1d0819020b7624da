"""A sentence decoded or scored alone or in a batch, with and without cached keys: the same text and figures."""
import json
import random


# Were these products BLAS's, their rows would have other bits alone than among others: OpenBLAS has other
# code for small matrices, with the code for SkylakeX up to 1,200 values of the result. A row of this model
# is below that, a batch above.
TRAINING = ("model.d_model=64", "model.d_ff=256", "model.heads=4", "model.layers=2", "train.steps=200",
            "train.batch_tokens=1500", "train.validate_every=200", "train.save_every=200",
            "decode.max_length=30")


def write_lines(ground, count):
    """Sentences of the training words, none of them trained on but by chance."""
    words = sorted(set((ground.path / "train.src").read_text().split()))
    chance = random.Random(13)
    path = ground.path / "alone.src"
    path.write_text("".join(" ".join(chance.choices(words, k=chance.randint(1, 7))) + "\n"
                            for _ in range(count)))
    return path


def decode(ground, run, lines, sequences, cached, beam):
    """The output lines."""
    done = ground.run("generate", run, "--input", lines, f"decode.batch_sequences={sequences}",
                      f"decode.cached={cached}", f"decode.beam={beam}", check=0)
    return done.stdout.split("\n")[:-1]


def score(ground, run, pairs):
    """The log-probability of each pair, with all its digits."""
    for side, name in enumerate(("source", "target")):
        (ground.path / f"score.{name}").write_text("".join(pair[side] + "\n" for pair in pairs))
    done = ground.run("score", run, "--source", ground.path / "score.source", "--target", ground.path / "score.target",
                      "--json", check=0)
    return json.loads(done.stdout)["log_prob"]


def measure(check, ground):
    """1,000 lines, 20,000 in the long form: alone and 256 together, cached and not, beam 1 and 4; 100 scored."""
    count = 20000 if ground.long else 1000
    run = ground.train("seq2seq", "decoding", *TRAINING)
    lines = write_lines(ground, count)
    for beam in (1, 4):
        expected = decode(ground, run, lines, 256, "true", beam)
        if len(set(expected)) < count / 2:
            raise RuntimeError(f"beam {beam}: only {len(set(expected))} different outputs show little")
        for name, sequences, cached in (("alone", 1, "true"), ("together, uncached", 256, "false"),
                                        ("alone, uncached", 1, "false")):
            found = decode(ground, run, lines, sequences, cached, beam)
            equal = sum(a == b for a, b in zip(expected, found))
            check(f"beam {beam}: {name} as together, cached", f"{equal:,} of {count:,}", "all",
                  equal == len(found) == len(expected) == count)
    pairs = list(zip(lines.read_text().split("\n"), expected))
    together = score(ground, run, pairs)[:100]
    equal = sum(score(ground, run, [pair]) == [value] for pair, value in zip(pairs, together))
    check("scored alone as together, all digits", f"{equal} of {len(together)}", "all", equal == len(together) == 100)
