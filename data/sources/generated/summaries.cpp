#include "data/sources/generated/summaries.h"

#include <array>
#include <string_view>

namespace heed {
namespace {

using Words = std::array<std::string_view, 12>;

constexpr Words people{"cook",   "nurse",  "teacher", "farmer", "painter", "sailor",
                       "lawyer", "singer", "baker",   "driver", "doctor",  "student"};
constexpr Words verbs{"bought", "sold", "found",   "lost",   "cleaned", "painted",
                      "broke",  "kept", "carried", "wanted", "drew",    "hid"};
constexpr Words adjectives{"old",   "green", "heavy", "small", "yellow", "wooden",
                           "clean", "round", "cheap", "red",   "broken", "long"};
constexpr Words things{"lamp", "boat", "chair", "letter", "coat", "table",
                       "book", "ring", "drum",  "basket", "key",  "clock"};
constexpr Words reasons{"it was raining",           "the shop was closed", "nobody was at home",
                        "the music had ended",      "the train was late",  "the price was low",
                        "the children were hungry", "the bell rang",       "the sun was shining",
                        "the street was empty",     "winter was near",     "the dog barked"};
constexpr std::array<std::string_view, 4> conjunctions{"because", "while", "although", "when"};

template <std::size_t N>
std::string_view one_of(const std::array<std::string_view, N>& words, Random& random) {
  return words[random.below(static_cast<std::uint32_t>(N))];
}

void append(std::string& text, std::string_view words) {
  if (!text.empty()) text += ' ';
  text += words;
}

std::string main_clause(Random& random) {
  std::string clause = random.below(2) == 0 ? "a" : "the";
  append(clause, one_of(people, random));
  append(clause, one_of(verbs, random));
  append(clause, "the");
  append(clause, one_of(adjectives, random));
  append(clause, one_of(things, random));
  return clause;
}

std::string dependent_clause(Random& random) {
  std::string clause(one_of(conjunctions, random));
  append(clause, one_of(reasons, random));
  return clause;
}

std::string sentence(std::string words) {
  words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words + ".";
}

}  // namespace

Summary write_summary(std::int64_t sentences, Random& random) {
  Summary all;
  for (std::int64_t i = 0; i < sentences; ++i) {
    const std::string clause = main_clause(random);
    std::string whole = clause;
    const std::uint32_t order = random.below(3);
    if (order > 0) whole = dependent_clause(random) + ", " + clause;
    if (order < 2) whole += ", " + dependent_clause(random);
    append(all.text, sentence(whole));
    append(all.summary, sentence(clause));
  }
  return all;
}

}  // namespace heed
