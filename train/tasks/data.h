#pragma once
/// The data of an experiment, in memory. Independent of `real`: `heed gradcheck` loads its data
/// with these functions and builds its model in float64.
#include "data/batches/batcher.h"
#include "data/batches/dataset.h"
#include "data/sources/corpus.h"
#include "data/tokenizers/tokenizer.h"
#include "train/config/config.h"
#include "train/run/run_record.h"

namespace heed {

struct ExperimentData {
  Tokenizers tokenizers;
  Dataset train, valid, test;
  SplitSums sums;
  /// Checksums of the evaluated lines, independent of the tokenizers: the first 16 hex digits of
  /// their SHA-256. Images, videos, sounds and features are hashed instead of the source lines that
  /// name them. "" for an empty split.
  std::string valid_lines, test_lines;
  std::vector<std::string> warnings = {};  ///< data_warnings()
};

/// SHA-256 of the encoded samples of a split, as in SplitSums; "" for an empty split.
std::string digest_of_samples(const Dataset& encoded);

/// The checksum of a split for ExperimentData::valid_lines and test_lines. `encoded`: the same split,
/// encoded.
std::string digest_of_lines(const Split& split, const Dataset& encoded);

/// Reads the files, trains or loads the tokenizers, and encodes the splits. Calls Task::load of the
/// config's task.
ExperimentData load_data(const Config& config, const Tokenizers* tokenizers = nullptr);

/// The kind of the target's tokenizer: `words` for tasks that predict one label for each line,
/// otherwise tokenizer.kind.
TokenizerKind target_kind(const Config& config);
/// The tokenizers of a run folder.
Tokenizers load_tokenizers(const std::filesystem::path& folder, const Config& config);

VocabularySizes sizes_of(const Tokenizers& tokenizers);

/// The options for cutting training data into batches.
BatchOptions batch_options(const Config& config);

}  // namespace heed
