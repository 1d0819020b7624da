#!/usr/bin/env python3
"""test_pages.py HEED CONFIGS FOLDER: generates every kind of page and drawing, and opens each in Chromium, in light
and dark mode, pages also at the width of a telephone. Writes pages and screenshots to FOLDER.

Without Chromium, only the files are checked, and the status is 77 (skipped) if they are correct.
"""
import html
import html.parser
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import xml.etree.ElementTree

import browser

# Pages and drawings with the arguments of heed that produce them. {text}, {images}, {tags}, {language}
# and {hostile} are small runs.
PAGES = {
    "attention.html": "attention {text} --input abcde",
    "attention.svg": "attention {text} --input abcde --layer encoder.layers.0",
    "attention-image.html": "attention {images} --input 'drawing:red square 3 20 8;blue circle 18 5 10'",
    "attention-image.svg": "attention {images} --input 'drawing:red square 3 20 8;blue circle 18 5 10'"
                             " --layer decoder.layers.0.multihead_attn",
    "model.svg": "show {text}",
    "model-image.svg": "show {images} model.block=parallel model.norm=post",
    "model-swin.svg": "show {configs}/swin-mnist.yaml",
    "model-bert.svg": "show {configs}/bert-multi30k.yaml model.positions=relative_t5",
    "model-sound.svg": "show {configs}/tones.yaml data.features.stack=1 model.front_end.kind=conv model.residual=false"
                       " data.synthetic.train=100",
    "model-choices.svg": "show {configs}/recall.yaml model.attention.pattern=bigbird model.attention.kv_heads=1"
                         " model.positions=relative_shaw model.activation=swiglu model.d_ff=10000",
    "tape.svg": "show {text} --tape",
    "report.html": "report {text}",
    "curves.svg": "report {text}",
    "report-images.html": "report {images} --profile",
    "report-tags.html": "report {tags}",
    "report-language.html": "report {language}",
    "trace.html": "trace {text} --input abcde",
    "positions.svg": "plot positions --length 32",
    "schedule.svg": "plot schedule {configs}/multi30k-de-en.yaml",
    "softmax.svg": "plot softmax",
    "masks.svg": "plot masks --length 32",
    "activations.svg": "plot activations",
    "gradcheck.svg": "plot gradcheck",
    "scores.svg": "plot scores",
    "loss.svg": "plot loss",
    "tiles.svg": "plot tiles",
    "beam.svg": "plot beam",
    "layers.svg": "plot layers",
    "cache.svg": "plot cache",
    "hostile-report.html": "report {hostile}",
    "hostile-attention.html": "attention {hostile} --input {token} --target {token}",
    "hostile-attention.svg": "attention {hostile} --input {token} --target {token} --layer encoder.layers.0",
    "hostile-model.svg": "show {hostile}",
}
# Text that would run a script wherever a page contains it as markup.
SCRIPT = "<script>document.title='hacked'</script>"
TOKEN = SCRIPT + "\"'`&lt;--><![CDATA[]]></text></style></title></svg><img/src=x/onerror=document.title='hacked'>\x01\x1b\x7f"
NAME = "\"'><img src=x onerror=document.title='hacked'>&amp;"
SMALL = """
threads: 1
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0.1}
optim: {lr: 1.0e-2}
train: {steps: 4, batch_tokens: 512}
decode: {beam: 1, max_length: 12}
"""
RUNS = {
    "text": "name: text\ndata: {synthetic: {name: copy, train: 100, valid: 10, test: 10, max_length: 5, symbols: 5}}\n"
            "tokenizer: {kind: char}\n" + SMALL,
    "images": "name: images\ndata: {input: image, image: {height: 32, width: 32, channels: 3, patch: 8},"
                " synthetic: {name: captions, train: 60, valid: 5, test: 5}}\ntokenizer: {kind: word}\n" + SMALL,
    "tags": "name: tags\ntask: tag\ndata: {synthetic: {name: grammar, train: 100, valid: 10, test: 20}}\n"
            "tokenizer: {kind: word}\n" + SMALL[:SMALL.index("decode")],
    "language": "name: language\ntask: lm\ndata: {train: {text: squares.txt}, valid_fraction: 0.2}\ntokenizer: {kind: char}\n"
                + SMALL,
    "hostile": "name: '" + NAME.replace("'", "''") + "'\ndata: {train: {source: lines, target: lines}}\n"
               "tokenizer: {kind: word}\n" + SMALL,
}
# Returns the labels of a drawing, or of the visible drawings of a page, that are cut off, overlap or are wider than
# their box.
LABELS = """(() => {
  const wrong = [], boxes = [];
  for (const text of document.querySelectorAll('text')) {
    const box = text.getBoundingClientRect(), name = text.textContent.slice(0, 60);
    if (box.width === 0) continue;
    let drawing = text.ownerSVGElement;
    while (drawing.ownerSVGElement) drawing = drawing.ownerSVGElement;
    const all = drawing.getBoundingClientRect();
    if (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1)
      wrong.push(name + ' is cut off');
    const frame = text.closest('.box')?.querySelector('rect').getBoundingClientRect();
    if (frame && (box.left < frame.left || box.right > frame.right)) wrong.push(name + ' is wider than its box');
    if (/rotate/.test(text.getAttribute('transform'))) continue;
    for (const [other, its, place] of boxes)
      if (place === drawing &&
          Math.min(box.right, other.right) - Math.max(box.left, other.left) > 2 &&
          Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 4)
        wrong.push(name + ' overlaps ' + its);
    boxes.push([box, name, drawing]);
  }
  return wrong;
})()"""
# Returns these labels for each view that the form of a page offers; for other files, as they are.
VIEWS = """(() => {
  const form = document.forms.choose, views = form ? [...form.view.options].map(option => option.value) : [''];
  return views.map(view => {
    if (form) form.view.value = view, form.onchange();
    return %s;
  });
})()"""
# The area of the table of small maps, which are images; null without such a table.
SMALL_MAPS = """(() => {
  const area = document.querySelector('.map')?.closest('table').getBoundingClientRect();
  return area ? {x: area.x, y: area.y + scrollY, width: area.width, height: area.height} : null;
})()"""

failures = 0


def check(right, *message):
    global failures
    if not right:
        failures += 1
        print("FAILED:", *message)


class References(html.parser.HTMLParser):
    """The references of the elements and styles of a page, except fragments and data URLs, and its event handlers."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def add(self, target):
        if target and not target.startswith(("#", "data:")):
            self.found.append(target[:200])

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "xlink:href", "src", "srcset", "action", "poster", "data"):
                self.add(value)
            elif name.startswith("on"):
                self.found.append(f"a handler {name}")
            self.add_style(value or "")

    def handle_data(self, data):
        if self.cdata_elem == "style" or self.lasttag == "style":
            self.add_style(data)

    def add_style(self, text):
        for target in re.findall(r"url\(\s*[\"']?([^\"')]*)|@import\s*([^;]*)", text):
            self.add("".join(target))


def check_file(name, path):
    text = open(path, encoding="utf-8").read()
    found = References(text).found
    check(not found, name, "refers to", found)
    check("hacked" not in "".join(re.findall(r"<[^<>]*>", text)), name, "has the hostile text within a tag")
    if name.endswith(".svg"):
        try:
            xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as error:
            check(False, name, "is not well-formed:", error)


def check_view(tab, name, path, scheme):
    """Checks a page in one colour scheme. Returns the brightness of its pixels."""
    wrong = tab.open(path, scheme)
    check(not wrong, name, scheme, wrong)
    title, text = tab.evaluate("[document.title, document.documentElement.textContent]")
    check("hacked" not in title or "<" in title, name, "ran a script: its title is", title)
    if name.startswith("hostile"):
        check(("<img src=x" if re.search("model|report", name) else "<script>") in text, name,
              "does not show the hostile text")
    for labels in tab.evaluate(VIEWS % LABELS):
        check(not labels, name, labels[:5])
    if name.endswith(".svg"):
        size = tab.evaluate("['width', 'height'].map(a => +document.documentElement.getAttribute(a))")
    else:
        table = tab.evaluate(SMALL_MAPS)
        if scheme == "dark" and table:
            darkest, back = (min(sum(colour) for colour in browser.pixels(tab.screenshot(scale=1, **area)))
                             for area in (table, {"x": 0, "y": 0, "width": 4, "height": 4}))
            check(darkest >= back - 3, name, "has maps darker than the page:", darkest, "instead of", back)
        size = tab.evaluate("[innerWidth, Math.min(document.documentElement.scrollHeight, 4000)]")
        wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        check(wide <= 0, name, scheme, f"is {wide} pixels wider than the window")
        tab.resize(390)
        wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        check(wide <= 0, name, scheme, f"is {wide} pixels wider than a window of 390")
        tab.resize()
    area = {"x": 0, "y": 0, "width": size[0], "height": size[1]}
    with open(f"{path}.{scheme}.png", "wb") as file:
        file.write(tab.screenshot(scale=1, **area))
    return [sum(colour) / 3 for colour in browser.pixels(tab.screenshot(scale=160 / size[0], **area))]


def check_looks(name, light, dark):
    """Checks, by the brightness of pixels, that the page depends on the colour scheme and is not nearly empty."""
    check(sum(light) / len(light) > sum(dark) / len(dark) + 20, name, "looks the same in light and dark mode")
    for grey in (light, dark):
        back = statistics.mode(grey)
        drawn = sum(abs(one - back) > 24 for one in grey)
        check(drawn > len(grey) / 100, name, f"is nearly empty: {drawn} of {len(grey)} pixels are drawn")


def check_seams(tab, name):
    """Checks that cells of one level form a uniform area, also if they are in different paths and do not end at whole
    pixels: draws three cells with the style and the attributes of the file's cells."""
    text = open(name, encoding="utf-8").read()
    styles = "".join(re.findall("<style>.*?</style>", text, re.DOTALL))
    attributes = re.search('<path class="heat l[0-9]+"([^>]*) d=', text)[1]
    cells = "".join(f'<path class="heat l9"{attributes} d="M{x} {y}h{width}v{height}h-{width}z"/>'
                    for x, y, width, height in ((0, 0, 33.3, 100), (33.3, 0, 66.7, 40.4), (33.3, 40.4, 66.7, 59.6)))
    with open("seams.svg", "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">{styles}'
                   f'<g class="over">{cells}</g></svg>')
    tab.open("seams.svg", "light")
    colours = set(browser.pixels(tab.screenshot(scale=1, x=2, y=2, width=96, height=96)))
    check(len(colours) == 1, name, "has seams between cells of one level:", len(colours), "colours")


def check_sample(heed, name):
    """Compares the texts of a language model's report with the held-out text and with `heed generate`."""
    texts = [html.unescape(re.sub("</?b>", "", text))
             for text in re.findall('<pre class="sample">(.*?)</pre>', open(name, encoding="utf-8").read(), re.DOTALL)]
    with open("squares.txt", encoding="utf-8") as file:
        text = file.read()
    held_out = text[-len(text) // 5:][:160]
    expected = [subprocess.run([heed, "generate", "language", "--prompt", held_out[:32], "--max-length", "128", *options],
                               capture_output=True, text=True).stdout.removesuffix("\n")
                for options in (["--beam", "1"], ["--sample"])] + [held_out]
    check([text.rstrip("\n") for text in texts] == [text.rstrip("\n") for text in expected], name, "contains", texts,
          "instead of", expected)


def main():
    heed, configs, folder = map(os.path.abspath, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    places = {"configs": configs, "token": shlex.quote(TOKEN + " " + "x" * 10000 + " " + "W" * 50)}
    with open("lines", "w", encoding="utf-8") as file:
        file.write(f"{TOKEN} {'x' * 10000} {'W' * 50}\n" * 3)
    with open("squares.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{n} times {n} is {n * n} <&>.\n" for n in range(200))
    for name, text in RUNS.items():
        with open(name + ".yaml", "w", encoding="utf-8") as file:
            file.write(text)
        trained = subprocess.run([heed, "train", name + ".yaml", "--run", name], capture_output=True, text=True)
        if trained.returncode != 0:
            sys.exit(f"heed train {name}.yaml: {trained.stderr}")
        places[name] = name
    for page, arguments in PAGES.items():
        command = [heed, *shlex.split(arguments.format(**places)), "--output", page]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
            check(False, page, "is not written by", " ".join(command))
            continue
        check_file(page, page)
    check_sample(heed, "report-language.html")
    chromium = browser.find_chromium()
    if chromium:
        with browser.Browser(chromium) as tab:
            for page in filter(os.path.exists, PAGES):
                try:
                    check_looks(page, *(check_view(tab, page, page, scheme) for scheme in ("light", "dark")))
                except RuntimeError as error:
                    check(False, page, error)
            check_seams(tab, "attention-image.svg")
    print(f"{len(PAGES)} pages, {failures} failed checks; files in {folder}" +
          ("" if chromium else "; not opened, because Chromium is missing"))
    sys.exit(1 if failures else 0 if chromium else 77)


main()
