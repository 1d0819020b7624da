#!/usr/bin/python3 -B
"""Results of experiments as files, docs/results/NAME.json, and the tables of the docs that show them.

    records.py [--update] [--root FOLDER]

Checks the records and the pages, and prints each violation; exits with 1 if there is one. --update first rewrites the
tables of the pages. A record contains

    commands      the commands that measure it
    measured      commit, date, processor, cores, kernel (of OpenBLAS), precision, conditions
    seeds         of the runs; or, in place of seeds, `rounds`: the number of measurements of each time
    fingerprints  of the first steps of its configs (`claims --stale`); absent in a record with `rounds`
    tables        KEY: columns, rows and, for rows that were measured otherwise, `exceptions`: values of `measured`

and null for what is not recorded. A column has a `head` and is `text` or has a `format` of Python; `show` names the
statistic: `mean range` (the default), `mean`, `median`, `median range` or `each`. A figure is a number, the list of its
values by seed or round, or, where only these are recorded, their `value` (the statistic), `min`, `max` and number `n`.

In a page, a table stands between <!-- table NAME#KEY --> and <!-- /table -->. A paragraph with a word of COMPARISON
states what it compares, in <!-- record NAME#KEY | COLUMN | ROW > ROW --> or with COLUMN > COLUMN | ROW, where COLUMN is
the head and ROW the texts of a row or a part of them that occurs once. The figures must agree. If there are fewer than
three seeds or the ranges overlap, the paragraph says so ("one seed", "two seeds", "overlap"). <!-- record NAME#KEY -->
names the origin of other figures.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/MECHANISMS.md", "docs/MODELS.md", "docs/BENCHMARKS.md", "docs/CLUSTER.md",
         "docs/EXPORT.md")
COURSE = "docs/course/[0-9][0-9]-*/en.md"  # further pages; docs/course/check.py compares the Chinese ones with them
COMPARISON = re.compile(r"\b(better|worse|help(s|ed|ing)?|hurt(s|ing)?|improv\w+|outperform\w*|faster|slower)\b", re.I)
MEASURED = {"commit": "commit {}", "date": "{}", "processor": "{}", "cores": "{} cores", "kernel": "BLAS kernel {}",
            "precision": "{}", "conditions": "{}"}
SHOWN = ("mean range", "mean", "median", "median range", "each")
NUMBER = re.compile(r"[−-]?\d[\d,.]*(e-?\d+)?( ?(%|ms|s|µs|MB|GB))?( \(.*\))?")


# ---- records -------------------------------------------------------------------------------------
def column(head, form, show=None):
    return {"head": head, "format": form} | ({"show": show} if show else {})


def texts(*heads):
    return [{"head": head, "text": True} for head in heads]


def table(columns, rows, exceptions=None):
    return {"columns": columns, "rows": [list(row) for row in rows]} | ({"exceptions": exceptions} if exceptions else {})


def machine():
    """What this machine and this folder contribute to `measured`. "-dirty" marks a commit whose files were changed, other
    than records."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)

    commit = git("describe", "--always", "--abbrev=40", "--exclude=*").stdout.strip()
    if commit and git("diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs/results").returncode != 0:
        commit += "-dirty"
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"commit": commit or None, "date": datetime.date.today().isoformat(),
            "processor": names[0] if names else None, "cores": len(os.sched_getaffinity(0))}


class Measurements:
    """Reports of programs, such as `heed bench --json`, for the record NAME (None: no record). They are kept in
    NAME.partial until the record is written: the same command on the same machine and commit, started again after it was
    stopped, continues with the report that is missing."""

    def __init__(self, name):
        self.name, self.reports, self.earlier = name, [], []
        self.command = " ".join(["tests/bench/" + pathlib.Path(sys.argv[0]).name, *without_record(sys.argv[1:])])
        self.measured = machine()
        if name:
            self.path = path_of(name).with_suffix(".partial")
            start = {"command": self.command} | self.measured | {"date": None}
            found = list(map(json.loads, self.path.read_text().splitlines())) if self.path.exists() else []
            if found[:1] != [start]:
                self.path.write_text(json.dumps(start) + "\n")
            self.earlier = found[1:] if found[:1] == [start] else []

    def report(self, measure):
        """The report of an earlier start, or that of `measure`."""
        if self.earlier:
            self.reports.append(self.earlier.pop(0))
            return self.reports[-1]
        self.reports.append(measure())
        if self.name:
            with open(self.path, "a") as file:
                file.write(json.dumps(self.reports[-1]) + "\n")
        return self.reports[-1]

    def write(self, tables, repeats, precision="float32", conditions=None):
        """Writes the record; `repeats` are its rounds or its seeds."""
        if self.name:
            kernels = sorted({r["blas"].split(" MAX_THREADS")[0].split()[-1] for r in self.reports if "blas" in r})
            facts = {"kernel": ", ".join(kernels) or None, "precision": precision, "conditions": conditions}
            write(self.name, {"commands": [self.command], "measured": self.measured | facts, **repeats, "tables": tables})
            self.path.unlink()


def without_record(arguments):
    """The arguments of a command that change its figures."""
    kept = list(arguments)
    for option in ("--record", "--heed", "--torch", "--runs", "--build", "--svg", "--csv", "--jobs", "--clients"):
        if option in kept:
            at = kept.index(option)
            del kept[at:at + 2]
    return kept


def path_of(name, root=ROOT):
    return pathlib.Path(name) if name.endswith(".json") else root / f"docs/results/{name}.json"


def write(name, record):
    if found := list(problems(record)):
        sys.exit(f"{name} is not a record: {found[0]}")
    path_of(name).parent.mkdir(parents=True, exist_ok=True)
    path_of(name).write_text(json_of(record) + "\n", encoding="utf-8")


def json_of(value, indent=0):
    """JSON with as much on a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(line) + indent <= 110:
        return line
    items = [f"{json.dumps(k)}: {json_of(v, indent + 2)}" for k, v in value.items()] if isinstance(value, dict) else \
        [json_of(v, indent + 2) for v in value]
    return line[0] + "\n" + ",\n".join(" " * (indent + 2) + item for item in items) + "\n" + " " * indent + line[-1]


def problems(record):
    """What is wrong with a record, as sentences."""
    keys = {"commands", "measured", "tables"} | ({"rounds"} if "rounds" in record else {"seeds", "fingerprints"})
    if set(record) != keys:
        yield f"its keys are {sorted(record)}; expected {sorted(keys)}"
        return
    if record["commands"] is not None and not is_list(record["commands"], str):
        yield "commands is not a list of strings"
    if set(record["measured"]) != set(MEASURED):
        yield f"measured has the keys {sorted(record['measured'])}; expected {sorted(MEASURED)}"
    yield from measured_problems(record["measured"])
    if record.get("seeds") is not None and not is_list(record["seeds"], int):
        yield "seeds is not a list of whole numbers"
    if record.get("rounds") is not None and not isinstance(record["rounds"], int):
        yield "rounds is not a whole number"
    for entry in record.get("fingerprints") or []:
        if set(entry) != {"config", "keys", "kernel", "weights"} or not re.fullmatch("[0-9a-f]{64}", entry["weights"]):
            yield f"not a fingerprint: {entry}"
    repeats = len(record["seeds"]) if record.get("seeds") else record.get("rounds") or math.inf
    for key, found in record["tables"].items():
        yield from (f"table {key}: {problem}" for problem in table_problems(found, repeats))


def measured_problems(measured):
    for key, value in measured.items():
        form = {"commit": r"[0-9a-f]{7,40}(-dirty)?(, .*)?", "date": r"\d{4}-\d\d-\d\d", "cores": r"\d+"}.get(key, ".+")
        if key not in MEASURED or value is not None and not re.fullmatch(form, str(value)):
            yield f"measured: {key}: {value}"


def table_problems(found, repeats):
    columns = found["columns"]
    for c in columns:
        if "text" not in c and ("format" not in c or c.get("show", "mean range") not in SHOWN):
            yield f"column {c}"
            return
    for row in found["rows"]:
        if len(row) != len(columns):
            yield f"row {row}: {len(row)} cells for {len(columns)} columns"
            continue
        for c, cell in zip(columns, row):
            if not (isinstance(cell, str) if "text" in c else is_figure(cell, repeats)):
                yield f"row {row}: {c['head']}: {cell}"
    for name, changed in found.get("exceptions", {}).items():
        if name not in map(label(found), found["rows"]):
            yield f"exceptions: no row {name}"
        yield from measured_problems(changed)
        if None in changed.values():
            yield f"exceptions: {name}: null"


def is_list(value, kind):
    return isinstance(value, list) and len(value) > 0 and all(isinstance(v, kind) and v is not True for v in value)


def is_figure(cell, repeats):
    number = lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)
    if isinstance(cell, list):
        return 0 < len(cell) <= repeats and all(map(number, cell))
    if isinstance(cell, dict):
        return {"n"} < set(cell) <= {"value", "min", "max", "n"} and all(map(number, cell.values()))
    return cell is None or number(cell)


# ---- rendering -----------------------------------------------------------------------------------
def label(found):
    """A function that joins the texts of a row."""
    return lambda row: ", ".join(cell for c, cell in zip(found["columns"], row) if "text" in c)


def summary(cell, show="mean range"):
    """The statistic of a figure, its range (None, None: not recorded) and the number of values."""
    if isinstance(cell, dict):
        return cell.get("value"), cell.get("min"), cell.get("max"), cell.get("n")
    values = cell if isinstance(cell, list) else [cell]
    return (statistics.median if "median" in show else statistics.mean)(values), min(values), max(values), len(values)


def shown(cell, c):
    if cell is None or "text" in c:
        return cell or "–"
    form = lambda v: re.sub(r"e([+-])0", r"e\1", f"{v:{c['format']}}").replace("e+", "e").replace("%", " %")
    show = c.get("show", "mean range")
    if show == "each" and isinstance(cell, list):
        return ", ".join(map(form, cell))
    middle, low, high, n = summary(cell, show)
    spread = f"({form(low)}–{form(high)})" if "range" in show and low is not None and n != 1 else ""
    return " ".join(filter(None, ["" if middle is None else form(middle), spread]))


def rendered(found):
    lines = ["| " + " | ".join(c["head"] for c in found["columns"]) + " |",
             "|" + "|".join("---" if "text" in c else "---:" for c in found["columns"]) + "|"]
    return lines + ["| " + " | ".join(shown(cell, c) for cell, c in zip(row, found["columns"])) + " |"
                    for row in found["rows"]]


def provenance(record, found):
    """A line about the origin of a table's figures."""
    measured = record["measured"] | {"commands": record["commands"]}
    facts = [", then ".join(f"`{c}`" for c in record["commands"] or [])]
    facts += [form.format(measured[key]) for key, form in MEASURED.items() if measured[key] is not None]
    if "rounds" in record:
        repeats, kind = record["rounds"], "rounds"
        facts.append(f"{repeats} round{'s' * (repeats != 1)}" if repeats else "")
    else:
        repeats, kind = record["seeds"], "seeds"
        facts.append("" if not repeats else "one seed" if len(repeats) == 1 else "seeds " + ", ".join(map(str, repeats)))
    unknown = [k for k in ("commands", *MEASURED) if measured[k] is None and k != "conditions"] + [kind] * (not repeats)
    unknown = [{"commands": "command", "kernel": "BLAS kernel"}.get(k, k) for k in unknown]
    line = re.sub(r"\b([0-9a-f]{10})[0-9a-f]{30}\b", r"\1", "Measured: " + "; ".join(filter(None, facts)) + ".")
    line = line.replace("; 1 cores;", "; 1 core;")
    for number, row in enumerate(found["rows"], 1):
        if changed := found.get("exceptions", {}).get(label(found)(row)):
            line += f" Row {number}: " + "; ".join(MEASURED[k].format(v) for k, v in changed.items()) + "."
    return line + (f" Not recorded: {', '.join(unknown)}." if unknown else "")


# ---- pages ---------------------------------------------------------------------------------------
BLOCK = re.compile(r"<!-- table ([\w-]+)#([\w-]+) -->\n(.*?)<!-- /table -->", re.S)


class Results:
    """All records of a folder, and the pages that show them."""

    def __init__(self, root):
        self.root, self.records, self.named, self.violations = root, {}, set(), []
        self.pages = [*PAGES, *sorted(str(path.relative_to(root)) for path in root.glob(COURSE))]
        for path in sorted((root / "docs/results").glob("*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                found = list(problems(record))
            except (ValueError, AttributeError, KeyError, TypeError) as error:
                found = [f"not a record: {error!r}"]
            self.violations += [f"docs/results/{path.name}: {problem}" for problem in found]
            if not found:
                self.records[path.stem] = record

    def block(self, name, key):
        record = self.records[name]
        found = record["tables"][key]
        return "\n".join([f"<!-- table {name}#{key} -->", *rendered(found), "", provenance(record, found),
                          "<!-- /table -->"])

    def has(self, name, key):
        return name in self.records and key in self.records[name]["tables"]

    def update(self):
        for page in self.pages:
            path = self.root / page
            text = path.read_text(encoding="utf-8")
            new = BLOCK.sub(lambda m: self.block(m[1], m[2]) if self.has(m[1], m[2]) else m[0], text)
            if new != text:
                path.write_text(new, encoding="utf-8")

    def check(self):
        for page in self.pages:
            text = (self.root / page).read_text(encoding="utf-8")
            say = lambda at, message: self.violations.append(f"{page}:{text.count(chr(10), 0, at) + 1}: {message}")
            for m in BLOCK.finditer(text):
                self.named.add((m[1], m[2]))
                if not self.has(m[1], m[2]):
                    say(m.start(), f"docs/results/ has no table {m[1]}#{m[2]}")
                elif m[0] != self.block(m[1], m[2]):
                    say(m.start(), f"the table differs from its record, {m[1]}.json: run tests/bench/records.py --update")
            blank = lambda m: re.sub(r"[^\n]", " ", m[0])
            prose = re.sub(r"^```.*?^```", blank, BLOCK.sub(blank, text), flags=re.S | re.M)
            for m in re.finditer(r"(?:^\|.*\n?)+", prose, re.M):
                cells = [c.strip() for line in m[0].splitlines()[2:] for c in re.split(r"(?<!\\)\|", line)]
                if any(map(NUMBER.fullmatch, cells)):
                    say(m.start(), "a table of figures without a record")
            for m in re.finditer(r"(?:^(?!\||\s*$).*\n?)+?(?=^\s*$|^\||^- |\Z)", prose, re.M):
                for problem in self.comparison_problems(m[0]) if page.startswith("docs/") else ():
                    say(m.start(), problem)
        for name, record in self.records.items():
            self.violations += [f"docs/results/{name}.json: no page names {key}" for key in record["tables"]
                                if (name, key) not in self.named]

    def comparison_problems(self, paragraph):
        """What is wrong with the comparisons of a paragraph, as sentences."""
        stated = re.findall(r"<!--\s*record\s+(.*?)\s*-->", paragraph, re.S)
        other = r'<!--.*?-->|`[^`]*`|"[^"]*"(?=,\s\d{4})'  # comments, code and titles: "title", year
        words = " ".join(re.sub(other, "", paragraph, flags=re.S).split())
        word = COMPARISON.search(words)
        if word and not any("|" in comparison for comparison in stated):
            yield f'"{word[0]}" without a record: <!-- record NAME#KEY | COLUMN | ROW > ROW -->'
        for comparison in stated:
            try:
                yield from self.statement_problems(" ".join(comparison.split()), words)
            except LookupError as error:
                yield f"record {comparison}: {error.args[0]}"

    def statement_problems(self, comparison, words):
        parts = comparison.split(" | ")
        name, _, key = parts[0].partition("#")
        if not self.has(name, key):
            raise LookupError("no such table")
        self.named.add((name, key))
        if parts[1:] == []:
            return
        sides = [re.split(r" ([<>]) ", part) for part in parts[1:]]
        if sorted(map(len, sides)) != [1, 3]:
            raise LookupError("expected NAME#KEY | COLUMN | ROW > ROW or NAME#KEY | COLUMN > COLUMN | ROW")
        (columns, rows), sign = sides, sides[0][1:2] or sides[1][1:2]
        cells = [self.cell(self.records[name]["tables"][key], columns[i % len(columns)], rows[i % len(rows)])
                 for i in (0, 2)]
        (a, a_low, a_high, a_n), (b, b_low, b_high, b_n) = cells
        if a is None or b is None or not (a > b if sign == [">"] else a < b):
            yield f"record {comparison}: the figures are {a} and {b}"
        n = min(a_n, b_n)
        if "seeds" in self.records[name] and n < 3 and not re.search(r"\b(one|two|single|each of) (seed|run)s?\b", words):
            yield f"record {comparison}: the paragraph must mention {'one seed' if n < 2 else 'two seeds'}"
        overlap = None not in (a_low, b_low) and n > 1 and a_low <= b_high and b_low <= a_high
        if overlap and "overlap" not in words:
            yield f"record {comparison}: the paragraph must mention that the ranges overlap"

    def cell(self, found, head, row):
        def only(what, names, text):
            hits = [i for i, n in enumerate(names) if n == text] or [i for i, n in enumerate(names) if text in n]
            if len(hits) != 1:
                raise LookupError(f"{len(hits)} {what}s are named {text}")
            return hits[0]
        at = only("column", [c["head"] for c in found["columns"]], head)
        cell = found["rows"][only("row", list(map(label(found), found["rows"])), row)][at]
        if cell is None or "text" in found["columns"][at]:
            raise LookupError(f"no figure in column {head}, row {row}")
        return summary(cell, found["columns"][at].get("show", "mean range"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="rewrite the tables of the pages")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args()
    results = Results(options.root)
    if options.update:
        results.update()
    results.check()
    print("\n".join(results.violations), end="\n" * bool(results.violations))
    return 1 if results.violations else 0


if __name__ == "__main__":
    sys.exit(main())
