"""test_course_pages.py COURSE: docs/course/check.py reports each kind of violation, and --update renews what follows."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COURSE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(COURSE))
import check  # noqa: E402
import pages  # noqa: E402

SOURCE = """/// y = 2 x
struct Twice {
  int forward(int x) const { return 2 * x; }
  int backward(int dy) const {
    return 2 * dy;
  }
};
int twice(int x) {
  return Twice{}.forward(x);
}
"""
HEADS = [f"## {head}" for head in check.SECTIONS]
ENGLISH = """# 1. Twice

## Why

Twice $x$ is $2 x$. See [`Twice`](../../../autograd/twice.cpp#L2).

## The formula

```math
y = 2 x
```

## Backward

## In heed

```cpp quote autograd/twice.cpp#Twice::backward
int backward(int dy) const {
  return 2 * dy;
}
```

## Experiment

<!-- drawn by: heed plot twice -->
![a line](twice.svg)

## Common mistakes

> [!WARNING]
> It is not three times: [`twice_of_one_is_two`](../../../tests/test_twice.cpp).

## Exercise

## Questions

## Sources
"""
TRANSLATED = {"Twice $x$ is $2 x$. See": "把 $x$ 乘以二得到 $2 x$ 。见", "# 1. Twice": "# 1. 乘以二", "a line": "一条直线",
              "It is not three times": "不是三倍", "## Why": "## 为什么"}
HEED = "#!/bin/sh\n[ \"$2\" = twice ] || { echo no such plot >&2; exit 1; }\necho '<svg/>' >twice.svg\n"


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        chinese = ENGLISH
        for one, other in TRANSLATED.items():
            chinese = chinese.replace(one, other)
        self.english, self.chinese = "docs/course/01-twice/en.md", "docs/course/01-twice/zh.md"
        for name, text in ((self.english, ENGLISH), (self.chinese, chinese), ("autograd/twice.cpp", SOURCE), ("heed", HEED),
                           ("tests/test_twice.cpp", "BOOST_AUTO_TEST_CASE(twice_of_one_is_two) {}\n"),
                           ("docs/course/README.md", "# C\n\n[1](01-twice/en.md) [2](01-twice/zh.md)\n"),
                           ("docs/course/01-twice/twice.svg", "<svg/>\n")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / "heed").chmod(0o755)
        self.git("init", "-q")
        self.update()
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words], cwd=self.root, check=True,
                       capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def course(self):
        return check.Course(self.root, str(self.root / "heed"))

    def update(self, *accepted):
        self.course().update(accepted)

    def violations(self):
        course = self.course()
        course.check()
        return course.violations

    def change(self, page, old, new):
        text = (self.root / page).read_text()
        self.assertIn(old, text)
        (self.root / page).write_text(text.replace(old, new))

    def expect(self, *parts):
        found = self.violations()
        self.assertEqual(len(found), len(parts), found)
        for violation, part in zip(found, parts):
            self.assertIn(part, violation)

    def test_right_pages_pass(self):
        self.assertEqual(self.violations(), [])

    def test_changed_source_is_reported_and_renewed(self):
        self.change("autograd/twice.cpp", "return 2 * dy", "return dy + dy")
        self.expect("the quotation differs from autograd/twice.cpp#Twice::backward",
                    "the quotation differs from autograd/twice.cpp#Twice::backward")
        self.update()
        self.assertEqual(self.violations(), [])
        self.assertIn("  return dy + dy;", (self.root / self.chinese).read_text())

    def test_missing_source_is_reported(self):
        self.change("autograd/twice.cpp", "backward", "reverse")
        self.expect("does not define Twice::backward", "does not define Twice::backward")

    def test_ellipsis_stands_for_any_lines(self):
        self.assertTrue(check.fits(["a", "  // …", "c"], ["a", "b", "b", "c"]))
        self.assertFalse(check.fits(["a", "…", "c"], ["a", "b"]))

    def test_changed_original_is_reported_until_it_is_translated_again(self):
        self.change(self.english, "Twice $x$ is $2 x$", "Two times $x$ is $2 x$")
        self.update()
        self.expect("renders an earlier text")
        self.change(self.chinese, "乘以二得到", "翻倍得到")
        self.expect("renders an earlier text")
        self.update()
        self.assertEqual(self.violations(), [])

    def test_accepted_translation_gets_the_new_hash(self):
        self.change(self.english, "Twice $x$ is $2 x$", "Two times $x$ is $2 x$")
        block = next(b for b in pages.blocks((self.root / self.chinese).read_text()) if "乘以二得到" in b.text)
        self.update(f"{self.chinese}:{block.line}")
        self.assertEqual(self.violations(), [])

    def test_other_line_breaks_need_no_translation(self):
        self.change(self.english, "Twice $x$ is", "Twice\n$x$ is")
        self.assertEqual(self.violations(), [])

    def test_block_without_hash_is_reported(self):
        text = (self.root / self.chinese).read_text()
        (self.root / self.chinese).write_text(text.split("\n", 1)[1])
        self.expect("a block without <!-- en:HASH -->")

    def test_different_formula_is_reported(self):
        self.change(self.chinese, "y = 2 x", "y = 3 x")
        self.expect("code, formulas and tables of records are the same in both languages")

    def test_different_inline_formula_is_reported(self):
        self.change(self.chinese, "$2 x$", "$3 x$")
        self.expect("its formulas differ")

    def test_missing_block_is_reported(self):
        self.change(self.chinese, "```math\ny = 2 x\n```\n", "")
        self.assertIn("the pages have the same blocks in the same order", " ".join(self.violations()))

    def test_different_comment_is_reported(self):
        self.change(self.chinese, "plot twice", "plot thrice")
        self.expect("its comments differ")

    def test_formula_beside_a_chinese_character_is_reported(self):
        self.change(self.chinese, "把 $x$ 乘", "把$x$ 乘")
        self.expect("its formulas differ", "only after a space")

    def test_line_break_between_chinese_characters_is_reported(self):
        self.change(self.chinese, "乘以二得到", "乘以\n二得到")
        self.expect("a line break between two Chinese characters")

    def test_changed_drawing_is_reported_and_drawn_again(self):
        (self.root / "docs/course/01-twice/twice.svg").write_text("<svg></svg>\n")
        self.expect("twice.svg differs from what its command draws")
        self.update()
        self.assertEqual(self.violations(), [])

    def test_failing_command_of_a_drawing_is_reported(self):
        for page in (self.english, self.chinese):
            self.change(page, "plot twice", "plot thrice")
        self.expect("no such plot")

    def test_short_page_has_its_own_sections(self):
        folder = self.root / "docs/course/11-thrice"
        folder.mkdir()
        text = "\n\n".join(["# 11. Thrice", *(f"## {head}" for head in check.PAGE_SECTIONS)]) + "\n"
        for language in ("en", "zh"):
            (folder / f"{language}.md").write_text(text)
        self.change("docs/course/README.md", "# C\n", "# C\n\n[en](11-thrice/en.md) [zh](11-thrice/zh.md)\n")
        self.update()
        self.assertEqual(self.violations(), [])
        self.change("docs/course/11-thrice/en.md", "## Config", "## Setting")
        self.update()
        self.assertIn("its sections are Why, The formula, Setting", " ".join(self.violations()))

    def test_image_without_origin_is_reported(self):
        for page in (self.english, self.chinese):
            self.change(page, "<!-- drawn by: heed plot twice -->\n", "")
        self.expect("an image states", "an image states")

    def test_image_of_an_unknown_record_is_reported(self):
        for page in (self.english, self.chinese):
            self.change(page, "drawn by: heed plot twice", "drawn from: twice#t")
        self.expect("no table twice#t", "no table twice#t")

    def test_unknown_test_is_reported(self):
        self.change("tests/test_twice.cpp", "one_is_two", "two_is_four")
        self.expect("contains no test twice_of_one_is_two", "contains no test twice_of_one_is_two")

    def test_box_without_test_is_reported(self):
        for page in (self.english, self.chinese):
            self.change(page, ": [`twice_of_one_is_two`](../../../tests/test_twice.cpp)", "")
        self.update()
        self.expect("links the test that shows")

    def test_link_to_a_missing_file_is_reported(self):
        (self.root / "tests/test_twice.cpp").unlink()
        self.expect("does not exist", "does not exist")

    def test_wrong_line_of_a_link_is_reported_and_renewed(self):
        self.change("autograd/twice.cpp", "/// y", "// Doubles.\n\n/// y")
        self.expect("is not that of Twice", "is not that of Twice")
        self.update()
        self.assertEqual(self.violations(), [])

    def test_missing_section_is_reported(self):
        self.change(self.english, "## Questions\n\n", "")
        self.change(self.chinese, "## Questions\n\n", "")
        self.assertIn("its sections are", " ".join(self.violations()))

    def test_escape_in_an_inline_formula_is_reported(self):
        self.change(self.english, "$2 x$", r"$2\,x$")
        self.change(self.chinese, "$2 x$", r"$2\,x$")
        self.assertEqual(sum("Markdown removes the backslash" in v for v in self.violations()), 2)

    def test_chapter_without_translation_or_row_of_the_index_is_reported(self):
        (self.root / self.chinese).unlink()
        (self.root / "docs/course/README.md").write_text("# C\n")
        self.expect("zh.md: missing", "no link to 01-twice/en.md", "no link to 01-twice/zh.md")


class Names(unittest.TestCase):
    def test_table_of_hugging_faces_names_equals_the_lists_of_the_exchange(self):
        sources = (COURSE.parents[1] / "train/exchange/huggingface").glob("*.cpp")
        pairs = {pair for path in sources for pair in re.findall(r'\{"(\w+)", "([\w.]+)"', path.read_text())}
        rows = [re.split(r" *\| *", line)[1:-1] for line in (COURSE / "24-names/en.md").read_text().splitlines()
                if line.startswith("| `model.")]
        self.assertGreater(len(rows), 5)
        for own, *foreign in rows:
            prefixes = re.findall(r"`([\w.]+)`", own)
            for name in re.findall(r"`(\w+)`", " ".join(foreign)):
                self.assertTrue(any((name, key) in pairs or (name, key + ".encoder") in pairs or (name, key + ".decoder") in pairs
                                    for key in prefixes), f"{name} is not the name of {own}")


if __name__ == "__main__":
    unittest.main()
