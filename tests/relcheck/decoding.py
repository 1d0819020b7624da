"""Checks that decoding and scoring a sentence yield the same bits alone and in a batch, with and without a cache."""
import json
import random


# With BLAS, the bits of a row would depend on the number of rows: OpenBLAS uses other code for small
# matrices (for SkylakeX: results of up to 1,200 values). One row of this model is below that limit, a batch
# is above it.
TRAINING = ("model.d_model=64", "model.d_ff=256", "model.heads=4", "model.layers=2", "train.steps=200",
            "train.batch_tokens=1500", "train.validate_every=200", "train.save_every=200",
            "decode.max_length=30")


# The other position schemes, patterns and mixers (docs/MECHANISMS.md), checked in the long form.
NO_POSITIONS = ("model.positions=none",)
KINDS = {
    **{f"positions {name}": (f"model.positions={name}",)
       for name in ("learned", "rotary", "alibi", "relative_shaw", "relative_t5", "relative_xl", "none")},
    "window": ("model.attention.pattern=window", "model.attention.window=3"),
    "bigbird": ("model.attention.pattern=bigbird", "model.attention.block=2", "model.attention.global_blocks=1",
                "model.attention.random_blocks=1"),
    "top-k": ("model.attention.pattern=topk", "model.attention.top_k=3"),
    "linear": ("model.attention.pattern=linear",),
    "one key head": ("model.attention.kv_heads=1",),
    "hard": ("model.attention.map=hard",),
    "parallel block": ("model.block=parallel",),
    **{mixer: (f"model.mixer={mixer}", *NO_POSITIONS) for mixer in ("lstm", "gru", "conv")},
}


def check_kinds(check, ground, lines, count):
    """Compares the batched outputs of each kind of model with and without a cache."""
    for name, overrides in KINDS.items():
        run = ground.train("seq2seq", "decoding-" + name.replace(" ", "-"), *TRAINING, *overrides)
        with_cache, without = (decode(ground, run, lines, 256, cached, 1) for cached in ("true", "false"))
        equal = sum(a == b for a, b in zip(with_cache, without))
        check(f"{name}: uncached equals cached", f"{equal:,} of {count:,}", "all",
              equal == len(with_cache) == len(without) == count)


def write_lines(ground, count):
    """Writes sentences of random words from the training data; returns the path."""
    words = sorted(set((ground.path / "train.src").read_text().split()))
    chance = random.Random(13)
    path = ground.path / "alone.src"
    path.write_text("".join(" ".join(chance.choices(words, k=chance.randint(1, 7))) + "\n"
                            for _ in range(count)))
    return path


def decode(ground, run, lines, sequences, cached, beam):
    """Returns the output lines of heed generate."""
    done = ground.run("generate", run, "--input", lines, f"decode.batch_sequences={sequences}",
                      f"decode.cached={cached}", f"decode.beam={beam}", check=0)
    return done.stdout.split("\n")[:-1]


def score(ground, run, pairs):
    """Returns the log-probability of each pair, with all digits."""
    for side, name in enumerate(("source", "target")):
        (ground.path / f"score.{name}").write_text("".join(pair[side] + "\n" for pair in pairs))
    done = ground.run("score", run, "--source", ground.path / "score.source", "--target", ground.path / "score.target",
                      "--json", check=0)
    return json.loads(done.stdout)["log_prob"]


def measure(check, ground):
    """Decodes 300 lines alone and in batches of 256, with and without a cache, with beam 1 and 4; scores 100 pairs.
    The long form decodes 20,000 lines, and 1,000 with each kind of model."""
    count = 20000 if ground.long else 300
    run = ground.train("seq2seq", "decoding", *TRAINING)
    lines = write_lines(ground, count)
    for beam in (1, 4):
        expected = decode(ground, run, lines, 256, "true", beam)
        if len(set(expected)) < count / 2:
            raise RuntimeError(f"beam {beam}: too few distinct outputs ({len(set(expected))})")
        for name, sequences, cached in (("alone", 1, "true"), ("batched, uncached", 256, "false"),
                                        ("alone, uncached", 1, "false")):
            found = decode(ground, run, lines, sequences, cached, beam)
            equal = sum(a == b for a, b in zip(expected, found))
            check(f"beam {beam}: {name} equals batched, cached", f"{equal:,} of {count:,}", "all",
                  equal == len(found) == len(expected) == count)
    if ground.long:
        check_kinds(check, ground, write_lines(ground, 1000), 1000)
    pairs = list(zip(lines.read_text().split("\n"), expected))
    batched = score(ground, run, pairs)[:100]
    equal = sum(score(ground, run, [pair]) == [value] for pair, value in zip(pairs, batched))
    check("scores: alone equals batched, to all digits", f"{equal} of {len(batched)}", "all",
          equal == len(batched) == 100)
