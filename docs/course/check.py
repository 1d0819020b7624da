#!/usr/bin/python3 -B
"""Checks the pages of the course; AUTHORS.md describes their form.

    check.py [--heed PROGRAM] [--root FOLDER]       prints each violation; exits with 1 if there is one
    check.py --update [--accept PAGE:LINE …]        renews what follows from other files:

- a quotation without … becomes the text of its source, in both languages;
- a shared block of zh.md becomes that of en.md;
- the line of a link to a source, #L12, becomes that of the definition that the link names;
- a drawing is drawn again (with --heed);
- the hash above a Chinese block becomes that of its English block if the Chinese text differs from the last commit, or if
  --accept names the line of zh.md, because the Chinese text is right for the changed English text too.

Without --heed, drawings are not compared."""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = "docs/course"
SECTIONS = (  # of each chapter, in this order; further ones may stand between them
    "Why", "The formula", "Backward", "In heed", "Experiment", "Common mistakes", "Exercise", "Questions", "Sources",
)
PAGE_SECTIONS = ("Why", "The formula", "Config", "Experiment", "Sources")  # of the short pages, 00 and from 11 on
CJK = "\u3400-\u9fff"
ANY = "…"


def fits(expected, printed):
    """Whether the lines equal the quotation, in which a line … (also as a comment) stands for any lines."""
    if not expected:
        return not printed
    if expected[0].strip().removeprefix("// ") == ANY:
        return any(fits(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and expected[0] == printed[0] and fits(expected[1:], printed[1:])


class Course:
    def __init__(self, root, heed=None):
        self.root, self.heed, self.violations, self.counts = root, heed, [], {}
        self.chapters = sorted(p.name for p in (root / COURSE).glob("[0-9][0-9]-*") if p.is_dir())

    def say(self, page, block, message):
        self.violations.append(f"{page}:{block.line if block else 1}: {message}")

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def read(self, page):
        return (self.root / page).read_text(encoding="utf-8")

    def check(self):
        for name in self.chapters:
            english, chinese = (f"{COURSE}/{name}/{language}.md" for language in ("en", "zh"))
            if not (self.root / english).exists():
                self.violations.append(f"{english}: missing")
                continue
            found = pages.blocks(self.read(english))
            self.check_form(english, found, SECTIONS if 1 <= int(name[:2]) <= 10 else PAGE_SECTIONS)
            self.check_page(english, found)
            if not (self.root / chinese).exists():
                self.violations.append(f"{chinese}: missing")
                continue
            translated = pages.blocks(self.read(chinese))
            self.check_page(chinese, translated, drawings=False)
            self.check_translation(english, found, chinese, translated)
        for page in ("README.md", "lecturers.md", "AUTHORS.md"):
            if (self.root / COURSE / page).exists():
                self.check_page(f"{COURSE}/{page}", pages.blocks(self.read(f"{COURSE}/{page}")))
        self.check_index()
        for path in sorted((self.root / "docs").glob("*.md")):  # other pages may quote, too
            page = f"docs/{path.name}"
            for block in pages.blocks(self.read(page)):
                self.check_quotation(page, block)

    # ---- one page ----
    def check_form(self, page, found, sections):
        heads = [b.text.lstrip("# ") for b in found if b.kind == "heading 2"]
        if [head for head in heads if head in sections] != list(sections):
            self.say(page, None, f"its sections are {', '.join(heads)}; expected {', '.join(sections)}, and others between them")
        for block in found:
            if block.kind == "box" and block.info not in ("NOTE", "WARNING", "TIP"):
                self.say(page, block, "a quotation block begins with > [!NOTE], > [!TIP] or > [!WARNING]")
            if block.kind == "box" and block.info == "WARNING" and not any("/tests/" in to for _, _, to in block.links()):
                self.say(page, block, "a box of a common mistake links the test that shows the right statement")

    def check_page(self, page, found, drawings=True):
        for block in found:
            self.check_quotation(page, block)
            if not block.prose:
                continue
            for formula in block.formulas():
                self.count("formulas")
                if escape := re.search(r"\\[^\w\s]", formula):
                    self.say(page, block, f"${formula}$: Markdown removes the backslash of {escape[0]}; write a block ```math")
            for link in block.links():
                self.check_link(page, block, *link)
            if block.kind == "image":
                self.check_drawing(page, block, drawings)

    def check_quotation(self, page, block):
        words = block.info.split()
        if block.kind != "code" or words[1:2] != ["quote"]:
            return
        self.count("quotations")
        path, _, name = words[2].partition("#")
        found = self.quoted(path, name)
        if not found:
            self.say(page, block, f"{path} does not exist or does not define {name}")
        elif not any(fits(block.body.rstrip("\n").split("\n"), lines) for lines in found):
            self.say(page, block, f"the quotation differs from {words[2]}: run docs/course/check.py --update, then read the text")

    def quoted(self, path, name):
        if not (self.root / path).is_file():
            return []
        text = self.read(path).rstrip("\n")
        return pages.definitions(text, name) if name else [text.split("\n")]

    def check_link(self, page, block, image, text, target):
        if re.match(r"https?://|mailto:", target):
            return
        path, _, anchor = target.partition("#")
        to = (self.root / page).parent / path if path else self.root / page
        self.count("links")
        if not to.exists():
            return self.say(page, block, f"the link to {target} names a file that does not exist")
        code = re.fullmatch(r"`([^`]+)`", text)
        if image or not code or to.suffix not in (".cpp", ".h", ".py", ".sh", ".yaml") or code[1].endswith(to.name):
            return
        lines = to.read_text(encoding="utf-8").split("\n")
        if "/tests/" in target:
            form = rf"(TEST_CASE\(|def |^void ){re.escape(code[1])}\b"  # void: a case of an exercise's check
            if not any(re.search(form, line) for line in lines):
                self.say(page, block, f"{target} contains no test {code[1]}")
            self.count("tests")
        elif code[1].split("::")[-1] not in lines[int(anchor[1:]) - 1 if re.fullmatch(r"L\d+", anchor) else 0] and anchor:
            self.say(page, block, f"line {anchor[1:]} of {path} is not that of {code[1]}: run docs/course/check.py --update")
        elif not anchor and not any(code[1].split("::")[-1] in line for line in lines):
            self.say(page, block, f"{path} does not contain {code[1]}")

    def check_drawing(self, page, block, compare):
        how = [n for n in block.notes if n.startswith(("drawn by: ", "drawn from: "))]
        if len(how) != 1:
            return self.say(page, block, "an image states <!-- drawn by: COMMAND --> or <!-- drawn from: RECORD#KEY -->")
        if how[0].startswith("drawn from: "):
            record, _, key = how[0].split()[2].partition("#")
            path = self.root / f"docs/results/{record}.json"
            if not path.exists() or f'"{key}"' not in path.read_text(encoding="utf-8"):
                self.say(page, block, f"docs/results/ has no table {record}#{key}")
        elif self.heed and compare:
            drawn = self.draw(how[0].removeprefix("drawn by: "))
            for _, _, target in block.links():
                path = (self.root / page).parent / target
                if isinstance(drawn, str):
                    self.say(page, block, drawn)
                elif path.exists() and drawn.get(path.name) != path.read_bytes():
                    self.say(page, block, f"{target} differs from what its command draws: run docs/course/check.py --update "
                                          "--heed PROGRAM, then look at it")
                self.count("drawings")

    def draw(self, command):
        """The files that a command of heed writes, or a message."""
        with tempfile.TemporaryDirectory() as folder:
            for entry in self.root.iterdir():
                (pathlib.Path(folder) / entry.name).symlink_to(entry)
            before = set(pathlib.Path(folder).iterdir())
            done = subprocess.run([self.heed, *shlex.split(command)[1:]], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                return f"{command}: {done.stderr.strip()}"
            return {p.name: p.read_bytes() for p in set(pathlib.Path(folder).iterdir()) - before}

    # ---- two languages ----
    def check_translation(self, english, originals, chinese, translated):
        for original, block in zip(originals, translated):
            if (original.kind, original.info) != (block.kind, block.info):
                return self.say(chinese, block, f"a block of kind {block.kind} {block.info} where {english}:{original.line} has "
                                                f"{original.kind} {original.info}: the pages have the same blocks in the same order")
            if not original.prose:
                if original.text != block.text or original.notes != block.notes:
                    self.say(chinese, block, f"differs from {english}:{original.line}, but code, formulas and tables of records are the "
                                             "same in both languages: run docs/course/check.py --update")
                continue
            self.count("translated blocks")
            if block.stated is None:
                self.say(chinese, block, "a block without <!-- en:HASH -->: run docs/course/check.py --update")
            elif block.stated != original.hash:
                self.say(chinese, block, f"renders an earlier text of {english}:{original.line}: translate it again, then run "
                                         "docs/course/check.py --update")
            self.check_shared_parts(english, original, chinese, block)
        if len(originals) != len(translated):
            self.say(chinese, None, f"{len(translated)} blocks, but {english} has {len(originals)}")

    def check_shared_parts(self, english, original, chinese, block):
        if sorted(original.formulas()) != sorted(block.formulas()):
            one, two = set(original.formulas()), set(block.formulas())
            self.say(chinese, block, f"its formulas differ from those of {english}:{original.line}: {' '.join(sorted(one ^ two))}")
        targets = lambda b: sorted(re.sub(r"\b(zh|en)\.md", "LANGUAGE.md", to).split("#")[0] for _, _, to in b.links())
        if targets(original) != targets(block):
            self.say(chinese, block, f"its links differ from those of {english}:{original.line}")
        if original.notes != block.notes:
            self.say(chinese, block, f"its comments differ from those of {english}:{original.line}")
        if re.search(rf"[{CJK}]\n(?![-*>|]|\d+\.)\s*[{CJK}]", block.text):
            self.say(chinese, block, "a line break between two Chinese characters shows as a space: write a paragraph on one line")
        if re.search(rf"[{CJK}]\$\S|\S\$[{CJK}]", pages.INLINE_CODE.sub("", block.text)):
            self.say(chinese, block, "GitHub renders an inline formula beside a Chinese character only after a space")

    def check_index(self):
        page = f"{COURSE}/README.md"
        if not (self.root / page).exists():
            return self.violations.append(f"{page}: missing")
        text = self.read(page)
        for name in self.chapters:
            for language in ("en", "zh"):
                if f"({name}/{language}.md)" not in text:
                    self.say(page, None, f"no link to {name}/{language}.md")

    # ---- renewal ----
    def update(self, accepted):
        for name in self.chapters:
            english, chinese = (f"{COURSE}/{name}/{language}.md" for language in ("en", "zh"))
            if not (self.root / english).exists():
                continue  # check reports it
            self.renew_quotations(english)
            self.renew_links(english)
            if self.heed:
                self.draw_again(english)
            if (self.root / chinese).exists():
                self.renew_links(chinese)
                self.renew_translation(english, chinese, accepted)
        if (self.root / COURSE / "README.md").exists():
            self.renew_links(f"{COURSE}/README.md")

    def replace(self, page, changes):
        """Replaces blocks by texts: changes are (block, text)."""
        lines = self.read(page).split("\n")
        for block, text in sorted(changes, key=lambda change: -change[0].line):
            lines[block.line - 1:block.end] = text.split("\n")
        (self.root / page).write_text("\n".join(lines), encoding="utf-8")

    def renew_quotations(self, page):
        changes = []
        for block in pages.blocks(self.read(page)):
            words = block.info.split()
            if block.kind != "code" or words[1:2] != ["quote"] or ANY in block.body:
                continue
            found = self.quoted(*words[2].partition("#")[::2])
            if found and not any(block.body.rstrip("\n").split("\n") == lines for lines in found):
                changes.append((block, "\n".join([f"```{block.info}", *found[0], "```"])))
        self.replace(page, changes)

    def renew_links(self, page):
        path = self.root / page

        def renewed(found):
            _, text, target = found.groups()
            file, _, anchor = target.partition("#")
            code = re.fullmatch(r"`([^`]+)`", text)
            source = path.parent / file
            if not code or not re.fullmatch(r"L\d+", anchor) or not source.is_file():
                return found[0]
            lines = source.read_text(encoding="utf-8").split("\n")
            of = pages.definitions("\n".join(lines), code[1])
            name = code[1].split("::")[-1]
            at = [i for i, line in enumerate(lines) if re.search(rf"\b{re.escape(name)}\b", line) and not line.lstrip().startswith("//")
                  and (not of or any(line.strip() == quoted.strip() for quoted in of[0]))]
            return f"[{text}]({file}#L{at[0] + 1})" if at else found[0]
        text = self.read(page)
        path.write_text(pages.LINK.sub(renewed, text), encoding="utf-8")

    def draw_again(self, page):
        for block in pages.blocks(self.read(page)):
            how = [n for n in block.notes if n.startswith("drawn by: ")]
            if block.kind == "image" and how:
                drawn = self.draw(how[0].removeprefix("drawn by: "))
                if isinstance(drawn, str):
                    self.say(page, block, drawn)
                    continue
                for name, content in drawn.items():
                    ((self.root / page).parent / name).write_bytes(content)

    def committed(self, page):
        done = subprocess.run(["git", "show", f"HEAD:{page}"], cwd=self.root, capture_output=True)
        return pages.blocks(done.stdout.decode()) if done.returncode == 0 else []

    def renew_translation(self, english, chinese, accepted):
        originals, translated = pages.blocks(self.read(english)), pages.blocks(self.read(chinese))
        if len(originals) != len(translated):
            return  # check reports it
        old = {(block.text, block.stated) for block in self.committed(chinese)}
        changes = []
        for original, block in zip(originals, translated):
            notes = [f"<!-- {n} -->" for n in original.notes]
            if not original.prose:
                changes.append((block, "\n".join([*notes, original.text])))
            elif block.stated is None or (block.stated != original.hash and (
                    (block.text, block.stated) not in old or f"{chinese}:{block.line}" in accepted)):
                changes.append((block, "\n".join([f"<!-- en:{original.hash} -->", *notes, block.text])))
        self.replace(chinese, changes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heed", help="the program, which draws the images again")
    parser.add_argument("--update", action="store_true", help="renew quotations, shared blocks, lines of links, drawings and hashes")
    parser.add_argument("--accept", metavar="PAGE:LINE", nargs="*", default=[], help="a Chinese block that needs no change")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args()
    course = Course(options.root.resolve(), options.heed and str(pathlib.Path(options.heed).resolve()))
    if options.update:
        course.update(options.accept)
    course.check()
    print("\n".join(course.violations) or "course: " + ", ".join(f"{n} {what}" for what, n in course.counts.items())
          + ", no violation")
    return 1 if course.violations else 0


if __name__ == "__main__":
    sys.exit(main())
