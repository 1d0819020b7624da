#pragma once
/// Files of samples, read record by record. A record is a line of text, a row of a table with named
/// columns, or a sentence with one token per line:
///
///   csv     cells separated by commas (RFC 4180); a cell in quotation marks may contain commas,
///           line breaks and doubled quotation marks
///   tsv     cells separated by tabs; quotation marks have no meaning (IANA)
///   jsonl   an object per line; a column is a name in it
///   conll   a token per line with its annotations, separated by tabs or else spaces; an empty line
///           ends a sentence. A column is the number of a token's field, and its value is the fields
///           of all tokens of a sentence, joined by spaces.
///
/// All formats are UTF-8, plain or gzip (autograd/io/lines.h). Errors name the file and the line.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "autograd/io/lines.h"
#include "data/options.h"

namespace heed {

/// The format of a file: `given` or, if this is auto, the one that the end of its name (before .gz)
/// states. Standard input ("-") consists of lines.
FileFormat format_of(const std::string& path, FileFormat given);

/// A value of a record; each has a key of ColumnOptions.
enum class ColumnRole { source, target, text };

struct RecordOptions {
  FileFormat format = FileFormat::lines;  ///< all but auto
  ColumnOptions columns = {};
  /// csv: lines FILE,TARGET without header or quotation, in which TARGET may contain commas.
  bool listed = false;
  /// Whether a value may contain line breaks and tabs; otherwise each becomes a space.
  bool keeps_breaks = false;
  /// Sources are file names relative to this folder; empty: they are used unchanged.
  std::filesystem::path folder = {};
};

class RecordReader {
 public:
  /// Opens the file and reads its header. `roles`: the values to read; lines have only one. Throws
  /// Error(bad_input) if the file cannot be read or lacks a column, and Error(usage) if a column of
  /// a CoNLL file is not a number.
  RecordReader(const std::string& path, const RecordOptions& options,
               const std::vector<ColumnRole>& roles);

  /// Reads the values of the next record, in the order of the roles; returns false at the end.
  /// Throws Error(bad_input), with the line, for a broken record, one without a requested value, and
  /// one whose number of columns differs from that of the first.
  bool next(std::vector<std::string>& values);
  /// The line in which the last record of a table begins.
  std::int64_t line() const { return begin_; }
  /// Whether the input is a terminal, whose user waits for the answer to each line.
  bool terminal() const { return lines_.terminal(); }

 private:
  struct Value {
    std::string key;                   // data.columns.source
    std::vector<std::string> columns;  // names or numbers; several columns are joined by tabs
    bool any;                          // the first of `columns` that exists, instead of all
    std::vector<std::size_t> at = {};  // indices of the columns, except in jsonl
  };

  bool next_row(std::vector<std::string>& values);
  bool next_object(std::vector<std::string>& values);
  bool next_sentence(std::vector<std::string>& values);
  bool read_cells();
  std::size_t read_quoted(std::size_t at, std::string& cell);
  void choose_column(Value& value, const std::vector<std::string>& names) const;
  void find_columns();
  void check_width();
  void add(std::string text, bool first, const Value& of, std::string& value) const;
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse_columns(const Value& value, const std::vector<std::string>& names) const;

  std::string name_;  // of the file
  LineReader lines_;
  RecordOptions options_;
  std::vector<Value> values_;
  std::string line_;                // the last line that was read
  std::int64_t begin_ = 0;          // number of the line where the record begins
  std::vector<std::string> cells_;  // of a row, or of a token
  std::size_t width_ = 0;           // number of columns; 0 until it is known
  std::int64_t width_line_ = 0;     // number of the line that determined it
};

}  // namespace heed
