#pragma once
/// Generated tasks.
///
///   copy      "c a b"            "c a b"          symbols a … z, A … Z, 0 … 9, separated by spaces
///   reverse   "c a b"            "b a c"
///   sort      "c a b"            "a b c"          the order of the symbols is as above
///   addition  "12+345"           "357"
///   dates     "3 March 2021"     "2021-03-03"     see dates.h
///   summary   "A cook sold the old lamp, …"  "A cook sold the old lamp."   see summaries.h
///   mixture   "sort: c a b"      "a b c"          lines of the tasks in options.of, task by task
///   captions  "drawing:…"        "a red square left of a blue circle"   see drawings.h
///   tones     "tones:3 1 4 #9"   "3 1 4"          sound: a tone for each digit, see sound.h
///   motion    "clip:…"           "left 2"         the motion of a square, see motion.h
///   brackets  "( [ ] { } )"      "1 2 2 2 2 1"    nesting depth of each bracket, for task: tag
///   recall    "b 3 d 0 ? b"      "- - - - - 3"    value of the queried key, for task: tag
///   grammar   "she is early ."   "PRON AUX ADJ PUNCT"  part of speech of each word, for task: tag
#include <cstdint>

#include "autograd/base/option_error.h"
#include "data/options.h"
#include "data/sources/corpus.h"

namespace heed {

/// The properties of a generated task on which the checks of a config depend.
struct SyntheticInfo {
  InputKind input = InputKind::text;  ///< the kind of its sources
  OptionErrors (*check)(const DataOptions&) = nullptr;
};
SyntheticInfo info_of(SyntheticKind kind);

/// Generates a corpus, a function of options and seed. A hash of the source assigns each pair to
/// valid (1/10), test (1/10) or train, so no source line is in two splits. For dates, the calendar
/// date is hashed instead, so train contains no form of a test date. For captions and tones, the
/// target is hashed, so train contains no image with the caption of a test image and no sound with
/// the digits of a test sound. Lines of valid and test are distinct; lines of train may repeat. The
/// length options have no effect on dates, captions and motion. Throws Error(usage) if the task has
/// too few different lines. `image` is the size of the drawings of `captions` and of the videos of
/// `motion`, which have video.frames frames.
Corpus synthetic_corpus(const SyntheticOptions& options, std::uint64_t seed,
                        const ImageOptions& image = {}, const VideoOptions& video = {});

}  // namespace heed
