#!/usr/bin/env python3
"""make_data.py FOLDER [LINES]: writes the text files of configs/essentials, reverse.* and dates.*: sources and targets of
a training split (20,000 lines unless given) and a validation split (500 at most). Repeated calls write the
same files."""
import datetime
import os
import random
import sys

FORMATS = ["%d %B %Y", "%B %d, %Y", "%a %d %b %Y", "%A, %d %B %Y", "%d/%m/%Y", "%Y%m%d", "%d.%m.%Y", "%b %d %Y"]


def reverse(numbers):
    line = "".join(numbers.choice("abcdefghijklmnopqrst") for _ in range(numbers.randint(1, 16)))
    return line, line[::-1]


def dates(numbers):
    day = datetime.date(1950, 1, 1) + datetime.timedelta(days=numbers.randrange(40_000))
    return day.strftime(numbers.choice(FORMATS)), day.isoformat()


def main(folder, train_lines=20_000):
    os.makedirs(folder, exist_ok=True)
    for make in (reverse, dates):
        for split, count in (("train", int(train_lines)), ("valid", min(int(train_lines), 500))):
            numbers = random.Random(f"{make.__name__} {split}")
            pairs = [make(numbers) for _ in range(count)]
            for side, lines in zip(("source", "target"), zip(*pairs)):
                with open(os.path.join(folder, f"{make.__name__}.{split}.{side}"), "w", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
