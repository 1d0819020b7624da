#pragma once
/// The raw text for training, validation and test.
#include <cstdint>
#include <string>
#include <vector>

#include "data/options.h"

namespace heed {

/// Reads::pairs: line i of `source` belongs to line i of `target`; either may be empty.
/// Reads::text: one continuous `text`, line ends included, and no lines. Reads::lines: `source`
/// alone.
struct Split {
  /// Consecutive lines that belong to one task of a mixture.
  struct Part {
    std::string name;
    std::size_t size = 0;
  };

  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  std::string text = {};
  std::vector<Part> parts = {};  ///< empty, or covers all lines

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

/// How the files of a split are read.
struct ReadOptions {
  Reads reads = Reads::pairs;
  InputKind input = InputKind::text;       ///< of pairs
  bool lowercase = false;                  ///< as in DataOptions
  std::vector<std::string> prefixes = {};  ///< of the lines of each source file
};

/// One split from its files; `name` ("train") is for messages. If the sources are pictures, a
/// source file is a list of files, relative to its folder; or, with a name that ends in .csv, a
/// list of "FILE,TARGET" in place of both sides; or an IDX file of pictures, whose target may be an
/// IDX file of numbers.
Split read_split(const FilesOptions& files, const ReadOptions& options, const std::string& name);
/// Whether one file has both sides.
bool holds_both_sides(const std::string& path);

}  // namespace heed
