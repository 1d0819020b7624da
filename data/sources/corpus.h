#pragma once
/// The raw text for training, validation and test.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograd/base/error.h"
#include "data/options.h"
#include "data/sources/records.h"

namespace heed {

/// Files that do not exist; the message has a line for each, with the key or option that names it.
struct MissingFiles : Error {
  MissingFiles(const std::string& message, std::vector<std::string> missing)
      : Error(Exit::bad_input, message), paths(std::move(missing)) {}
  std::vector<std::string> paths;
};

/// The file and the line from which each sample of a split was read, for error messages.
struct Origins {
  /// A file and its first sample. `lines`: the line of each sample of a table; empty if each line is
  /// a sample. A file without a name stands for samples of unknown origin.
  struct File {
    std::string name;
    std::size_t first = 0;
    std::vector<std::int64_t> lines = {};
    bool folder = false;  ///< a folder of classes, in which samples are files instead of lines
  };
  std::vector<File> files = {};
  std::size_t omitted = 0;  ///< number of samples of the files before the first of the split

  /// "labels.txt:5", the name of a folder or, if the origin is unknown, "WHAT: line 5" for sample 4.
  std::string of(std::int64_t sample, const std::string& what) const;
};

/// Reads::pairs: line i of `source` belongs to line i of `target`; either line may be empty.
/// Reads::text: only `text`, line endings included. Reads::lines: only `source`.
struct Split {
  /// The consecutive lines of one task of a mixture.
  struct Part {
    std::string name;
    std::size_t size = 0;
  };

  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  std::string text = {};
  std::vector<Part> parts = {};  ///< the parts of a mixture, which cover all lines; else empty
  Origins target_origins = {};

  bool empty() const { return source.empty() && text.empty(); }
};

/// The splits; a split without data in the options is empty.
struct Corpus {
  Split train = {}, valid = {}, test = {};
};

/// Reads the files of `options`, or generates its synthetic pairs. If `valid` or `test` names no
/// file, its fraction is cut from the end of train: train | valid | test. train keeps floor(n (1 −
/// valid − test)) of n pairs, or of n bytes of a text, which is cut between characters. Throws
/// MissingFiles; Error(bad_input) for files that are empty or broken (autograd/io/lines.h), for a
/// source with another number of lines than its target, and if a fraction leaves a split empty;
/// Error(usage) if the options are incomplete or contradictory.
Corpus read_corpus(const DataOptions& options, Reads reads, std::uint64_t seed);

/// The options for reading files.
struct ReadOptions {
  Reads reads = Reads::pairs;
  InputKind input = InputKind::text;       ///< kind of the sources of pairs
  bool lowercase = false;                  ///< see DataOptions
  std::vector<std::string> prefixes = {};  ///< one for each source file
  FileFormat format = FileFormat::automatic;
  ColumnOptions columns = {};
};
ReadOptions read_options(const DataOptions& options, Reads reads);

/// Reads a split from its files. Messages call the split `name`; with a name other than train,
/// valid and test, they refer to the options --source, --target and --text. A source file that
/// holds_both_sides needs no target. If the sources are not text, a source file is a table or a
/// list of paths, relative to the folder of the file; an IDX file of images or videos; or a folder
/// with a subfolder of files for each class. A target file may then be an IDX file of labels.
Split read_split(const FilesOptions& files, const ReadOptions& options, const std::string& name);
/// Whether a file contains both sources and targets: a table, or a folder of classes.
bool holds_both_sides(const std::string& path, const ReadOptions& options);

/// Reads the lines of a file that `heed generate` processes: sources or, for tasks that read text,
/// texts on one line.
RecordReader read_inputs(const std::string& path, const ReadOptions& options);

}  // namespace heed
