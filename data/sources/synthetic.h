#pragma once
/// Built-in tasks, generated on demand.
///
///   copy      "c a b"            "c a b"          symbols a … z, A … Z, 0 … 9, with spaces between
///   reverse   "c a b"            "b a c"
///   sort      "c a b"            "a b c"          in that order of the symbols
///   addition  "12+345"           "357"
///   dates     "3 March 2021"     "2021-03-03"     see dates.h; length options have no effect
///   summary   "A cook sold a lamp, …"  "A cook sold a lamp."   see summaries.h
///   mixture   "sort: c a b"      "a b c"          lines of the tasks in options.of, in that order
///   captions  "drawing:…"        "a red square left of a blue circle"   see drawings.h
///   tones     "tones:3 1 4 #9"   "3 1 4"          sound: a tone for each digit, see sound.h
///   motion    "clip:…"           "left 2"         how a square moves, see motion.h
///   brackets  "( [ ] { } )"      "1 2 2 2 2 1"    the nesting depth of each bracket, for task: tag
#include <cstdint>

#include "data/options.h"
#include "data/sources/corpus.h"

namespace heed {

/// The same seed gives the same corpus. No source line is in two splits: a hash of the source (for
/// dates, of the calendar date, so that training has no form of a test date; for captions and
/// tones, of the target, so that training has no picture of the same shapes in the same relation,
/// and no sound of the same digits) assigns it to valid (1/10), test (1/10) or train. Lines of
/// valid and test are all different; in train they may repeat. Throws Error(usage) if the task has
/// too few different lines. `image` is the size of the drawings of `captions` and of the clips of
/// `motion`, which have video.frames frames.
Corpus synthetic_corpus(const SyntheticOptions& options, std::uint64_t seed,
                        const ImageOptions& image = {}, const VideoOptions& video = {});

}  // namespace heed
