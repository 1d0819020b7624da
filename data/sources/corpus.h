#pragma once
/// The raw text for training, validation and test.
#include <cstdint>
#include <string>
#include <vector>

#include "data/options.h"

namespace heed {

/// Reads::pairs: line i of `source` belongs to line i of `target`; either may be empty. Reads::text: one
/// continuous `text`, line ends included, and no lines. Reads::lines: `source` alone.
struct Split {
  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  std::string text = {};

  bool empty() const { return source.empty() && text.empty(); }
};

/// A split for which the options give no data is empty.
struct Corpus {
  Split train = {}, valid = {}, test = {};
};

/// Reads the files of `options`, or generates its synthetic pairs. If `valid` or `test` names no
/// file, its fraction is cut from the end of train: train | valid | test. Lines are counted in
/// pairs, a text in bytes, cut between characters: floor(n (1 − valid − test)) stay in train.
/// Throws Error(bad_input) for files that are missing, empty, broken (autograd/base/lines.h) or of
/// unequal length, and Error(usage) if the options fit no task or the fractions leave nothing.
Corpus read_corpus(const DataOptions& options, Reads reads, std::uint64_t seed);

/// One split from its files; `name` ("train") is for messages. lowercase as in DataOptions.
Split read_split(const FilesOptions& files, Reads reads, bool lowercase, const std::string& name);

}  // namespace heed
