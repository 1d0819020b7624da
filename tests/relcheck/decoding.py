"""A sentence decoded alone or among others, with and without cached keys: the same text."""
import random


# OpenBLAS multiplies small matrices by other code, with other bits: up to 1,200 values of the result
# where the second one is transposed. A row of this model is below that, a batch above. Decoding with
# packed weights does without BLAS; processors without such vectors do not.
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


def measure(check, ground):
    """1,000 lines, 20,000 in the long form: alone and 256 together, cached and not, beam 1 and 4."""
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
