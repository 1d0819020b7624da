#pragma once
/// A split as token ids, laid end to end.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batches/batching.h"
#include "data/sources/corpus.h"
#include "data/tokenizers/tokenizer.h"

namespace heed {

/// Sequences of any length, one after the other; sequence i is ids[offsets[i]] … ids[offsets[i + 1]
/// − 1].
struct Sequences {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> offsets = {0};

  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t length(std::int64_t i) const { return offsets[i + 1] - offsets[i]; }
  std::span<const std::int32_t> operator[](std::int64_t i) const {
    return {ids.data() + offsets[i], static_cast<std::size_t>(length(i))};
  }
  void push(std::span<const std::int32_t> sequence) {
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    offsets.push_back(static_cast<std::int64_t>(ids.size()));
  }
  std::int64_t longest() const;
};

/// The samples of a split: sequences with a source and a target each, or a running text. The
/// batching rule says how they become batches.
struct Dataset {
  const Batching* batching = &pairs();

  Sequences source;                       ///< seq2seq: each ends in </s>
  Sequences target;                       ///< without specials; batches add <s> and </s>
  std::vector<std::string> source_lines;  ///< the raw text of every sample, where asked for
  std::vector<std::string> target_lines;
  std::int64_t left_out_long = 0;   ///< pairs longer than max_length on a side
  std::int64_t left_out_empty = 0;  ///< pairs with no token on a side

  std::vector<std::int32_t> stream;  ///< of a running text: all of it, no specials
  std::int64_t text_bytes = 0;       ///< of the text that the tokens spell; 0 where they do not

  std::int64_t size() const { return source.size(); }  ///< sequences
  bool empty() const { return size() == 0 && stream.empty(); }
};

struct TokenizeOptions {
  /// Leave out pairs that are empty, or longer than max_length, and count them; otherwise sample i
  /// is line i, always.
  bool training = false;
  std::int64_t max_length = 0;  ///< tokens a side, specials not counted; 0: no limit
  bool keep_lines = true;       ///< fill source_lines and target_lines
  bool end_sources = true;      ///< each source ends in </s>
};

/// Encodes the lines of a split on `threads` threads (0: one for each core; the result is the same).
/// A split with source lines only (to be translated) gets empty targets.
Dataset tokenize(const Split& split, const Tokenizer& source, const Tokenizer& target,
                 const TokenizeOptions& options = {}, int threads = 0);
/// The same of a running text.
Dataset tokenize_text(const std::string& text, const Tokenizer& tokenizer, int threads = 0);

/// What a model can be asked about an evaluation split, where sample i is line i.
struct EvaluationLimits {
  std::int64_t positions = 0;  ///< that the model has; 0: any number
  /// Tokens of a line, its end counted. Attention takes time with the square of it, so that a line
  /// as long as a book would stop all others.
  std::int64_t longest = 4096;
};

/// Throws bad_input, naming `what` and the line, if a sequence is longer than the limits allow,
/// specials counted.
void check_lengths(const Dataset& data, const EvaluationLimits& limits, const std::string& what);
/// Throws bad_input, naming `what`, if a text has fewer than two tokens.
void check_text(const Dataset& data, const std::string& what);

}  // namespace heed
