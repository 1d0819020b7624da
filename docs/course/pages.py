"""The blocks of a page of the course, and quotations of sources: shared by check.py and make_site.py.

A block ends at an empty line; a fenced block, at its fence; a table of a record, at <!-- /table -->. Comments belong to the
block that they precede or end. Code, formulas and tables of records are the same in both languages; all other blocks
are prose, and each block of zh.md states in <!-- en:HASH --> which English block it renders."""
import dataclasses
import hashlib
import re

SHARED = ("code", "formula", "figures", "note")
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.S)
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
FORMULA = re.compile(r"(?<![\\$\w])\$(?=[^\s$])([^$]*?[^\s\\])\$(?![\w$])", re.S)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


@dataclasses.dataclass
class Block:
    kind: str       # heading N, paragraph, list, box, image, table, or one of SHARED
    info: str       # words after the three backquotes of code; NOTE or WARNING of a box
    text: str       # without comments
    notes: list     # contents of the comments, without that of the translation
    stated: str     # the hash in the comment of the translation; None: without a comment
    line: int       # of the page, from 1
    end: int        # the last line

    @property
    def prose(self):
        return self.kind not in SHARED

    @property
    def hash(self):
        """Names the text; other line breaks, and other lines of linked sources, do not change it."""
        text = re.sub(r"#L\d+\)", ")", " ".join(self.text.split()))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def body(self):
        """The lines between the fences of a block of code or of a formula."""
        return self.text.split("\n", 1)[1].rsplit("\n", 1)[0] + "\n" if self.text.count("\n") > 1 else ""

    def formulas(self):
        """The inline formulas, without their dollars."""
        return [found[1] for found in FORMULA.finditer(INLINE_CODE.sub("", self.text))]

    def links(self):
        """(is an image, text, target) of each link."""
        return [(found[1] == "!", found[2], found[3]) for found in LINK.finditer(self.text)]


def kind_of(text):
    """The kind of a block without comments, and its info."""
    first = text.split("\n")[0]
    if not text:
        return "note", ""
    if first.startswith("```"):
        return ("formula" if first == "```math" else "code"), first[3:].strip()
    if found := re.match(r"(#+) ", first):
        return f"heading {len(found[1])}", ""
    if first.startswith(">"):
        found = re.match(r"> \[!(\w+)\]$", first)
        return "box", found[1] if found else ""
    for pattern, kind in ((r"!\[", "image"), (r"\|", "table"), (r"([-*]|\d+\.) ", "list")):
        if re.match(pattern, first):
            return kind, ""
    return "paragraph", ""


def end_of(lines, begin):
    """The index after the last line of the block that begins at `begin`."""
    i = begin
    while i < len(lines) and lines[i].startswith("<!--"):
        table = lines[i].startswith("<!-- table ")
        while i < len(lines) and not (lines[i].startswith("<!-- /table") if table else "-->" in lines[i]):
            i += 1
        i += 1
        if table:
            return i
    if i < len(lines) and lines[i].startswith("```"):
        i += 1
        while i < len(lines) and lines[i] != "```":
            i += 1
        return i + 1
    while i < len(lines) and lines[i].strip():
        i += 1
    return i


def blocks(text):
    """The blocks of a page."""
    lines, found, i = text.split("\n"), [], 0
    while i < len(lines):
        if not lines[i].strip():
            i += 1
            continue
        end = min(end_of(lines, i), len(lines))
        whole = "\n".join(lines[i:end])
        if "<!-- table " in whole:
            found.append(Block("figures", "", whole.split("-->", 1)[1] if "<!-- en:" in whole else whole, [], None, i + 1, end))
            i = end
            continue
        fence = whole.find("```") if re.search(r"^```", whole, re.M) else len(whole)
        comments = COMMENT.findall(whole[:fence])
        bare = (re.sub(r"\n?" + COMMENT.pattern, "", whole[:fence], flags=re.S) + whole[fence:]).strip("\n")
        stated = [c[3:].strip() for c in comments if c.startswith("en:")]
        kind, info = kind_of(bare)
        found.append(Block(kind, info, bare, [" ".join(c.split()) for c in comments if not c.startswith("en:")],
                           stated[0] if stated else None, i + 1, end))
        i = end
    return found


# ---- quotations ----------------------------------------------------------------------------------
def range_of(lines, start):
    """The lines of the definition whose first line is `start`, with the comments above it; None: a declaration."""
    indent = re.match(r"\s*", lines[start])[0]
    end = start
    while "{" not in lines[end]:
        if ";" in lines[end] or end + 1 == len(lines):
            return None
        end += 1
    if lines[end].count("{") != lines[end].count("}"):
        end += 1
        while end < len(lines) and not (lines[end].startswith(indent + "}")):
            end += 1
    while start > 0 and re.match(r"\s*(//|template\b|requires\b)", lines[start - 1]):
        start -= 1
    return start, end + 1


def dedented(lines):
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def definitions(text, name):
    """The texts, as lines, that NAME names in a source: a region between // quote NAME and // end quote, a function, a
    struct, or a member of it, Struct::member."""
    lines = text.split("\n")
    marks = [i for i, line in enumerate(lines) if line.strip() == f"// quote {name}"]
    if marks:
        end = next(i for i in range(marks[0], len(lines)) if lines[i].strip() == "// end quote")
        return [dedented(lines[marks[0] + 1:end])]
    found = starts(lines, name, 0, len(lines))
    if not found and "::" in name:
        outer, member = name.split("::", 1)
        for begin, end in starts(lines, outer, 0, len(lines)):
            found += starts(lines, member, begin + 1, end)
    depth = lambda begin_end: len(lines[begin_end[0]]) - len(lines[begin_end[0]].lstrip())
    top = min(map(depth, found), default=0)  # a function, where members of structs have its name
    return [dedented(lines[begin:end]) for begin, end in found if depth((begin, end)) == top]


def starts(lines, name, begin, end):
    """The ranges of the definitions of `name` between two lines."""
    form = re.compile(rf"\s*((struct|class|enum class) {re.escape(name)}\b(?!;)|[\w<].*(?<![\w.>:]){re.escape(name)}\()")
    ranges = [range_of(lines, i) for i in range(begin, end) if form.match(lines[i])
              and not re.match(r"\s*(return|throw|if|for|while|else)\b", lines[i])]
    return [r for r in ranges if r and r[0] >= begin - 1]
