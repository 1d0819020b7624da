#include "train/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/io/utf8.h"
#include "train/metrics/text_metric.h"
#include "train/metrics/words.h"

namespace heed {
namespace {

// ---- mteval-v13a --------------------------------------------------------------------------------
// The rules insert spaces next to ASCII characters only, so they can be applied to UTF-8 bytes.

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

/// True for the ASCII symbols that are always separate tokens: all except letters, digits, and ' ,
/// - . (rule 1).
bool is_separate(char c) {
  const auto in = [c](char first, char last) { return c >= first && c <= last; };
  return in('{', '~') || in('[', '`') || in(' ', '&') || in('(', '+') || in(':', '@') || c == '/';
}

bool is_point(char c) { return c == '.' || c == ','; }

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// In each pair of adjacent characters for which `matches` returns true, makes one character a
/// separate token: the first if `first`, otherwise the second. Pairs are searched from the left,
/// without overlap.
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
    if (is_separate(c))
      out.append({' ', c, ' '});
    else
      out += c;
  }
  return out;
}

std::string_view without_final_spaces(std::string_view line) {
  while (!line.empty()) {
    std::size_t at = line.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(line[at]) & 0xC0u) == 0x80u) --at;
    if (at + space_length(line, at) != line.size()) break;
    line = line.substr(0, at);
  }
  return line;
}

/// The tokens of a text according to mteval-v13a's rules for symbols, periods, commas and hyphens,
/// joined by single spaces.
std::string separated(std::string text) {
  text = separate_signs(text);
  // A period or comma is a separate token if no digit precedes it.
  text = separate(text, false, [](char a, char b) { return !is_ascii_digit(a) && is_point(b); });
  // A period or comma is a separate token if no digit follows it.
  text = separate(text, true, [](char a, char b) { return is_point(a) && !is_ascii_digit(b); });
  // A hyphen after a digit is a separate token.
  text = separate(text, false, [](char a, char b) { return is_ascii_digit(a) && b == '-'; });
  return fmt::format("{}", fmt::join(split_words(text), " "));
}

/// Whether a character is in the ranges of sacreBLEU, which writes ideographs beyond U+FFFF as
/// '\u20000' to '\u2a6d6'. Python reads each bound as an escape of four digits (U+2000, U+2A6D)
/// followed by a digit. Compared as strings, these bounds include U+2001 to U+2A6D, among them
/// quotation marks and dashes; this range is kept so that scores equal sacreBLEU's.
bool is_chinese(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> ranges[] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F},
      {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF},
      {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
      {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  return std::ranges::any_of(ranges, [c](const auto& r) { return r.first <= c && c <= r.second; });
}

/// Calls each(code point, bytes) for every character of UTF-8 text; the code point of a malformed
/// byte is 0.
template <class Each>
void for_each_character(std::string_view text, const Each& each) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t well_formed = utf8_length(text, at),
                      length = std::max<std::size_t>(well_formed, 1);
    each(well_formed == 0 ? 0 : utf8_decode(text, at, length), text.substr(at, length));
    at += length;
  }
}

// ---- counting -------------------------------------------------------------------------------

using Counts = std::unordered_map<std::string, std::int64_t>;  // n-gram → count

struct LineCounts {
  std::array<Counts, bleu_order> ngrams;
  std::int64_t length = 0;
};

std::string tokenized(const std::string& text, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::v13a:
      return tokenize_13a(text);
    case BleuTokenizer::none:
      return text;
    case BleuTokenizer::zh:
      return tokenize_zh(text);
    case BleuTokenizer::characters:
      return tokenize_characters(text);
  }
  return text;
}

LineCounts count_line(const std::string& text, BleuTokenizer tokenizer) {
  const std::string tokens = tokenized(text, tokenizer);
  const std::vector<std::string_view> words = split_words(tokens);
  LineCounts line;
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

void add_line(BleuScore& sums, const LineCounts& hypothesis, const LineCounts& reference) {
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
  std::string text(without_final_spaces(line));  // before "-\n" is removed
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  return separated(fmt::format(" {} ", text));
}

std::string tokenize_zh(std::string_view line) {
  line = without_final_spaces(line);
  while (!line.empty() && space_length(line, 0) > 0) line.remove_prefix(space_length(line, 0));
  std::string text;
  for_each_character(line, [&](char32_t number, std::string_view bytes) {
    const bool chinese = is_chinese(number);
    if (chinese) text += ' ';
    text += bytes;
    if (chinese) text += ' ';
  });
  return separated(std::move(text));
}

std::string tokenize_characters(std::string_view line) {
  std::string text;
  for_each_character(line, [&](char32_t, std::string_view bytes) {
    text += bytes;
    text += ' ';
  });
  return text;
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
    if (counts.totals[n] == 0) return;  // no hypothesis has n + 1 tokens: the score is 0
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
  require_equal_numbers("BLEU", hypotheses.size(), references.size());
  BleuScore result;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    add_line(result, count_line(hypotheses[i], tokenizer), count_line(references[i], tokenizer));
  compute_bleu(result);
  result.signature = fmt::format("nrefs:1|case:mixed|eff:no|tok:{}|smooth:exp|version:heed-{}",
                                 name_of(tokenizer), HEED_VERSION);
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

TextScore bleu_metric(const ScoredLines& lines) {
  const BleuScore bleu = corpus_bleu(lines.outputs, lines.references, lines.tokenizer);
  return {{{Metric::bleu, bleu.score}}, bleu.signature, {bleu.text(), bleu.signature}};
}

}  // namespace heed
