#include "train/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/base/error.h"
#include "train/metrics/words.h"

namespace heed {
namespace {

// ---- mteval-v13a --------------------------------------------------------------------------------
// The rules concern ASCII only and put spaces around it, so they work on the bytes of UTF-8.

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The ASCII symbols that are always separate tokens: all but letters, digits, and ' , - . (rule
/// 1).
bool stands_alone(char c) {
  const auto in = [c](char first, char last) { return c >= first && c <= last; };
  return in('{', '~') || in('[', '`') || in(' ', '&') || in('(', '+') || in(':', '@') || c == '/';
}

bool is_point(char c) { return c == '.' || c == ','; }

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// Makes the first of each pair of neighbours that `matches`, or else the second, a separate token:
/// from the left and without overlap.
template <class Matches>
std::string separate(std::string_view text, bool first, Matches matches) {
  std::string out;
  out.reserve(text.size() * 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    if (first) out += ' ';
    out.append({text[i], ' ', text[i + 1]});
    if (!first) out += ' ';
    ++i;
  }
  return out;
}

std::string separate_signs(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (stands_alone(c))
      out.append({' ', c, ' '});
    else
      out += c;
  }
  return out;
}

// ---- counting -------------------------------------------------------------------------------

using Counts = std::unordered_map<std::string, std::int64_t>;  // an n-gram and its count

struct Line {
  std::array<Counts, bleu_order> ngrams;
  std::int64_t length = 0;
};

Line count_line(const std::string& text, BleuTokenizer tokenizer) {
  const std::string tokens = tokenizer == BleuTokenizer::v13a ? tokenize_13a(text) : text;
  const std::vector<std::string_view> words = split_words(tokens);
  Line line;
  line.length = std::ssize(words);
  for (std::size_t begin = 0; begin < words.size(); ++begin) {
    std::string ngram;
    for (std::size_t n = 0; n < bleu_order && begin + n < words.size(); ++n) {
      if (n > 0) ngram += ' ';
      ngram += words[begin + n];
      ++line.ngrams[n][ngram];
    }
  }
  return line;
}

void add_line(BleuScore& sums, const Line& hypothesis, const Line& reference) {
  sums.hypothesis_length += hypothesis.length;
  sums.reference_length += reference.length;
  for (std::size_t n = 0; n < bleu_order; ++n) {
    for (const auto& [ngram, count] : hypothesis.ngrams[n]) {
      const auto found = reference.ngrams[n].find(ngram);
      if (found != reference.ngrams[n].end()) sums.matches[n] += std::min(count, found->second);
      sums.totals[n] += count;
    }
  }
}

}  // namespace

std::string tokenize_13a(std::string_view line) {
  while (!line.empty()) {  // trailing white space first: it may follow a hyphen
    std::size_t at = line.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(line[at]) & 0xC0u) == 0x80u) --at;
    if (at + space_length(line, at) != line.size()) break;
    line = line.substr(0, at);
  }
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  text = separate_signs(fmt::format(" {} ", text));
  // A period or comma is a separate token unless a digit precedes it …
  text = separate(text, false, [](char a, char b) { return !is_digit(a) && is_point(b); });
  // … and follows it;
  text = separate(text, true, [](char a, char b) { return is_point(a) && !is_digit(b); });
  // a hyphen after a digit is a separate token.
  text = separate(text, false, [](char a, char b) { return is_digit(a) && b == '-'; });
  return fmt::format("{}", fmt::join(split_words(text), " "));
}

void compute_bleu(BleuScore& counts) {
  const auto hypothesis = static_cast<double>(counts.hypothesis_length);
  const auto reference = static_cast<double>(counts.reference_length);
  counts.brevity_penalty = hypothesis >= reference ? 1.0
                           : hypothesis > 0        ? std::exp(1.0 - reference / hypothesis)
                                                   : 0.0;
  counts.precisions = {};
  counts.score = 0.0;
  if (std::all_of(counts.matches.begin(), counts.matches.end(), [](auto m) { return m == 0; }))
    return;

  double smoothing = 1.0, log_sum = 0.0;
  for (std::size_t n = 0; n < bleu_order; ++n) {
    const auto total = static_cast<double>(counts.totals[n]);
    if (counts.totals[n] == 0) return;  // no line has n words: precision and score are 0
    if (counts.matches[n] == 0) {
      smoothing *= 2.0;
      counts.precisions[n] = 100.0 / (smoothing * total);
    } else {
      counts.precisions[n] = 100.0 * static_cast<double>(counts.matches[n]) / total;
    }
    log_sum += std::log(counts.precisions[n]);
  }
  counts.score = counts.brevity_penalty * std::exp(log_sum / static_cast<double>(bleu_order));
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::string> references, BleuTokenizer tokenizer) {
  if (references.size() != hypotheses.size())
    throw Error(Exit::bad_input, fmt::format("BLEU: {} lines to score, but {} reference lines",
                                             hypotheses.size(), references.size()));
  BleuScore result;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    add_line(result, count_line(hypotheses[i], tokenizer), count_line(references[i], tokenizer));
  compute_bleu(result);
  result.signature = fmt::format("nrefs:1|case:mixed|eff:no|tok:{}|smooth:exp|version:heed-{}",
                                 tokenizer == BleuTokenizer::v13a ? "13a" : "none", HEED_VERSION);
  return result;
}

std::string BleuScore::text() const {
  const double ratio = reference_length == 0 ? 0.0
                                             : static_cast<double>(hypothesis_length) /
                                                   static_cast<double>(reference_length);
  return fmt::format(
      "BLEU = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} "
      "hyp_len = {} ref_len = {})",
      score, precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
      hypothesis_length, reference_length);
}

}  // namespace heed
