#pragma once
/// The samples of a split as concatenated token ids.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batches/batching.h"
#include "data/batches/inputs.h"
#include "data/batches/masking.h"
#include "data/batches/spans.h"
#include "data/sources/corpus.h"
#include "data/tokenizers/tokenizer.h"

namespace heed {

/// Concatenated sequences of any length; sequence i is ids[offsets[i]] … ids[offsets[i + 1] − 1].
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

/// Random segmentation of lines in training, a function of seed, epoch and sample. A line whose
/// random segmentation would exceed max_length keeps its deterministic segmentation.
struct Segmentation {
  std::shared_ptr<const Tokenizer> source, target;
  SegmentationOptions options;
  std::int64_t max_length = 0;  ///< maximum number of tokens, without specials
};

/// The samples of a split: pairs of a source and a target sequence, or a continuous text.
/// `batching` makes batches of them.
struct Dataset {
  const Batching* batching = &pairs();

  Sequences source;                       ///< seq2seq: each ends in </s>
  std::shared_ptr<const Inputs> inputs;   ///< sources that are not text, used in place of `source`
  std::vector<std::int64_t> input_of;     ///< index of each sample's input in `inputs`
  Sequences target;                       ///< without <s> and </s>, which batches add
  std::vector<std::string> source_lines;  ///< source line of every sample, if requested
  std::vector<std::string> target_lines;
  Origins target_origins;                    ///< unless samples were left out
  std::optional<Segmentation> segmentation;  ///< requires source_lines and target_lines
  std::optional<Masking> masking;            ///< required by masked_lines()
  std::optional<HiddenSpans> spans;          ///< required by hidden_spans()
  std::vector<Split::Part> parts;     ///< the tasks of a mixture, in the order of their samples
  MixtureOptions mixture;             ///< determines the number of samples drawn from each part
  SpecialIds source_ids, target_ids;  ///< of the vocabularies
  /// The number of samples left out because a side is longer than max_length.
  std::int64_t skipped_long = 0;
  /// The number of samples left out because a side is empty or, for span corruption, has one token.
  std::int64_t skipped_empty = 0;

  std::vector<std::int32_t> stream;  ///< tokens of a continuous text, without specials
  std::int64_t text_bytes = 0;       ///< size of the text, in bytes; 0 for a word tokenizer

  std::int64_t size() const {  ///< number of samples; 0 for a continuous text
    return inputs ? static_cast<std::int64_t>(input_of.size()) : source.size();
  }
  std::int64_t source_rows(std::int64_t sample) const {
    return inputs ? inputs->rows(input_of[sample]) : source.length(sample);
  }
  /// Appends the source of draw.sample.
  void push_source(const Draw& draw, Side& side) const {
    inputs ? inputs->push(input_of[draw.sample], draw, side) : side.push(source[draw.sample]);
  }
  bool empty() const { return size() == 0 && stream.empty(); }
};

struct TokenizeOptions {
  /// true: pairs with a side that is empty or longer than max_length are skipped and counted;
  /// false: sample i is line i.
  bool training = false;
  /// The maximum number of tokens per side, without specials; 0: no limit.
  std::int64_t max_length = 0;
  bool keep_lines = true;                     ///< fill source_lines and target_lines
  bool end_sources = true;                    ///< each source ends in </s>
  std::shared_ptr<const Inputs> inputs = {};  ///< inputs of the source lines, in place of tokens
};

/// Encodes the lines of a split on `threads` threads (0: one per processor); the number of threads
/// does not affect the result. If a split has no target lines, every target is empty.
Dataset tokenize(const Split& split, const Tokenizer& source, const Tokenizer& target,
                 const TokenizeOptions& options = {}, int threads = 0);
/// Encodes a continuous text.
Dataset tokenize_text(const std::string& text, const Tokenizer& tokenizer, int threads = 0);

/// Limits for the samples of an evaluation split.
struct EvaluationLimits {
  std::int64_t positions = 0;          ///< maximum number of positions of the model; 0: no limit
  std::int64_t rows_per_position = 1;  ///< number of source rows per position
  /// The maximum number of tokens in a line, </s> included, or of rows in an input that is not
  /// text. The time of attention is quadratic in this number, so a very long line would delay all
  /// others.
  std::int64_t longest = 4096;
};

/// Throws Error(bad_input), naming `what` and, for sample i, line i + 1, if a sequence, specials
/// included, is longer than the limits allow.
void check_lengths(const Dataset& data, const EvaluationLimits& limits, const std::string& what);
/// Throws Error(bad_input), naming `what`, if the text has fewer than two tokens.
void check_text(const Dataset& data, const std::string& what);

}  // namespace heed
