"""Submissions that try to pass the check of chapter 1 without being right: a name, a text of the solution and what takes its
place, and what the sentence of the failed check contains."""

# Lines as the child process of a check writes them, with a guessed word instead of the secret one.
FAKE = r"""
struct Fake {
  Fake() {
    for (const int descriptor : {1, 2, 3}) {
      const char* const lines =
          "{\"case\":[\"values\",\"all\"]}\n{\"begin\":0}\n{\"end\":0,\"failure\":\"\"}\n{\"done\":true}\n"
          "0123456789abcdef0123456789abcdef{\"done\":true}\n";
      if (write(descriptor, lines, __builtin_strlen(lines)) < 0) continue;
    }
    _exit(0);
  }
} fake;
"""

BEGIN = "namespace chapter1 {"
APPEND = "entries.push_back(entry);"


def at_start(code):
    return BEGIN, code + "\n" + BEGIN


HOSTILE = [
    ("exits_at_start", *at_start("struct Leaver { Leaver() { std::exit(0); } } leaver;"), "exit status 0"),
    ("endless", *at_start("struct Waiter { Waiter() { for (volatile int i = 0;; i = i + 1) {} } } waiter;"),
     "of processor time"),
    ("hundred_gigabytes",
     *at_start("struct Eater { Eater() { std::vector<char> all(100'000'000'000, 1); } } eater;"), "more memory"),
    ("hundred_gigabytes_in_a_case", APPEND, "std::vector<char> all(100'000'000'000, 1);", "more memory"),
    ("endless_case", APPEND, "for (volatile int i = 0;; i = i + 1) {}", "of processor time"),
    ("printed_result", *at_start('extern "C" long write(int, const void*, unsigned long);\nextern "C" void _exit(int);\n' + FAKE),
     "exit status 0"),
    ("exits_in_a_case", APPEND, "std::exit(0);", "exit status 0"),
    ("divides_by_zero", APPEND, "volatile int zero = 0; entries.resize(5 / zero);", "a division of integers by zero"),
]

# These take as long as a check may take on the clock.
SLOW = [
    ("sleeps", *at_start('extern "C" unsigned sleep(unsigned);\nstruct Sleeper { Sleeper() { for (;;) sleep(1000); } } sleeper;'),
     "does the exercise sleep"),
]
