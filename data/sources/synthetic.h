#pragma once
/// Built-in tasks, made as they are needed.
///
///   copy      "c a b"            "c a b"          symbols a … z, A … Z, 0 … 9, with spaces between
///   reverse   "c a b"            "b a c"
///   sort      "c a b"            "a b c"          by that order of the symbols
///   addition  "12+345"           "357"
///   dates     "3 March 2021"     "2021-03-03"     see dates.h; options on length do not matter
///   brackets  "( [ ] { } )"      "1 2 2 2 2 1"    how deeply each bracket is nested, for task: tag
#include <cstdint>

#include "data/options.h"
#include "data/sources/corpus.h"

namespace heed {

/// The same seed, the same corpus. No source line stands in two splits: a hash of the source (of
/// the calendar date, for dates, so that test dates have been seen in no form) puts it into valid
/// (1/10), test (1/10) or train. Lines of valid and test are all different; in train they may
/// repeat. Throws Error(usage) for impossible options, and where the task has too few different
/// lines.
Corpus synthetic_corpus(const SyntheticOptions& options, std::uint64_t seed);

}  // namespace heed
