#include "data/sources/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

constexpr std::size_t max_record_bytes = std::size_t{1} << 26;  // of a row over several lines
constexpr std::size_t last_column = std::numeric_limits<std::size_t>::max();

struct RoleInfo {
  std::string_view key;
  std::vector<std::string> ColumnOptions::*columns;
  std::vector<std::string> usual;  // names to try if the options give none
};

RoleInfo info_of_role(ColumnRole role) {
  switch (role) {
    case ColumnRole::source:
      return {"data.columns.source", &ColumnOptions::source, {"source", "text"}};
    case ColumnRole::target:
      return {"data.columns.target", &ColumnOptions::target, {"target", "label"}};
    case ColumnRole::text:
      break;
  }
  return {"data.columns.text", &ColumnOptions::text, {"text"}};
}

/// Whether a column is given by its number, from 1.
bool is_number(const std::string& column) {
  return !column.empty() && column.size() < 7 && column.front() != '0' &&
         column.find_first_not_of("0123456789") == std::string::npos;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n\v\f") == std::string_view::npos;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

void split_at(char separator, std::string_view line, std::vector<std::string>& cells) {
  cells.clear();
  for (std::size_t end = 0; end != std::string_view::npos; line.remove_prefix(end + 1)) {
    end = line.find(separator);
    cells.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
  }
}

/// The fields of a token: between tabs or, without tabs, the words of the line.
void split_token(std::string_view line, std::vector<std::string>& fields) {
  if (line.find('\t') != std::string_view::npos) return split_at('\t', line, fields);
  split_at(' ', line, fields);
  std::erase(fields, "");
}

/// A comment precedes a sentence. "#nba<tab>O" and "# O" within a sentence are tokens.
bool is_comment(std::string_view line) {
  return line == "#" || (line.starts_with("# ") && line.find('\t') == std::string_view::npos);
}

/// Lines that are no tokens: the document marks of CoNLL-2003, and the ranges (1-2) and empty nodes
/// (1.1) of CoNLL-U.
bool is_no_token(const std::vector<std::string>& fields) {
  const std::string& first = fields.front();
  if (first == "-DOCSTART-") return true;
  return fields.size() == 10 && '0' <= first[0] && first[0] <= '9' &&
         first.find_first_of("-.") != std::string::npos;
}

/// The names of the members of a JSON object.
std::vector<std::string> names_in(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& [name, member] : object.items()) names.push_back(name);
  return names;
}

/// A JSON value as text: a list becomes its words, separated by spaces. `refuse` throws.
template <class Refuse>
std::string text_of(const nlohmann::json& value, const Refuse& refuse) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (!value.is_array()) refuse("expected a text, a number, true, false or a list of these");
  std::string words;
  for (const nlohmann::json& element : value) {
    const std::string word = element.is_array() ? "" : text_of(element, refuse);
    if (!is_word(word)) refuse(fmt::format("{} in a list is not a word", shown(element.dump())));
    words += (words.empty() ? "" : " ") + word;
  }
  return words;
}

}  // namespace

FileFormat format_of(const std::string& path, FileFormat given) {
  if (path == "-") return FileFormat::lines;
  if (given != FileFormat::automatic) return given;
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  constexpr std::array<std::pair<std::string_view, FileFormat>, 5> endings{
      {{".csv", FileFormat::csv},
       {".tsv", FileFormat::tsv},
       {".jsonl", FileFormat::jsonl},
       {".conll", FileFormat::conll},
       {".conllu", FileFormat::conll}}};
  for (const auto& [ending, format] : endings)
    if (name.ends_with(ending)) return format;
  return FileFormat::lines;
}

RecordReader::RecordReader(const std::string& path, const RecordOptions& options,
                           const std::vector<ColumnRole>& roles)
    : name_(shown_path(path)), lines_(path), options_(options) {
  for (const ColumnRole role : roles) {
    const RoleInfo info = info_of_role(role);
    const std::vector<std::string>& given = options_.columns.*info.columns;
    values_.push_back({std::string(info.key), given.empty() ? info.usual : given, given.empty()});
    if (options_.listed || (options_.format == FileFormat::conll && given.empty()))
      values_.back().at = {role == ColumnRole::target ? last_column : 0};
  }
  if (options_.listed || options_.format == FileFormat::lines ||
      options_.format == FileFormat::jsonl)
    return;
  bool numbers = true;  // the columns are given by numbers
  for (Value& value : values_) {
    if (!value.at.empty()) continue;
    const bool numbered = std::ranges::all_of(value.columns, is_number);
    if (options_.format == FileFormat::conll && (!numbered || value.columns.size() > 1))
      throw Error(Exit::usage, "{}: \"{}\": in a CoNLL file, the column is a number ({})",
                  value.key, shown(fmt::format("{}", fmt::join(value.columns, ", "))), name_);
    if (numbered)
      for (const std::string& column : value.columns) value.at.push_back(std::stoul(column) - 1);
    numbers = numbers && numbered;
  }
  if (!numbers) find_columns();
}

bool RecordReader::next(std::vector<std::string>& values) {
  values.assign(values_.size(), "");
  const bool found = options_.format == FileFormat::lines   ? lines_.next(values.front())
                     : options_.format == FileFormat::jsonl ? next_object(values)
                     : options_.format == FileFormat::conll ? next_sentence(values)
                                                            : next_row(values);
  if (found && !options_.folder.empty())
    values.front() = (options_.folder / values.front()).string();
  return found;
}

// ---- csv and tsv ----------------------------------------------------------------------------

bool RecordReader::next_row(std::vector<std::string>& values) {
  if (!read_cells()) return false;
  check_width();
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool first = true;
    for (const std::size_t at : values_[i].at)
      add(cells_[at], std::exchange(first, false), values_[i], values[i]);
  }
  return true;
}

/// Reads the cells of the next row. Skips empty lines, except in a table of one column.
bool RecordReader::read_cells() {
  do {
    if (!lines_.next(line_)) return false;
  } while (line_.empty() && width_ != 1);
  begin_ = lines_.number();
  if (options_.listed) {
    const std::size_t comma = line_.find(',');
    if (comma == std::string::npos) refuse("no comma; expected FILE,TARGET");
    cells_ = {line_.substr(0, comma), line_.substr(comma + 1)};
    return true;
  }
  if (options_.format == FileFormat::tsv) {
    split_at('\t', line_, cells_);
    return true;
  }
  cells_.clear();
  std::size_t at = 0;
  do {  // `at` is the beginning of a cell
    std::string& cell = cells_.emplace_back();
    if (at < line_.size() && line_[at] == '"') {
      at = read_quoted(at + 1, cell);
      if (at < line_.size() && line_[at] != ',')
        refuse(
            fmt::format("column {}: text after the closing quotation mark (a quotation mark in "
                        "a quoted cell is written twice)",
                        cells_.size()));
    } else {
      const std::size_t end = std::min(line_.find(',', at), line_.size());
      cell = line_.substr(at, end - at);
      at = end;
    }
  } while (at++ < line_.size());
  return true;
}

/// Reads a cell from the byte after its first quotation mark on, if necessary over several lines,
/// and returns the position after its last.
std::size_t RecordReader::read_quoted(std::size_t at, std::string& cell) {
  for (;;) {
    const std::size_t end = line_.find('"', at);
    cell.append(line_, at, end - at);
    if (end == std::string::npos) {
      if (cell.size() > max_record_bytes || !lines_.next(line_))
        refuse(fmt::format("column {}: no closing quotation mark", cells_.size()));
      cell += '\n';
      at = 0;
    } else if (end + 1 < line_.size() && line_[end + 1] == '"') {
      cell += '"';
      at = end + 2;
    } else {
      return end + 1;
    }
  }
}

/// Reads the header and finds the columns in it.
void RecordReader::find_columns() {
  if (!read_cells()) throw Error(Exit::bad_input, "{}: empty file", name_);
  for (Value& value : values_) {
    if (value.any) choose_column(value, cells_);
    value.at.clear();
    for (const std::string& column : value.columns) {
      const auto found = std::ranges::find(cells_, column);
      if (found == cells_.end()) refuse_columns(value, cells_);
      if (std::find(found + 1, cells_.end(), column) != cells_.end())
        refuse(fmt::format("two columns are called \"{}\" ({})", shown(column), value.key));
      value.at.push_back(static_cast<std::size_t>(found - cells_.begin()));
    }
  }
  check_width();
}

/// If the options do not name the column of a value, chooses one that exists.
void RecordReader::choose_column(Value& value, const std::vector<std::string>& names) const {
  const auto found = std::ranges::find_first_of(value.columns, names);
  if (found == value.columns.end()) refuse_columns(value, names);
  value.columns = {std::string(*found)};
  value.any = false;
}

/// The first row or token determines the number of columns.
void RecordReader::check_width() {
  if (width_ > 0) {
    if (cells_.size() != width_)
      refuse(fmt::format("{} columns; line {} has {}", cells_.size(), width_line_, width_));
    return;
  }
  width_ = cells_.size();
  width_line_ = begin_;
  for (Value& value : values_) {
    for (std::size_t& at : value.at) {
      if (at == last_column) at = width_ - 1;
      if (options_.format == FileFormat::conll && width_ < values_.size())
        refuse("one column; expected a token and its tag");
      if (at >= width_) refuse(fmt::format("{} columns, but {} is {}", width_, value.key, at + 1));
    }
  }
}

// ---- jsonl ----------------------------------------------------------------------------------

bool RecordReader::next_object(std::vector<std::string>& values) {
  do {
    if (!lines_.next(line_)) return false;
  } while (is_blank(line_));
  begin_ = lines_.number();
  nlohmann::json object = parse_json_quickly(line_);
  if (object.is_discarded())  // parse_json, which is slower, explains the error
    object = parse_json(line_, fmt::format("{}:{}", name_, begin_));
  if (!object.is_object()) refuse("not a JSON object");
  for (std::size_t i = 0; i < values.size(); ++i) {
    Value& value = values_[i];
    if (value.any) choose_column(value, names_in(object));
    bool first = true;
    for (const std::string& column : value.columns) {
      const auto found = object.find(column);
      if (found == object.end()) refuse_columns(value, names_in(object));
      const auto refuse_value = [&](const std::string& what) {
        refuse(fmt::format("\"{}\": {}", shown(column), what));
      };
      add(text_of(*found, refuse_value), std::exchange(first, false), value, values[i]);
    }
  }
  return true;
}

// ---- conll ----------------------------------------------------------------------------------

bool RecordReader::next_sentence(std::vector<std::string>& values) {
  bool first = true;
  std::int64_t begin = 0;
  while (lines_.next(line_)) {
    begin_ = lines_.number();
    if (is_blank(line_)) {
      if (first) continue;
      break;
    }
    if (first && is_comment(line_)) continue;
    split_token(line_, cells_);
    if (is_no_token(cells_)) continue;
    check_width();
    if (first) begin = begin_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = values_[i].at.front();
      const std::string& field = cells_[at];
      if (!is_word(field))
        refuse(fmt::format("column {}: \"{}\" is not a word", at + 1, shown(field)));
      values[i] += (first ? "" : " ") + field;
      if (values[i].size() > max_line_bytes)
        refuse(fmt::format("a sentence of more than {} bytes; an empty line ends a sentence",
                           max_line_bytes));
    }
    first = false;
  }
  begin_ = begin;
  return !first;
}

// ---- values and errors ----------------------------------------------------------------------

/// Adds the text of a column to a value.
void RecordReader::add(std::string text, bool first, const Value& of, std::string& value) const {
  if (text.find('\0') != std::string::npos) refuse(of.key + ": NUL byte");
  if (!options_.keeps_breaks) {
    for (const char c : {'\n', '\r', '\t'}) std::ranges::replace(text, c, ' ');
    if (text.size() > max_line_bytes)
      refuse(fmt::format("{}: a text of more than {} bytes", of.key, max_line_bytes));
  }
  if (first)
    value = std::move(text);
  else
    value += '\t' + text;
}

void RecordReader::refuse(const std::string& what) const {
  throw Error(Exit::bad_input, "{}:{}: {}", name_, begin_, what);
}

void RecordReader::refuse_columns(const Value& value, const std::vector<std::string>& names) const {
  const auto listed = [](const std::vector<std::string>& columns, std::string_view separator) {
    return shown(fmt::format("\"{}\"", fmt::join(columns, separator)), 300);
  };
  refuse(fmt::format("no column {} ({}); the columns are {}",
                     listed(value.columns, value.any ? "\" or \"" : "\" and \""), value.key,
                     listed(names, "\", \"")));
}

}  // namespace heed
