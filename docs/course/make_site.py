#!/usr/bin/python3 -B
"""Makes the course one static site: make_site.py OUTPUT [--root FOLDER]. The target course_site runs it.

A chapter is one page with both languages: code, formulas and images stand once, and each block of prose twice, of which the
reader sees the chosen language or both side by side. The site needs no network and no server: formulas are rendered here,
search runs in the browser over search.js, and the sources that the pages link are part of it.

Needs pandoc, node and KaTeX (Debian: pandoc nodejs libjs-katex); without them it says which is missing and exits with 77."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pages

HERE = pathlib.Path(__file__).resolve().parent
KATEX = pathlib.Path("/usr/share/javascript/katex")
COURSE = "docs/course"
BOX = {"WARNING": ("A common mistake", "常见错误"), "NOTE": ("Note", "说明"), "TIP": ("Tip", "提示")}
RENDER = """const katex = require(process.argv[1]);
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(all.map(f => {
  try { return [katex.renderToString(f.tex, {displayMode: f.display, strict: 'error'})]; } catch (e) { return [null, e.message]; }
})));"""


def require_programs():
    missing = [name for name in ("pandoc", "node") if not shutil.which(name)]
    missing += [] if (KATEX / "katex.min.js").exists() else ["libjs-katex"]
    if missing:
        print(f"course site: skipped, because {', '.join(missing)} is not installed (apt-get install pandoc nodejs libjs-katex)")
        sys.exit(77)


class Markdown:
    """Text for pandoc, in which a formula is a word without meaning until KaTeX has rendered it."""

    def __init__(self):
        self.formulas = []

    def word(self, tex, display):
        self.formulas.append({"tex": tex, "display": display})
        return f"formula{len(self.formulas) - 1:06}end"

    def inline(self, text):
        codes = []

        def kept(found):
            codes.append(found[0])
            return f"code{len(codes) - 1:06}end"
        text = pages.FORMULA.sub(lambda m: self.word(m[1], False), pages.INLINE_CODE.sub(kept, text))
        return re.sub(r"code(\d{6})end", lambda m: codes[int(m[1])], text)

    def block(self, block, language):
        """A block as Markdown without formulas; language 0 is English."""
        if block.kind == "formula":
            return self.word(block.body, True)
        if block.kind == "code":
            words = block.info.split()
            caption = ""
            if words[1:2] == ["quote"]:
                path, _, name = words[2].partition("#")
                caption = f'<p class="source">[`{path}`](ROOT/{path}{"#" + name if name else ""})</p>\n\n'
            elif words[1:]:
                caption = f'<p class="source">`{words[1]}`</p>\n\n'
            caption = re.sub(r'<p class="source">(.*?)</p>', r'<div class="source">\n\n\1\n\n</div>', caption)
            language = {"math": "", "console": ""}.get(words[0], words[0]) if words else ""
            return f"{caption}```{language}\n{block.body}```"
        if block.kind == "note":
            return ""
        if block.kind == "figures":
            return pages.COMMENT.sub("", block.text)
        text = self.inline(block.text)
        if block.kind == "box":
            title = BOX.get(block.info, BOX["NOTE"])[language]
            inner = "\n".join(line.removeprefix(">").removeprefix(" ") for line in text.split("\n")[1:])
            return f'<div class="box {block.info.lower()}">\n\n<p class="title">{title}</p>\n\n{inner}\n\n</div>'
        return text

    def render(self, page, text):
        """HTML of the Markdown of a page, with its formulas."""
        made = subprocess.run(["pandoc", "-f", "gfm-tex_math_dollars", "-t", "html", "--wrap=preserve"], input=text, text=True,
                              capture_output=True, check=True).stdout
        rendered = json.loads(subprocess.run(["node", "-e", RENDER, str(KATEX / "katex.min.js")], input=json.dumps(self.formulas),
                                             text=True, capture_output=True, check=True).stdout) if self.formulas else []
        wrong = [f"{formula['tex'].strip()}\n{result[1]}" for formula, result in zip(self.formulas, rendered) if result[0] is None]
        if wrong:
            raise SystemExit("\n".join([f"{page}: KaTeX refuses a formula", *wrong]))
        made = re.sub(r"(?<=formula\d{6}end)[ \n](?=[\u3000-\u303f\uff00-\uffef）])", "", made)  # GitHub needs these spaces
        made = re.sub(r"(?<=[\u3000-\u303f\uff00-\uffef（])[ \n](?=formula\d{6}end)", "", made)
        made = re.sub(r"(?<=end)\n(?=[\u3000-\u9fff])", "", made)
        return re.sub(r"formula(\d{6})end", lambda m: rendered[int(m[1])][0], made)


SIGNS = {"langle": "⟨", "rangle": "⟩", "partial": "∂", "sum": "Σ", "cdot": "·", "odot": "⊙", "sqrt": "√", "infty": "∞", "to": "→",
         "ge": "≥", "le": "≤", "ln": "ln ", "pm": "±", "varepsilon": "ε", "delta": "δ", "theta": "θ", "times": "×", "lVert": "‖",
         "rVert": "‖", "in": "∈", "ldots": "…"}


def plain(block):
    """The words of a block, for the search; of a formula, its letters and signs."""
    def signs(formula):
        return re.sub(r"\\([A-Za-z]+) ?|[{}\\]", lambda m: SIGNS.get(m[1], "") if m[1] else "", formula[1])
    text = re.sub(r"^> \[!\w+\]\n|^\|[-|:]+\|$|^(#+|>|[-*]|\d+\.) ?", "", pages.FORMULA.sub(signs, block.text), flags=re.M)
    text = pages.LINK.sub(lambda m: m[2], text)
    return re.sub(r"\s+", " ", re.sub(r"\*\*?([^*\n]+)\*\*?", r"\1", text).replace("`", "").replace("|", " ")).strip()


def paired(found):
    """The blocks of a page with both languages, where a paragraph that begins with a Chinese character renders the one before."""
    chinese = lambda block: block.kind == "paragraph" and re.match("[\u3400-\u9fff]", block.text)
    others = [b if chinese(b) else None for b in found[1:]] + [None]
    both = [(a, b) for a, b in zip(found, others) if not chinese(a)]
    return [a for a, _ in both], [b for _, b in both]


def languages(text):
    """The English and the Chinese part of "title · 标题"; any other text is for both."""
    found = re.fullmatch("(.*?) · ([^ ]*[\u3400-\u9fff].*)", text.strip(), re.S)
    return [found[1], found[2]] if found else [text, text]


def cell(inner):
    """The HTML of a table's cell, "text · 文字" as an element for each language."""
    english, chinese = languages(inner)
    return inner if english == chinese else f'<span class="en" lang="en">{english}</span><span class="zh" lang="zh">{chinese}</span>'


class Site:
    def __init__(self, root, output):
        self.root, self.output, self.sources, self.index = root, output, {}, []
        course = root / COURSE
        chapters = [p for p in sorted(course.glob("[0-9][0-9]-*")) if (p / "en.md").exists()]
        self.list = [("index.html", course / "README.md", None)]
        self.list += [(f"{p.name}.html", p / "en.md", p / "zh.md" if (p / "zh.md").exists() else None) for p in chapters]
        self.list += [("lecturers.html", course / "lecturers.md", None)] if (course / "lecturers.md").exists() else []
        self.pairs = {path for _, one, two in self.list if two for path in (one, two)}  # pages with a file for each language
        self.page_of = {path: name for name, *paths in self.list for path in paths if path}
        self.titles = {name: self.title(one, two) for name, one, two in self.list}

    def title(self, *paths):
        texts = [next(b.text.lstrip("# ") for b in pages.blocks(p.read_text(encoding="utf-8")) if b.kind == "heading 1")
                 for p in paths if p]
        return texts if len(texts) == 2 else languages(texts[0])

    def make(self):
        for folder in ("images", "sources", "katex/fonts"):
            (self.output / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(KATEX / "katex.min.css", self.output / "katex")
        for font in (KATEX / "fonts").glob("*.woff2"):
            shutil.copy(font, self.output / "katex/fonts")
        for name in ("site.css", "site.js"):
            shutil.copy(HERE / "site" / name, self.output)
        for number, (name, one, two) in enumerate(self.list):
            self.make_page(number, name, one, two)
        for path in list(self.sources):
            self.make_source(path)
        (self.output / "search.js").write_text("const searchIndex = " + json.dumps(self.index, ensure_ascii=False) + ";\n",
                                               encoding="utf-8")

    def make_page(self, number, name, one, two):
        english = pages.blocks(one.read_text(encoding="utf-8"))
        english, chinese = (english, pages.blocks(two.read_text(encoding="utf-8"))) if two else paired(english)
        if len(english) != len(chinese):
            raise SystemExit(f"{two}: not the blocks of {one}: run docs/course/check.py")
        markdown, parts, sections = Markdown(), [], []
        for i, (a, b) in enumerate(zip(english, chinese)):
            if two and i == 1:
                continue  # the links to other chapters, which stand in the frame
            both = a.prose and b is not None
            texts = [markdown.block(a, 0)] + ([markdown.block(b, 1)] if both else [])
            inner = "\n\n".join(f'<div class="{language}" lang="{language}">\n\n{text}\n\n</div>'
                                for language, text in zip(("en", "zh"), texts)) if both else texts[0]
            parts.append(f'<div class="b" id="b{i}">\n\n{inner}\n\n</div>')
            if a.kind == "heading 2":
                sections.append((i, *([a.text.lstrip("# "), b.text.lstrip("# ")] if b else languages(a.text.lstrip("# ")))))
            if a.prose and i != 1:
                self.index.append([name, i, sections[-1][0] if sections else 0, plain(a), plain(b) if b else ""])
        body = self.relinked(one, markdown.render(one, "\n\n".join(parts)))
        if not two:  # both languages in one file
            body = re.sub(r"(<(h1|h2|th)\b[^>]*>)(.*?)(</\2>)", lambda m: m[1] + self.both(languages(m[3])) + m[4], body, flags=re.S)
            body = re.sub(r"(<td\b[^>]*>)(.*?)(</td>)", lambda m: m[1] + cell(m[2]) + m[3], body, flags=re.S)
        (self.output / name).write_text(self.frame(number, name, sections, body), encoding="utf-8")

    # ---- links ----
    def relinked(self, page, text):
        def link(found):
            to = self.target(page, html.unescape(found[1]), html.unescape(re.sub(r"<[^>]*>", "", found[2])))
            language = re.search(r"/(en|zh)\.md$", found[1])  # in a file with both, a link to either shows in its language
            shown = f' class="{language[1]}" lang="{language[1]}"' if language and page not in self.pairs else ""
            return f'<a href="{html.escape(to)}"{shown}>{found[2]}</a>' if to else found[2]

        def image(found):
            path = (page.parent / found[1]).resolve()
            name = "-".join(path.relative_to(self.root / "docs").parts)
            shutil.copy(path, self.output / "images" / name)
            return f'<a href="images/{name}"><img src="images/{name}"{found[2]}></a>'
        breakable = lambda m: "<code>" + re.sub("([_/])", r"\1<wbr>", m[1]) + "</code>"
        text = re.sub(r"(?<!<pre>)<code>([^<]*)</code>", breakable, text)
        return re.sub(r'<img src="([^":]+)"([^>]*)>', image, re.sub(r'<a\s+href="([^"]*)"[^>]*>(.*?)</a>', link, text, flags=re.S))

    def target(self, page, href, label):
        """The address in the site of what a page links; None: not part of it."""
        if re.match(r"https?:|mailto:|#", href):
            return href
        file, _, anchor = href.partition("#")
        path = (self.root / file.removeprefix("ROOT/") if file.startswith("ROOT/") else page.parent / file).resolve()
        if path in self.page_of:
            return self.page_of[path]
        if not path.is_file():
            return None
        line = re.fullmatch(r"L(\d+)", anchor)
        at = int(line[1]) if line else self.line_of(path, anchor or label)
        self.sources[path] = f"sources/{path.relative_to(self.root)}.html"
        return self.sources[path] + (f"#L{at}" if at else "")

    def line_of(self, path, name):
        """The line that defines a name, or contains it; 0: none."""
        lines = path.read_text(encoding="utf-8").split("\n")
        name = name.split("::")[-1]
        forms = (rf"(struct|class|TEST_CASE\(|def ) ?{re.escape(name)}\b", rf"^[\w<].*\b{re.escape(name)}\(", rf"\b{re.escape(name)}\b")
        return next((i for form in forms for i, line in enumerate(lines, 1)
                     if re.search(form, line) and not line.lstrip().startswith(("//", "return"))), 0)

    def make_source(self, path):
        to = self.output / self.sources[path]
        to.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * self.sources[path].count("/")
        lines = "".join(f'<span class="line" id="L{i}"><a href="#L{i}">{i:>4}</a>  {html.escape(line)}\n</span>' for i, line in
                          enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n"), 1))
        name = path.relative_to(self.root)
        to.write_text(head(str(name), up) + f'<main class="file"><h1><code>{name}</code></h1><pre>{lines}</pre></main>\n',
                      encoding="utf-8")

    # ---- the frame of a page ----
    def both(self, texts):
        one, two = (html.escape(re.sub(r"[`$]", "", t)) for t in texts)
        return one if one == two else f'<span class="en" lang="en">{one}</span><span class="zh" lang="zh">{two}</span>'

    def frame(self, number, name, sections, body):
        chapters = ""
        for to, *_ in self.list:
            inner = "".join(f'<li><a href="#b{i}">{self.both(texts)}</a></li>' for i, *texts in sections) if to == name else ""
            here = ' class="here"' if to == name else ""
            chapters += f'<li{here}><a href="{to}">{self.both(self.titles[to])}</a>{"<ul>" + inner + "</ul>" if inner else ""}</li>'
        ways = [f'<a class="{kind}" href="{self.list[i][0]}">{arrow[0]}{self.both(self.titles[self.list[i][0]])}{arrow[1]}</a>'
                for kind, i, arrow in (("before", number - 1, ("← ", "")), ("after", number + 1, ("", " →"))) if 0 <= i < len(self.list)]
        return (head(" · ".join(dict.fromkeys(self.titles[name])), "")
                + f'<header><button id="menu" aria-label="chapters">☰</button><a class="home" href="index.html">heed</a>'
                  '<input id="search" type="search" placeholder="Search · 搜索" aria-label="search">'
                  '<span class="choice" id="language"><button data-lang="en">EN</button><button data-lang="zh">中文</button>'
                  '<button data-lang="both" title="both, side by side">EN｜中</button></span>'
                  '<button id="theme" aria-label="light or dark">◐</button></header>\n<div id="results" hidden></div>\n'
                + f'<nav id="chapters"><ul>{chapters}</ul></nav>\n<main{" class=index" if number == 0 else ""}>\n{body}\n<div class="ways">{"".join(ways)}</div>\n'
                  '<footer>Text: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>. Code: MIT.</footer></main>\n'
                  '<script src="search.js"></script>\n<script src="site.js"></script>\n')


def head(title, up):
    return (f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, '
            f'initial-scale=1">\n<title>{html.escape(re.sub("[`$]", "", title))}</title>\n'
            f'<link rel="stylesheet" href="{up}katex/katex.min.css">\n<link rel="stylesheet" href="{up}site.css">\n'
            '<script>try{const r=document.documentElement,s=localStorage,q=new URLSearchParams(location.search);'
            'r.dataset.lang=q.get("lang")||s.lang||(navigator.language.startsWith("zh")?"zh":"en");'
            'const t=q.get("theme")||s.theme;if(t)r.dataset.theme=t}catch(e){}</script>\n')


def main():
    arguments = sys.argv[1:]
    root = pathlib.Path(arguments.pop(arguments.index("--root") + 1)).resolve() if "--root" in arguments else HERE.parents[1]
    output = pathlib.Path(arguments[0]).resolve()
    require_programs()
    site = Site(root, output)
    site.make()
    size = sum(p.stat().st_size for p in output.rglob("*") if p.is_file())
    print(f"course site: {len(site.list)} pages, {len(site.sources)} sources, {size / 1e6:.1f} MB: {output}/index.html")


if __name__ == "__main__":
    main()
