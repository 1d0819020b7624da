"""Run folders as a stranger could make them: links, special files, foreign names and foreign values for every file that
a run holds. A mutation changes a copy of a good run and describes what it did."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket

NESTED = "[" * 200_000
TEXTS = ("", "\x1b]0;title\x07\x1b[31mred", "\u202egnp.exe", "\x9b31m", "a\ntouch executed\n", "x" * 100_000, "=1+1", "-", "~",
         "../mine/secret.txt", "../../mine/thesis.txt", "/dev/zero", "/dev/stdin", "../fifo", "\ud800", "a\0b", "${HOME}", "*")
NUMBERS = (-1, 0, 1, 0.5, -0.0, 1e-320, 1e18, 1e308, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, -2**63, 10**400, float("nan"),
           float("inf"))
VALUES = (*TEXTS, *NUMBERS, None, True, [], {}, [[]], {"": ""}, [0] * 10_000, ["a", 1, None], {"name": {"name": {}}})

# Files that heed creates in a run, beside those that the copy contains.
WRITTEN = ("train.log", "evaluations.jsonl", "outputs.jsonl", "reports", "reports/report.html", "reports/attention.html",
           ".run.json.tmp", ".config.yaml.tmp", ".metrics.jsonl.tmp", ".outputs.jsonl.tmp", ".last.tmp", ".best.tmp", "average",
           "checkpoints/.step-00000006.tmp", "checkpoints/step-00000006", "tensorboard", "sweep.json", ".sweep.json.tmp")


def canonical(record):
    """The only form of state.json that heed accepts."""
    return (json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode(errors="replace")


def remove(path):
    """Removes whatever has this name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_fifo(path):
    """A FIFO: opening it waits for a writer."""
    os.mkfifo(path)


def make_socket(path):
    """A socket. Its name is bound by a short relative path, because addresses are limited to 107 bytes."""
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def make_sparse(path):
    """A file of a terabyte that needs no disk."""
    path.touch()
    os.truncate(path, 1 << 40)


def make_full_folder(path):
    """A folder with a file in it."""
    path.mkdir()
    (path / "file").write_text("file\n")


class Hostile:
    """Mutates the run folder `run`. `mine` holds files of the user, which no command may touch."""

    def __init__(self, random, run, mine):
        self.random, self.run, self.mine = random, run, mine

    def paths(self):
        """Every path below the run, and those that heed would create, relative to the run."""
        found = [os.path.relpath(os.path.join(at, name), self.run)
                 for at, folders, files in os.walk(self.run) for name in folders + files]
        return sorted({*found, *WRITTEN})

    def mutate(self):
        """Applies a random mutation. Returns its description, or "" if it does not apply to this run."""
        return self.random.choice((self.link, self.link, self.special, self.bytes, self.value, self.value, self.value, self.config,
                                   self.config, self.config_value, self.plugin, self.header))()

    def free(self, name):
        """The path of `name` with its parents and without its present content."""
        path = self.run / name
        for parent in [*path.relative_to(self.run).parents][:-1][::-1]:
            if not (self.run / parent).is_dir():
                remove(self.run / parent)
                (self.run / parent).mkdir()
        remove(path)
        return path

    def link(self):
        """Replaces a path by a symbolic or hard link."""
        name = self.random.choice(self.paths())
        targets = (self.mine / "thesis.txt", self.mine / "secret.txt", self.mine / "new.txt", self.mine / "notes", self.mine, "/dev/zero",
                   "/dev/full", "/dev/stdin", "/proc/self/environ", ".", "..", pathlib.Path(name).name, "/", "/etc/passwd", "missing",
                   os.path.relpath(self.mine / "thesis.txt", (self.run / name).parent))
        target = self.random.choice(targets)
        path = self.free(name)
        if self.random.random() < 0.2:
            os.link(self.mine / "thesis.txt", path)
            return f"{name}: a hard link to a file of the user"
        path.symlink_to(target)
        return f"{name} -> {target}"

    def special(self):
        """Replaces a path by a FIFO, a socket, a folder or a huge file, or removes it."""
        name = self.random.choice(self.paths())
        kind, make = self.random.choice((("a FIFO", make_fifo), ("a FIFO", make_fifo), ("a socket", make_socket),
                                         ("an empty folder", pathlib.Path.mkdir), ("a folder", make_full_folder),
                                         ("a terabyte", make_sparse), ("missing", lambda path: None)))
        make(self.free(name))
        return f"{name}: {kind}"

    def files(self, pattern=""):
        """The regular files of the run whose names match."""
        return [path for path in map(self.run.joinpath, self.paths())
                if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20 and re.search(pattern, path.name)]

    def bytes(self):
        """Replaces, truncates or extends the bytes of a file."""
        path = self.random.choice(self.files() or [None])
        if path is None:
            return ""
        old = path.read_bytes()
        at = self.random.randrange(len(old) + 1)
        kind, new = self.random.choice((("empty", b""), ("cut", old[:at]), ("brackets", NESTED.encode()), ("braces", b'{"a":' * 50_000),
                                        ("noise", self.random.randbytes(self.random.randrange(1, 3000))), ("NULs", bytes(5000)),
                                        ("twice", old + old), ("a byte", old[:at] + self.random.randbytes(1) + old[at + 1:]),
                                        ("one long line", b"a" * 3_000_000), ("CRLF", old.replace(b"\n", b"\r\n"))))
        path.write_bytes(new)
        return f"{path.relative_to(self.run)}: {kind}" + self.seal()

    def value(self):
        """Changes one value of a JSON file, or of one line of a list of JSON records."""
        path = self.random.choice(self.files(r"\.jsonl?$") or [None])
        if path is None:
            return ""
        try:
            lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            at = self.random.randrange(len(lines)) if lines else 0
            record = json.loads(lines[at])
        except (ValueError, IndexError, RecursionError):  # the file is the work of an earlier mutation
            return ""
        lines[at], what = self.changed(record)
        path.write_text("\n".join(lines) + "\n", errors="surrogatepass")
        return f"{path.relative_to(self.run)}: {what}" + self.seal()

    def changed(self, record):
        """The record as JSON text with one change at a random place, and a description."""
        places, pending = [], [(record, "")]
        while pending:
            node, name = pending.pop()
            entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            for key, child in entries:
                places.append((node, key, f"{name}.{key}"))
                pending.append((child, f"{name}.{key}"))
        if not places:
            return NESTED, "brackets"
        node, key, name = self.random.choice(places)
        choice = self.random.random()
        if choice < 0.08:
            del node[key]
            return json.dumps(record), f"{name} removed"
        if choice < 0.12:
            node[key] = "NESTED"
            return json.dumps(record).replace('"NESTED"', NESTED + "]" * 200_000), f"{name}: brackets"
        if choice < 0.2 and isinstance(node, dict):
            node[self.random.choice(TEXTS)] = node.pop(key)
            return json.dumps(record), f"{name} renamed"
        if choice < 0.25 and isinstance(node, dict):
            text = json.dumps(key)
            return json.dumps(record).replace(f"{text}:", f"{text}: 1, {text}:", 1), f"{name} twice"
        node[key] = self.random.choice(VALUES)
        return json.dumps(record), f"{name} = {str(node[key])[:40]!r}"

    def yaml_lines(self):
        """config.yaml as lines, and the indices of those with a key; None if it is not a readable file."""
        path = self.run / "config.yaml"
        if path not in self.files():
            return None
        lines = path.read_text(errors="replace").splitlines()
        return path, lines, [i for i, line in enumerate(lines) if re.match(r" *[\w.]+:", line)]

    def config(self):
        """Changes the value of one key of config.yaml, or repeats, renames or removes its line."""
        found = self.yaml_lines()
        if not found or not found[2]:
            return ""
        path, lines, keys = found
        at = self.random.choice(keys)
        old, key = lines[at], lines[at].split(":")[0]
        value = self.random.choice(VALUES)
        text = str(value) if isinstance(value, float) else json.dumps(value)
        lines[at] = self.random.choice((f"{key}: {text}", f"{key}: {text}", f"{key}: {text}", f"{old}\n{old}", f"{key}_: 1", "",
                                        f"{key}: {NESTED}", f"{key}: &a [*a]", f"{key}: !!python/object 1", f"  {old}"))
        path.write_text("\n".join(lines) + "\n", errors="replace")
        return f"config.yaml: {lines[at].strip()[:60]!r} for {old.strip()[:60]!r}" + self.seal()

    def config_value(self):
        """Lets a key that names files or folders of config.yaml name others, or gives a number another one."""
        found = self.yaml_lines()
        if not found:
            return ""
        path, lines, keys = found
        keys = [i for i in keys if re.search(r": *[\[]?[\w./-]*\.(src|tgt|txt|vocab|model|png)|: *-?[\d.e+-]+$", lines[i])]
        if not keys:
            return ""
        at = self.random.choice(keys)
        key, old = lines[at].split(":")[0], lines[at]
        value = self.random.choice(("/dev/zero", "../fifo", "../mine/secret.txt", "../mine/notes", "/proc/self/mem", "0", "-1", "1000000007",
                                    "1e18", "9223372036854775807", "1e-300", "3", "nan", "[a.src, /dev/zero]", "config.yaml", "."))
        lines[at] = f"{key}: {value}"
        path.write_text("\n".join(lines) + "\n")
        return f"config.yaml: {lines[at].strip()!r} for {old.strip()[:60]!r}" + self.seal()

    def plugin(self):
        """Names the stranger's library, or a further folder of his, in config.yaml."""
        found = self.yaml_lines()
        if not found:
            return ""
        path, lines, _ = found
        place = self.run.parent.parent
        library = self.random.choice(("../evil.so", str(place / "evil.so"), "evil.so"))
        choice = self.random.choice(("plugins", "plugins", "teacher", "init_from"))
        if choice == "plugins":
            text = [line for line in lines if not line.startswith("plugins:")] + [f"plugins: [{library}]"]
        else:
            text = [re.sub(rf"^( *{choice}:).*", r"\1 ../other", line) for line in lines]
            other = place / "other"
            if not other.exists():
                shutil.copytree(self.run.parent / "good", other, symlinks=True)
            kept = [line for line in (other / "config.yaml").read_text().splitlines() if not line.startswith("plugins:")]
            (other / "config.yaml").write_text("\n".join([*kept, f"plugins: [{library}]"]) + "\n")
        path.write_text("\n".join(text) + "\n")
        return f"config.yaml: {choice} of the stranger" + self.seal()

    def header(self):
        """Changes one value of the header of a safetensors file."""
        path = self.random.choice(self.files(r"\.safetensors$") or [None])
        if path is None:
            return ""
        old = path.read_bytes()
        size = int.from_bytes(old[:8], "little")
        try:
            text, what = self.changed(json.loads(old[8:8 + size]))
        except (ValueError, RecursionError):
            return ""
        new = text.encode(errors="replace")
        path.write_bytes(len(new).to_bytes(8, "little") + new + old[8 + size:])
        return f"{path.relative_to(self.run)}: header: {what}" + self.seal()

    def seal(self):
        """Half of the time, corrects the checksums that state.json and run.json record, as a stranger can."""
        if self.random.random() < 0.5:
            return ""
        for path in self.files("^(state|run).json$"):
            try:
                record = json.loads(path.read_text())
                readable = self.files()
                for name, about in record["files"].items():
                    bytes_of = (path.parent / name).read_bytes() if path.parent / name in readable else b""
                    sum_of = hashlib.sha256(bytes_of).hexdigest()
                    record["files"][name] = {"bytes": len(bytes_of), "sha256": sum_of} if isinstance(about, dict) else sum_of
                if path.name == "state.json":
                    del record["sha256"]
                    record["sha256"] = hashlib.sha256(canonical(record)).hexdigest()
                path.write_bytes(canonical(record))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # the work of an earlier mutation
                pass
        return ", sealed"
