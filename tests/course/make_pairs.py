#!/usr/bin/env python3
"""make_pairs.py FOLDER [PAIRS]: writes English sentences with their Chinese translations, as FOLDER/train.en, train.zh,
valid.* and test.*: PAIRS of training (4,000 unless given), 200 and 500. A small grammar makes them: subject, verb, object, place
and time; past, present and future; statement, negation and question. The two languages differ in the order of their words, in
tense (an ending of the verb; a word) and in number (an ending of the noun; a measure word). A hash of the Chinese sentence decides its
split, so no translation of valid or test occurs in training. Repeated calls write the same files."""
import hashlib
import os
import random
import sys

SUBJECTS = (  # English, Chinese, third person singular
    ("I", "我", False), ("we", "我们", False), ("they", "他们", False), ("she", "她", True), ("he", "他", True),
    ("the teacher", "老师", True), ("the doctor", "医生", True), ("my brother", "我哥哥", True), ("my sister", "我妹妹", True),
    ("the children", "孩子们", False), ("the students", "学生们", False), ("our neighbour", "我们的邻居", True),
)
OBJECTS = {  # singular, plural, Chinese, measure word
    "book": ("a book", "books", "书", "本"), "newspaper": ("a newspaper", "newspapers", "报纸", "份"),
    "letter": ("a letter", "letters", "信", "封"), "apple": ("an apple", "apples", "苹果", "个"),
    "egg": ("an egg", "eggs", "鸡蛋", "个"), "shirt": ("a shirt", "shirts", "衬衫", "件"), "cat": ("a cat", "cats", "猫", "只"),
    "tree": ("a tree", "trees", "树", "棵"), "bicycle": ("a bicycle", "bicycles", "自行车", "辆"), "fish": ("a fish", "fish", "鱼", "条"),
}
VERBS = (  # base, third person, past, Chinese, objects
    ("read", "reads", "read", "看", "book newspaper letter"), ("write", "writes", "wrote", "写", "book letter"),
    ("buy", "buys", "bought", "买", "book newspaper apple egg shirt bicycle fish"), ("eat", "eats", "ate", "吃", "apple egg fish"),
    ("draw", "draws", "drew", "画", "cat tree fish bicycle apple"), ("wash", "washes", "washed", "洗", "apple shirt bicycle"),
    ("find", "finds", "found", "找到", "book letter cat bicycle"), ("sell", "sells", "sold", "卖", "book newspaper egg shirt bicycle"),
)
PLACES = (("at school", "学校"), ("at home", "家里"), ("in the park", "公园里"), ("in the library", "图书馆"), ("at the station", "车站"),
          ("in the kitchen", "厨房里"), ("in the garden", "花园里"), ("in the city", "城里"))
TIMES = (("yesterday", "昨天", "past"), ("last week", "上个星期", "past"), ("this morning", "今天早上", "past"),
         ("tomorrow", "明天", "future"), ("next week", "下个星期", "future"), ("this evening", "今天晚上", "future"),
         ("every day", "每天", "present"), ("every week", "每个星期", "present"))
NUMBERS = (("", "一"), ("two", "两"), ("three", "三"), ("four", "四"))


def pair(draw):
    subject, who, third = draw.choice(SUBJECTS)
    base, present, past, does, objects = draw.choice(VERBS)
    one, many, what, measure = OBJECTS[draw.choice(objects.split())]
    (place, where), (time, when, tense) = draw.choice(PLACES), draw.choice(TIMES)
    number, count = draw.choice(NUMBERS)
    kind = draw.choice(("statement", "statement", "question", "negation")) if tense != "present" else \
        draw.choice(("statement", "question"))
    auxiliary = {"past": "did", "future": "will", "present": "does" if third else "do"}[tense]
    object_ = f"{number} {many}" if number else one
    counted = f"{count}{measure}{what}"
    if kind == "negation":  # of any: without a number
        object_, counted = f"any {many}", what
    verb = base
    if kind == "statement":
        verb = {"past": past, "future": f"will {base}", "present": present if third else base}[tense]
    if kind == "negation":
        verb = f"{auxiliary} not {base}"
    clause = f"{auxiliary} {subject} {base} {object_} {place}" if kind == "question" else f"{subject} {verb} {object_} {place}"
    first = kind != "question" and draw.random() < 0.5
    english = f"{time}, {clause}" if first else f"{clause} {time}"
    mark = "?" if kind == "question" else "."
    action = {"past": "没" if kind == "negation" else "", "future": "不会" if kind == "negation" else "会", "present": ""}[tense]
    done = "了" if tense == "past" and kind != "negation" else ""
    if does == "找到" and kind == "negation" and tense == "future":
        action, does = "", "找不到"
    chinese = f"{who}{when}{action}在{where}{does}{done}{counted}" + ("吗？" if kind == "question" else "。")
    english = english[0].upper() + english[1:]
    return english + mark, chinese


def split_of(chinese):
    return {0: "valid", 1: "test"}.get(hashlib.sha256(chinese.encode()).digest()[0] % 10, "train")


def main(folder, pairs=4000):
    draw = random.Random("pairs")
    wanted = {"train": int(pairs), "valid": 200, "test": 500}
    found = {split: {} for split in wanted}  # English: Chinese
    while any(len(found[split]) < count for split, count in wanted.items()):
        english, chinese = pair(draw)
        split = split_of(chinese)
        if len(found[split]) < wanted[split]:
            found[split][english] = chinese
    os.makedirs(folder, exist_ok=True)
    for split, lines in found.items():
        for language, side in (("en", lines.keys()), ("zh", lines.values())):
            with open(os.path.join(folder, f"{split}.{language}"), "w", encoding="utf-8") as file:
                file.write("\n".join(side) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
