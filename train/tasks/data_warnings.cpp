#include "train/tasks/data_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "autograd/io/lines.h"
#include "autograd/io/message_text.h"

namespace heed {

namespace {

using Warnings = std::vector<std::string>;

void add_missing_parts(const Config& config, const Split& train, const Dataset& encoded,
                       Warnings& warnings) {
  for (std::size_t i = 0; i < train.parts.size(); ++i) {
    const auto& [name, size] = train.parts[i];
    if (i < encoded.parts.size() && encoded.parts[i].size > 0) continue;
    warnings.push_back(
        size == 0
            ? fmt::format("data.train: part \"{}\" of the mixture has no line, so the model "
                          "does not learn it: remove it, or give it data",
                          name)
            : fmt::format("data.train: part \"{}\" of the mixture is left out, because each of "
                          "its {} lines is empty or too long: raise data.max_length ({})",
                          name, size, config.data.max_length));
  }
}

/// The first word of the lines that contains an unknown token.
template <class Lines>
std::string unknown_word(const Lines& lines, const Tokenizer& tokenizer) {
  const auto is_unknown = [&](std::string_view text) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    return std::ranges::find(ids, tokenizer.special_ids().unk) != ids.end();
  };
  for (const std::string_view line : lines) {
    if (!is_unknown(line)) continue;
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find_first_of(" \t\n", begin), line.size());
      const std::string_view word = line.substr(begin, end - begin);
      if (!word.empty() && is_unknown(word)) return std::string(word);
      begin = end + 1;
    }
    return std::string(line);
  }
  return "";
}

constexpr std::string_view text_advice =
    "distinguish them: use a tokenizer that was learned from such text, or tokenizer.kind: byte";
constexpr std::string_view label_advice =
    "predict them: add samples with these labels to the training data, or remove them here";

/// `key` names the lines, which `ids` encode.
template <class Lines>
void add_unknown(const std::string& key, const Lines& lines, const std::vector<std::int32_t>& ids,
                 const Tokenizer& tokenizer, Warnings& warnings,
                 std::string_view advice = text_advice) {
  const SpecialIds special = tokenizer.special_ids();
  constexpr double max_share = 0.01;  // tokenizers leave out rare characters and words
  const auto unknown = static_cast<double>(std::ranges::count(ids, special.unk)),
             all = static_cast<double>(std::ssize(ids) - std::ranges::count(ids, special.eos));
  if (unknown <= max_share * all) return;
  warnings.push_back(fmt::format(
      "{}: the tokenizer does not know {:.1f} % of the tokens, such as \"{}\", so the model cannot {}",
      key, 100 * unknown / all, excerpt(unknown_word(lines, tokenizer), 40), advice));
}

/// Whether a sample is labelled with words of a fixed set instead of text.
bool has_labels(const Config& config) {
  const Architecture architecture = info_of(config.task).architecture;
  return architecture == Architecture::encoder ||
         architecture == Architecture::encoder_of_sequences;
}

void add_unknown(const Config& config, const std::string& split, const Split& lines,
                 const Dataset& encoded, const Tokenizers& tokenizers, Warnings& warnings) {
  if (!lines.text.empty())
    return add_unknown(split + ".text", text_lines(lines.text), encoded.stream, *tokenizers.target,
                       warnings);
  const bool pairs = !lines.target.empty();
  add_unknown(split + (pairs ? ".source" : ".text"), lines.source, encoded.source.ids,
              *tokenizers.source, warnings);
  if (pairs)
    add_unknown(split + ".target", lines.target, encoded.target.ids, *tokenizers.target, warnings,
                has_labels(config) ? label_advice : text_advice);
}

/// Calls visit(line) for each line of a text, or for each pair, as one line.
template <class Visit>
void visit_lines(const Split& split, const Visit& visit) {
  for (const std::string_view line : text_lines(split.text)) visit(std::string(line));
  for (std::size_t i = 0; i < split.source.size(); ++i)
    visit(split.target.empty() ? split.source[i] : split.source[i] + '\t' + split.target[i]);
}

/// `copy`: the samples of both splits have equal digests, as those of copied images.
void add_repeated(const std::string& name, const Split& train, const Split& judged, bool copy,
                  Warnings& warnings) {
  if (judged.empty()) return;
  constexpr double max_share = 0.5;
  std::unordered_map<std::string, bool> lines;  // whether the training data contain the line
  visit_lines(judged, [&](const std::string& line) { lines.emplace(line, false); });
  visit_lines(train, [&](const std::string& line) {
    if (const auto found = lines.find(line); found != lines.end()) found->second = true;
  });
  double bytes = 0, repeated = 0;
  visit_lines(judged, [&](const std::string& line) {
    bytes += static_cast<double>(line.size());
    if (copy || lines[line]) repeated += static_cast<double>(line.size());
  });
  if (repeated <= max_share * bytes) return;
  warnings.push_back(fmt::format(
      "{}: {:.0f} % of it, in bytes, are lines that data.train also contains, so it does not measure "
      "how the model generalises: give other data",
      name, 100 * repeated / bytes));
}

void add_single_label(const Config& config, const ExperimentData& data, Warnings& warnings) {
  if (!has_labels(config)) return;
  const auto one = [&](const Dataset& split) {
    const std::vector<std::int32_t>& labels = split.target.ids;
    return !labels.empty() &&
           std::ranges::adjacent_find(labels, std::not_equal_to<>()) == labels.end();
  };
  const auto warn = [&](const std::string& key, const Dataset& split, std::string_view advice) {
    warnings.push_back(
        fmt::format("{}: every label is \"{}\", so {}", key,
                    excerpt(data.tokenizers.target->piece(split.target.ids.front()), 40), advice));
  };
  if (one(data.train))
    return warn("data.train", data.train, "there is nothing to learn: give data with other labels");
  for (const auto& [key, split] :
       {std::pair("data.valid", &data.valid), std::pair("data.test", &data.test)})
    if (split->size() > 1 && one(*split))
      warn(
          key, *split,
          "its metrics say nothing about the others: shuffle the data if they are sorted by label");
}

void add_long_targets(const Config& config, const std::string& split, const Dataset& encoded,
                      Warnings& warnings) {
  constexpr double max_share = 0.01;
  if (info_of(config.task).architecture != Architecture::encoder_decoder) return;
  const Sequences& targets = encoded.target;
  std::int64_t longer = 0;
  for (std::int64_t i = 0; i < targets.size(); ++i)
    longer += targets.length(i) > config.decode.max_length ? 1 : 0;
  if (static_cast<double>(longer) <= max_share * static_cast<double>(targets.size())) return;
  warnings.push_back(fmt::format(
      "{}: {} of {} targets have more than {} tokens (decode.max_length), so their outputs are cut: "
      "raise decode.max_length; the longest target has {} tokens",
      split, longer, targets.size(), config.decode.max_length, targets.longest()));
}

}  // namespace

std::vector<std::string> data_warnings(const Config& config, const Corpus& corpus,
                                       const ExperimentData& data) {
  Warnings warnings;
  add_missing_parts(config, corpus.train, data.train, warnings);
  add_single_label(config, data, warnings);
  add_unknown(config, "data.train", corpus.train, data.train, data.tokenizers, warnings);
  add_unknown(config, "data.valid", corpus.valid, data.valid, data.tokenizers, warnings);
  add_unknown(config, "data.test", corpus.test, data.test, data.tokenizers, warnings);
  add_long_targets(config, "data.valid", data.valid, warnings);
  add_long_targets(config, "data.test", data.test, warnings);
  if (config.data.synthetic.name != SyntheticKind::none)
    return warnings;  // its splits are disjoint
  const SplitSums& sums = data.sums;
  add_repeated("data.valid", corpus.train, corpus.valid, sums.valid == sums.train, warnings);
  add_repeated("data.test", corpus.train, corpus.test, sums.test == sums.train, warnings);
  return warnings;
}

}  // namespace heed
