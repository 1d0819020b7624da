"""Pages of `--to page` in headless Chromium, from file:// and from localhost, without a network: greedy outputs and drawn
images beside heed's. A module of `run`.
"""
import functools
import http.server
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "train"))
import browser  # noqa: E402

PACKAGES = ("onnxruntime-web@1.30.0", "@huggingface/tokenizers@0.2.0")
VERSIONS = " ".join(PACKAGES)
LIMIT = 0
SUFFIX = ".html"
COLUMNS = (("equal greedy outputs", "d", "greedy", sum), ("int8: outputs equal to heed's int8", "d", "int8_equal", sum))
WORDS = ("--to", "page", "--precision", "float32", "--runtime", "page")
TOKENIZERS = ("unigram", "bpe", "char", "byte", "word")
CASES = {
    "seq2seq": ("seq2seq", {}, {"tokenizer": TOKENIZERS, "positions": ("sinusoidal", "learned")}, WORDS),
    "seq2seq, two vocabularies": ("seq2seq", {"tokenizer.shared": "false", "data.train.target": "tags"}, {"tokenizer": ("word", "char"), "positions": ("sinusoidal",)}, WORDS),
    "lm": ("lm", {}, {"tokenizer": (*TOKENIZERS, "unigram+bytes"), "positions": ("rotary", "alibi")}, WORDS),
    "lm, beyond its context": ("lm", {"context": "20"}, {"tokenizer": ("char",), "positions": ("learned", "sinusoidal")}, WORDS),
    "images": ("images", {}, {"positions": ("learned", "sinusoidal"), "pool": ("first", "mean"), "tokenizer": ("char",)}, WORDS)}
NAME = "\"><img src=x onerror=\"document.title = 'hacked'\"><!--<script>"
SEARCH = ("decode.beam=1", "decode.precision=float32")  # pages compute in float32 with the integers of int8
TESTED = set()  # classes whose pages have been opened from localhost


def prepare(folder):
    """Installs the programs of a page. Returns why this is impossible, or None."""
    if browser.find_chromium() is None or shutil.which("npm") is None:
        return "Chromium or npm is missing"
    if not (folder / "page/node_modules/@huggingface/tokenizers").exists():
        done = subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder / "page", *PACKAGES],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return "npm cannot install the programs of a page: " + done.stderr.strip()
    return None


class Page:
    """A page in Chromium, which has no network once the file is read."""

    def __init__(self, url):
        self.browser = browser.Browser(browser.find_chromium())
        self.wrong = self.browser.open(url, "light")
        self.browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self.wait("document.querySelector('form:not([hidden])')")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.__exit__()

    def text(self, name):
        """The text of an element."""
        return self.browser.evaluate(f"document.getElementById('{name}').textContent")

    def wait(self, condition):
        """Waits until a condition is true, at most five minutes."""
        end = time.monotonic() + 300
        while not self.browser.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end or self.text("status").startswith("This"):
                raise RuntimeError(f"{condition}: {self.text('status')} {self.browser.wrong()}")
            time.sleep(0.02)

    def output(self, text):
        """The output for a text, started with the keyboard."""
        self.browser.evaluate(f"(input => {{ input.value = {json.dumps(text)}; input.focus(); }})(document.getElementById('input'))")
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", modifiers=2, windowsVirtualKeyCode=13)
        self.wait("document.getElementById('output').ariaBusy === 'false'")
        return self.text("output")

    def draw(self, strokes):
        """Draws lines between points of the unit square with the mouse, on an empty canvas."""
        box = self.browser.evaluate("document.getElementById('clear').click(),"
                                    "document.getElementById('canvas').getBoundingClientRect().toJSON()")
        for stroke in strokes:
            for i, (x, y) in enumerate([*stroke, stroke[-1]]):
                kind = "mousePressed" if i == 0 else "mouseReleased" if i == len(stroke) else "mouseMoved"
                self.browser.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1,
                                  x=box["x"] + x * box["width"], y=box["y"] + y * box["height"])
        return self.label()

    def label(self):
        """The most probable label, its probability in percent, and what the model reads: size and grey pixels."""
        self.wait("document.getElementById('labels').ariaBusy === 'false'")
        pixels = "(c => [c.width, c.height, [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 0)])"
        label, share = self.browser.evaluate("['span', 'b'].map(tag => document.querySelector(`#labels li ${tag}`).textContent)")
        return label, float(share.rstrip(" %")), self.browser.evaluate(pixels + "(document.getElementById('seen'))")


def heed(program, folder, *arguments):
    """Runs heed in a folder and returns its standard output."""
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"heed {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def strokes(seed):
    """Lines of a random drawing."""
    draw = random.Random(seed)
    return [[(draw.uniform(0.05, 0.95), draw.uniform(0.05, 0.95)) for _ in range(draw.randint(2, 5))] for _ in range(draw.randint(1, 3))]


def drawings(program, folder, run, page, count):
    """Labels of random drawings in the page and in heed, and which probabilities differ."""
    drawn = [page.draw(strokes(i)) for i in range(count)]
    for i, (_, _, (width, height, pixels)) in enumerate(drawn):
        (folder / f"data/drawn-{i}.pgm").write_bytes(b"P5 %d %d 255\n" % (width, height) + bytes(pixels))
    (folder / "drawn").write_text("".join(f"data/drawn-{i}.pgm\n" for i in range(count)))
    (folder / "named").write_text("".join(f"{label}\n" for label, _, _ in drawn))
    scores = json.loads(heed(program, folder, "score", run, "--source", "drawn", "--target", "named", "--json"))["log_prob"]
    wrong = [f"{label}: {share} % in the page, {100 * math.exp(score)} % in heed"
             for (label, share, _), score in zip(drawn, scores) if abs(share - 100 * math.exp(score)) > 0.06]
    return [label for label, _, _ in drawn], heed(program, folder, "generate", run, "--input", "drawn").splitlines(), wrong


def equal_outputs(program, folder, task, run, url):
    """The number of lines whose outputs in the page equal heed's, the first difference, and errors of the page."""
    lines = (folder / f"lines.{task}").read_text(encoding="utf-8").splitlines()
    wrong = []
    with Page(url) as page:
        if task == "images":
            found, wanted, wrong = drawings(program, folder, run, page, len(lines))
        elif task == "lm":
            found = [page.output(line).rstrip("\n") for line in lines]
            wanted = [heed(program, folder, "generate", run, "--prompt", line, *SEARCH).rstrip("\n") for line in lines]
        else:
            found = page.output("\n".join(lines)).split("\n")
            wanted = heed(program, folder, "generate", run, "--input", f"lines.{task}", *SEARCH).splitlines()
        wrong += page.wrong + page.browser.wrong()
    different = [pair for pair in zip(found, wanted) if pair[0] != pair[1]]
    return len(lines) - len(different) - abs(len(found) - len(wanted)), different[:1], wrong


class Files(http.server.SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_):
        pass


def from_localhost(program, folder, task, run, page):
    """Compares a page that a server of this computer sends."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return equal_outputs(program, folder, task, run, f"http://127.0.0.1:{server.server_port}/{page.name}")
    finally:
        server.shutdown()


def hostile(program, folder, run):
    """What is wrong with the page of a run whose name is markup."""
    shutil.rmtree(folder / "hostile", ignore_errors=True)
    shutil.copytree(run, folder / "hostile", symlinks=True)
    config = folder / "hostile/config.yaml"
    config.write_text(re.sub(r"^name: .*", lambda _: "name: " + json.dumps(NAME), config.read_text(), flags=re.M))
    heed(program, folder, "export", "hostile", *WORDS, "--output", "hostile.html", "--overwrite")
    if "hacked" in (folder / "hostile.html").read_text():
        return ["the name of a run is in the markup of its page"]
    with Page(folder / "hostile.html") as page:
        title = page.browser.evaluate("document.title")
        return [f"{what}: {found}" for what, found in (("title", title), ("heading", page.text("title"))) if found != NAME]


def compare(program, lines_file, _, run, export, name):
    """The figures of one run. The int8 page of the first of each class is opened from localhost."""
    folder, task = pathlib.Path(lines_file).parent, CASES[name][0]
    greedy, first, wrong = equal_outputs(program, folder, task, run, export)
    int8, small = run.with_name(run.name + "-int8"), export.with_suffix(".int8.html")
    heed(program, folder, "quantize", run, "--overwrite")
    heed(program, folder, "export", run, "--to", "page", "--runtime", "page", "--output", small, "--check", "--overwrite")
    measure = equal_outputs if name in TESTED else from_localhost
    equal, first_int8, wrong_int8 = measure(program, folder, task, int8, small)
    if name == "seq2seq" and name not in TESTED:
        wrong += hostile(program, folder, run)
    TESTED.add(name)
    return {"greedy": greedy, "int8_equal": equal, "wrong": wrong + wrong_int8, "first_difference": first, "first_int8": first_int8}
