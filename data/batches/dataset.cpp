#include "data/batches/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "autograd/io/lines.h"

namespace heed {
namespace {

/// The minimum number of lines for which a thread saves more time than it costs.
constexpr std::size_t lines_per_thread = 512;

/// Encodes a contiguous part of the lines on each thread and joins the parts in order.
template <class Line>
Sequences encode(std::span<const Line> lines, const Tokenizer& tokenizer, int threads) {
  std::vector<Sequences> parts(lines.size() / lines_per_thread + 1);
  const std::size_t n = in_parts(lines.size(), lines_per_thread, threads,
                                 [&](std::size_t k, std::size_t from, std::size_t to) {
                                   for (std::size_t i = from; i < to; ++i)
                                     parts[k].push(tokenizer.encode(lines[i]));
                                 });
  Sequences all = std::move(parts[0]);
  for (std::size_t k = 1; k < n; ++k) {
    const auto shift = static_cast<std::int64_t>(all.ids.size());
    all.ids.insert(all.ids.end(), parts[k].ids.begin(), parts[k].ids.end());
    for (std::size_t i = 1; i < parts[k].offsets.size(); ++i) {
      all.offsets.push_back(parts[k].offsets[i] + shift);
    }
  }
  return all;
}

/// Joins lines whose newline may be part of a longer token: those that do not end, or whose next line
/// does not begin, with a character and without a space.
std::vector<std::string_view> separable(std::string_view text,
                                        const std::vector<std::string_view>& lines) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  std::vector<std::string_view> joined;
  std::size_t begin = 0, end = 0;
  for (const std::string_view line : lines) {
    end += line.size();
    const bool apart =
        line.size() > 1 && !space(line[line.size() - 2]) && end < text.size() && !space(text[end]);
    if (!apart && end < text.size()) continue;
    joined.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return joined;
}

}  // namespace

std::int64_t Sequences::longest() const {
  std::int64_t max_length = 0;
  for (std::int64_t i = 0; i < size(); ++i) max_length = std::max(max_length, length(i));
  return max_length;
}

Dataset tokenize_text(const std::string& text, const Tokenizer& tokenizer, int threads) {
  Dataset data;
  data.batching = &windows();
  data.source_ids = data.target_ids = tokenizer.special_ids();
  std::vector<std::string_view> lines = text_lines(text);
  if (!tokenizer.separates_lines()) lines = separable(text, lines);
  data.stream = encode(std::span<const std::string_view>(lines), tokenizer, threads).ids;
  // A word tokenizer omits spaces and maps all unknown words to one id, so the loss cannot be
  // converted to bits per byte.
  const bool whole = tokenizer.kind() != TokenizerKind::words;
  data.text_bytes = whole ? static_cast<std::int64_t>(text.size()) : 0;
  return data;
}

Dataset tokenize(const Split& split, const Tokenizer& source, const Tokenizer& target,
                 const TokenizeOptions& options, int threads) {
  const std::vector<std::string> no_targets(split.target.empty() ? split.source.size() : 0);
  const auto& target_lines = split.target.empty() ? no_targets : split.target;
  if (split.source.size() != target_lines.size()) {
    throw Error(Exit::failed, "tokenize: source and target differ in their number of lines");
  }
  const std::span<const std::string> lines =
      options.inputs ? std::span<const std::string>() : split.source;
  const Sequences sources = encode(lines, source, threads);
  const Sequences targets = encode(std::span<const std::string>(target_lines), target, threads);

  Dataset data;
  data.source_ids = source.special_ids();
  data.target_ids = target.special_ids();
  const std::int32_t end[] = {data.source_ids.eos};
  data.inputs = options.inputs;
  std::int64_t end_of_part = 0;
  for (std::int64_t i = 0; i < targets.size(); ++i) {
    while (data.parts.size() < split.parts.size() && i == end_of_part) {
      const Split::Part& part = split.parts[data.parts.size()];
      data.parts.push_back({part.name, 0});
      end_of_part += static_cast<std::int64_t>(part.size);
    }
    if (options.training) {
      const std::int64_t length = options.inputs ? options.inputs->rows(i) : sources.length(i);
      const auto shorter = split.target.empty() ? length : std::min(length, targets.length(i));
      const auto longer =
          std::max(options.inputs && options.inputs->fixed_rows() ? 0 : length, targets.length(i));
      if (shorter == 0) {
        ++data.skipped_empty;
        continue;
      }
      if (options.max_length > 0 && longer > options.max_length) {
        ++data.skipped_long;
        continue;
      }
    }
    if (options.inputs) {
      data.input_of.push_back(i);
    } else {
      const auto ids = sources[i];
      data.source.ids.insert(data.source.ids.end(), ids.begin(), ids.end());
      data.source.push(options.end_sources ? std::span(end) : std::span<const std::int32_t>());
    }
    data.target.push(targets[i]);
    if (!data.parts.empty()) ++data.parts.back().size;
    if (options.keep_lines) {
      data.source_lines.push_back(split.source[i]);
      data.target_lines.push_back(target_lines[i]);
    }
  }
  if (data.skipped_empty + data.skipped_long == 0) data.target_origins = split.target_origins;
  return data;
}

void check_text(const Dataset& data, const std::string& what) {
  if (data.stream.size() >= 2) return;
  throw Error(Exit::bad_input, "{}: the text has {} token{}; at least 2 are required", what,
              data.stream.size(), data.stream.size() == 1 ? "" : "s");
}

void check_lengths(const Dataset& data, const EvaluationLimits& limits, const std::string& what) {
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const std::int64_t source = data.source_rows(i), target = data.target.length(i) + 1,
                       needed = std::max(source, target);
    const bool placed =
        limits.positions > 0 &&
        (target > limits.positions || source > limits.positions * limits.rows_per_position);
    if (!placed && needed <= limits.longest) continue;
    throw Error(Exit::bad_input, "{}: line {} of the {} has {} {}{}", what, i + 1,
                source > target ? "source" : "target", needed,
                source > target && data.inputs ? "rows" : "tokens, its end token included",
                placed ? fmt::format(", but the model has only {} positions", limits.positions)
                       : fmt::format("; at most {} are accepted", limits.longest));
  }
}

}  // namespace heed
