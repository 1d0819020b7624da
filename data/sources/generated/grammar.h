#pragma once
/// Sentences from a small grammar of English, with the part of speech of each word.
#include <cstdint>
#include <string>

#include "autograd/base/random.h"

namespace heed {

struct TaggedSentence {
  std::string words;  ///< separated by spaces: "they watch the guards ."
  std::string tags;   ///< one for each word: "PRON VERB DET NOUN PUNCT"
};

/// A sentence of `clauses` ≥ 1 clauses. The tags are from Universal Dependencies: ADJ, ADP, ADV,
/// AUX, CCONJ, DET, NOUN, PART, PRON, PUNCT, SCONJ, VERB. Many words have several tags ("the guards
/// watch", "she guards the watch", "like a light ship", "ships like the light"), so the tag of a
/// word depends on its neighbours.
TaggedSentence tagged_sentence(std::int64_t clauses, Random& random);

}  // namespace heed
