#include "data/sources/generated/grammar.h"

#include <array>
#include <string_view>

namespace heed {
namespace {

using Words = std::array<std::string_view, 12>;

// Words that occur in several lists are ambiguous.
constexpr Words nouns{"guard", "watch", "ship",  "light", "plant", "cook",
                      "paint", "drink", "house", "train", "river", "letter"};
constexpr Words acts{"guard", "watch", "ship",  "light", "plant",  "cook",
                     "paint", "drink", "house", "train", "follow", "like"};
constexpr Words qualities{"light", "clean", "fast", "early", "hard", "round",
                          "warm",  "green", "old",  "back",  "calm", "empty"};
constexpr Words manners{"fast",  "early", "hard",  "back", "often", "again",
                        "round", "soon",  "twice", "well", "there", "here"};
constexpr std::array<std::string_view, 8> places{"near",  "under",  "like",  "round",
                                                 "after", "before", "since", "with"};
constexpr std::array<std::string_view, 6> subordinators{"after", "before",  "since",
                                                        "while", "because", "if"};
constexpr std::array<std::string_view, 6> determiners{"the", "a", "that", "her", "this", "his"};
constexpr std::array<std::string_view, 4> subjects{"she", "he", "that", "this"};
constexpr std::array<std::string_view, 4> objects{"her", "him", "that", "this"};
constexpr std::array<std::string_view, 4> helpers{"can", "will", "must", "may"};
constexpr std::array<std::string_view, 3> links{"and", "or", "but"};

/// The plural of a noun, or the third person singular of a verb.
std::string with_s(std::string_view word) {
  return std::string(word) + (word.ends_with("ch") ? "es" : "s");
}

class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  TaggedSentence sentence(std::int64_t clauses) {
    if (clauses > 1 && chance(3)) {
      one_of(subordinators, "SCONJ");
      clause();
      add(",", "PUNCT");
      --clauses;
    }
    clause();
    for (; clauses > 1; --clauses) {
      chance(2) ? one_of(links, "CCONJ") : one_of(subordinators, "SCONJ");
      clause();
    }
    add(".", "PUNCT");
    return std::move(sentence_);
  }

 private:
  bool chance(std::uint32_t n) { return random_.below(n) == 0; }
  void add(std::string_view word, std::string_view tag) {
    for (const auto& [text, part] : {std::pair(&sentence_.words, word), {&sentence_.tags, tag}}) {
      if (!text->empty()) *text += ' ';
      *text += part;
    }
  }
  template <std::size_t N>
  void one_of(const std::array<std::string_view, N>& words, std::string_view tag) {
    add(words[random_.below(static_cast<std::uint32_t>(N))], tag);
  }

  void clause() {
    const bool plural = subject();
    predicate(plural);
  }

  /// Adds a subject; returns whether it is plural.
  bool subject() {
    if (chance(3)) {
      one_of(subjects, "PRON");
      return false;
    }
    if (chance(6)) {
      add("they", "PRON");
      return true;
    }
    return noun_phrase();
  }

  bool noun_phrase() {
    const bool plural = chance(3);
    if (plural) {
      if (!chance(3)) add("the", "DET");
    } else {
      one_of(determiners, "DET");
    }
    if (chance(3)) one_of(qualities, "ADJ");
    const std::string_view word = nouns[random_.below(static_cast<std::uint32_t>(nouns.size()))];
    add(plural ? with_s(word) : std::string(word), "NOUN");
    return plural;
  }

  void predicate(bool plural) {
    if (chance(4)) {
      one_of(helpers, "AUX");
      if (chance(4)) add("not", "PART");
      plural = true;  // after this auxiliary, the verb has no -s
    } else if (chance(5)) {
      add(plural ? "are" : "is", "AUX");
      if (chance(4)) one_of(manners, "ADV");
      one_of(qualities, "ADJ");
      return;
    }
    verb(plural);
    object();
    if (chance(3)) {
      one_of(places, "ADP");
      noun_phrase();
    } else if (chance(3)) {
      one_of(manners, "ADV");
    }
  }

  void verb(bool plural) {
    const std::string_view word = acts[random_.below(static_cast<std::uint32_t>(acts.size()))];
    add(plural ? std::string(word) : with_s(word), "VERB");
  }

  void object() {
    if (chance(3))
      one_of(objects, "PRON");
    else
      noun_phrase();
  }

  Random& random_;
  TaggedSentence sentence_;
};

}  // namespace

TaggedSentence tagged_sentence(std::int64_t clauses, Random& random) {
  return Writer(random).sentence(clauses);
}

}  // namespace heed
