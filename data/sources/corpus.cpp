#include "data/sources/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <tuple>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "data/sources/binary_file.h"
#include "data/sources/idx.h"
#include "data/sources/matching.h"
#include "data/sources/synthetic.h"

namespace heed {
namespace {

bool names_files(const FilesOptions& files) {
  return !files.source.empty() || !files.target.empty() || !files.text.empty();
}

void make_lower(Split& split, InputKind input = InputKind::text) {
  if (input == InputKind::text)
    for (auto& line : split.source) line = lowercase(line);
  for (auto& line : split.target) line = lowercase(line);
  split.text = lowercase(split.text);
}

std::string listed(const std::vector<std::string>& paths) {
  std::string out;
  for (const auto& path : paths) out += (out.empty() ? "" : " + ") + shown_path(path);
  return out;
}

/// Whether a file is a .csv list of inputs, FILE,TARGET, which has no header.
bool is_listed(const std::string& path, const ReadOptions& options) {
  const ColumnOptions& columns = options.columns;
  return options.input != InputKind::text && options.format == FileFormat::automatic &&
         columns.source.empty() && columns.target.empty() &&
         format_of(path, options.format) == FileFormat::csv;
}

bool is_folder_of_classes(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  return options.input != InputKind::text && std::filesystem::is_directory(path, error);
}

bool is_table(const std::string& path, const ReadOptions& options) {
  return format_of(path, options.format) != FileFormat::lines;
}

RecordReader open_records(const std::string& path, const ReadOptions& options,
                          const std::vector<ColumnRole>& roles) {
  const bool paths = options.input != InputKind::text && is_table(path, options);
  return {path,
          {.format = format_of(path, options.format),
           .columns = options.columns,
           .listed = is_listed(path, options),
           .keeps_breaks = options.reads == Reads::text,
           .folder = paths ? std::filesystem::path(path).parent_path() : ""},
          roles};
}

/// Adds the values of a table, and their lines to `origins` unless it is null.
void add_records(const std::string& path, const ReadOptions& options,
                 const std::vector<ColumnRole>& roles,
                 const std::vector<std::vector<std::string>*>& into, Origins* origins = nullptr) {
  RecordReader reader = open_records(path, options, roles);
  std::vector<std::string> values;
  const std::size_t before = into.front()->size();
  if (origins != nullptr) origins->files.push_back({shown_path(path), before});
  while (reader.next(values)) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i]->push_back(std::move(values[i]));
    if (origins != nullptr) origins->files.back().lines.push_back(reader.line());
  }
  if (into.front()->size() == before)
    throw Error(Exit::bad_input, "{}: no record", shown_path(path));
}

void append(std::vector<std::string>&& lines, std::vector<std::string>& all) {
  std::ranges::move(lines, std::back_inserter(all));
}

/// Adds the files in the subfolders of a folder; each subfolder is a class. The classes alternate in
/// proportion to their sizes, so that a share of the end (data.valid_fraction) contains each of them.
void add_classes(const std::string& folder, Split& split) {
  struct Sample {
    double place;  // within its class, from 0 to 1
    std::string label, file;
  };
  std::vector<Sample> all;
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) throw cannot_read(folder, error.value(), true);
  for (const auto& entry : entries) {
    const std::string label = entry.path().filename().string();
    if (!entry.is_directory(error) || label.starts_with('.')) continue;
    const std::vector<std::string> files = files_under(entry.path());
    if (files.empty()) throw Error(Exit::bad_input, "{}: no file", shown_path(entry.path()));
    for (std::size_t i = 0; i < files.size(); ++i)
      all.push_back(
          {(static_cast<double>(i) + 0.5) / static_cast<double>(files.size()), label, files[i]});
  }
  if (all.empty())
    throw Error(Exit::bad_input, "{}: no subfolder; expected a folder for each class",
                shown_path(folder));
  std::ranges::sort(all, {}, [](const Sample& s) { return std::tie(s.place, s.label, s.file); });
  split.target_origins.files.push_back({shown_path(folder), split.target.size(), {}, true});
  for (Sample& sample : all) {
    split.source.push_back(std::move(sample.file));
    split.target.push_back(std::move(sample.label));
  }
}

/// Adds the lines of a source file or, if the sources are not text, the names of its inputs. With
/// `both`, also adds the targets.
void add_sources(const std::string& path, const ReadOptions& options, bool both, Split& split) {
  if (is_folder_of_classes(path, options)) return add_classes(path, split);
  if (is_table(path, options)) {
    if (!both) return add_records(path, options, {ColumnRole::source}, {&split.source});
    return add_records(path, options, {ColumnRole::source, ColumnRole::target},
                       {&split.source, &split.target}, &split.target_origins);
  }
  if (options.input == InputKind::text) return append(read_lines(path), split.source);
  if (path != "-" && IdxFile::is(path)) {
    const std::int64_t n = IdxFile::read(path).size();
    for (std::int64_t i = 0; i < n; ++i) split.source.push_back(IdxItem{path, i}.text());
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const std::string& name : read_lines(path)) split.source.push_back((folder / name).string());
}

void add_targets(const std::string& path, const ReadOptions& options, Split& split) {
  std::vector<std::string>& lines = split.target;
  Origins& origins = split.target_origins;
  if (is_table(path, options))
    return add_records(path, options, {ColumnRole::target}, {&lines}, &origins);
  origins.files.push_back({shown_path(path), lines.size()});
  if (options.input == InputKind::text || path == "-" || !IdxFile::is(path))
    return append(read_lines(path), lines);
  const IdxFile file = IdxFile::read(path);
  if (file.shape().size() != 1)
    throw Error(Exit::bad_input, "{}: expected an IDX file of labels, got one of shape {}",
                shown_path(path), fmt::join(file.shape(), " x "));
  for (std::int64_t i = 0; i < file.size(); ++i) lines.push_back(std::to_string(file[i].front()));
}

/// The name of the part that has the given prefix: "translate" for "translate: ".
std::string part_name(const std::string& prefix) {
  const std::size_t end = prefix.find_last_not_of(": ");
  return end == std::string::npos ? "(no prefix)" : prefix.substr(0, end + 1);
}

void require_equal_lines(std::size_t sources, const std::vector<std::string>& source_files,
                         std::size_t targets, const std::vector<std::string>& target_files) {
  if (sources == targets) return;
  throw Error(Exit::bad_input,
              "source and target differ in the number of lines: {} in {}, {} in {}", sources,
              listed(source_files), targets, listed(target_files));
}

Split read_pairs(const FilesOptions& files, const ReadOptions& options) {
  Split split;
  std::vector<std::size_t> counts;  // lines of each source file
  const bool both = files.target.empty();
  for (std::size_t i = 0; i < files.source.size(); ++i) {
    const std::size_t before = split.source.size();
    add_sources(files.source[i], options, both, split);
    counts.push_back(split.source.size() - before);
    if (options.prefixes.empty()) continue;
    split.parts.push_back({part_name(options.prefixes[i]), split.source.size() - before});
    for (std::size_t line = before; line < split.source.size(); ++line)
      split.source[line].insert(0, options.prefixes[i]);
  }
  const bool one_to_one = files.target.size() == files.source.size();
  for (std::size_t i = 0; i < files.target.size(); ++i) {
    const std::size_t before = split.target.size();
    add_targets(files.target[i], options, split);
    if (one_to_one && files.source.size() > 1)
      require_equal_lines(counts[i], {files.source[i]}, split.target.size() - before,
                          {files.target[i]});
  }
  if (split.source.empty()) throw Error(Exit::bad_input, listed(files.source) + ": empty file");
  if (split.target.empty()) throw Error(Exit::bad_input, listed(files.target) + ": empty file");
  if (!both)
    require_equal_lines(split.source.size(), files.source, split.target.size(), files.target);
  return split;
}

void cut_lines(std::vector<std::string>& train, std::vector<std::string>& valid,
               std::vector<std::string>& test, std::size_t train_end, std::size_t valid_end) {
  const auto move = [&](std::size_t from, std::size_t to, std::vector<std::string>& into) {
    if (from == to) return;
    into.assign(std::make_move_iterator(train.begin() + from),
                std::make_move_iterator(train.begin() + to));
  };
  move(train_end, valid_end, valid);
  move(valid_end, train.size(), test);
  train.resize(train_end);
}

/// The index of the first byte from `at` on that begins a character, or the size of the text.
std::size_t between_characters(const std::string& text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) ++at;
  return at;
}

void cut_fractions(Corpus& corpus, double valid, double test) {
  const bool lines = corpus.train.text.empty();
  const std::size_t n = lines ? corpus.train.source.size() : corpus.train.text.size();
  std::string& text = corpus.train.text;
  const auto upto = [&](double share) {  // 1e-9: a share of 0.9 may be 0.8999999999999999
    const double at = std::floor(static_cast<double>(n) * share + 1e-9);
    return between_characters(text, static_cast<std::size_t>(at));
  };
  const std::size_t train_end = upto(1.0 - valid - test),
                    valid_end = test > 0.0 ? upto(1.0 - test) : n;
  if (train_end == 0 || (valid > 0.0 && train_end == valid_end) || (test > 0.0 && valid_end == n)) {
    throw Error(Exit::bad_input,
                "data.train: too few {} ({}) for data.valid_fraction and data.test_fraction",
                lines ? "lines" : "bytes", n);
  }
  if (lines) {
    for (const auto side : {&Split::source, &Split::target}) {
      if (!(corpus.train.*side).empty())  // lines of text have no target
        cut_lines(corpus.train.*side, corpus.valid.*side, corpus.test.*side, train_end, valid_end);
    }
    corpus.valid.target_origins = corpus.test.target_origins = corpus.train.target_origins;
    corpus.valid.target_origins.omitted = train_end;
    corpus.test.target_origins.omitted = valid_end;
    return;
  }
  if (train_end < valid_end) corpus.valid.text = text.substr(train_end, valid_end - train_end);
  if (valid_end < text.size()) corpus.test.text = text.substr(valid_end);
  text.resize(train_end);
}

/// The config key or the option that lists the files of a side ("source", "target", "text").
std::string origin(const std::string& split, const char* side) {
  const bool key = split == "train" || split == "valid" || split == "test";
  return key ? fmt::format("data.{}.{}", split, side) : fmt::format("--{}", side);
}

struct NamedFiles {
  std::string split;
  const FilesOptions& files;
};

/// Throws MissingFiles if a file does not exist. A text with wildcards may match no file yet.
void require_files(const std::vector<NamedFiles>& splits) {
  std::vector<std::string> missing, lines;
  const auto check = [&](const std::vector<std::string>& paths, const std::string& named_by) {
    for (const std::string& path : paths) {
      std::error_code error;
      if (named_by.starts_with("data.")) refuse_named_pipe(path);
      if (path == "-" || exists(std::filesystem::status(path, error))) continue;
      if (error != std::errc::no_such_file_or_directory) continue;  // reading reports this error
      const bool relative = std::filesystem::path(path).is_relative();
      missing.push_back(path);
      lines.push_back(fmt::format(
          "{}: no such file ({}{})", shown_path(path), named_by,
          relative ? "; the path is relative to the folder in which heed was started" : ""));
    }
  };
  for (const auto& [split, files] : splits) {
    check(files.source, origin(split, "source"));
    check(files.target, origin(split, "target"));
    for (const std::string& name : files.text)
      if (matching_files(name) == std::vector{name}) check({name}, origin(split, "text"));
  }
  if (!missing.empty()) throw MissingFiles(fmt::format("{}", fmt::join(lines, "\n")), missing);
}

/// The files that `names` lists. A name with wildcards is replaced by the non-empty files that
/// match it; throws Error(bad_input) if there is none.
std::vector<std::string> text_files(const std::vector<std::string>& names,
                                    const std::string& split) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const std::vector<std::string> found = matching_files(name);
    if (found == std::vector{name}) {
      all.push_back(name);
      continue;
    }
    const std::size_t before = all.size();
    std::ranges::copy_if(found, std::back_inserter(all), [](const std::string& path) {
      std::error_code error;
      return std::filesystem::is_regular_file(path, error) &&
             std::filesystem::file_size(path, error) > 0;
    });
    if (all.size() == before)
      throw Error(Exit::bad_input, "{}: no non-empty file matches {}", origin(split, "text"),
                  shown_path(name));
  }
  return all;
}

/// Reads texts: lines (Reads::lines), or one text with a newline after each file and each record.
Split read_texts(const std::vector<std::string>& paths, const ReadOptions& options) {
  Split split;
  for (const std::string& path : paths) {
    if (options.reads == Reads::lines) {
      if (is_table(path, options))
        add_records(path, options, {ColumnRole::text}, {&split.source});
      else
        append(read_lines(path), split.source);
      continue;
    }
    if (!split.text.empty() && !split.text.ends_with('\n')) split.text += '\n';
    const std::size_t before = split.text.size();
    if (is_table(path, options)) {
      RecordReader reader = open_records(path, options, {ColumnRole::text});
      for (std::vector<std::string> values; reader.next(values);)
        split.text += values.front() + '\n';
    } else {
      split.text += read_text(path);
    }
    if (split.text.size() == before)
      throw Error(Exit::bad_input, shown_path(path) + ": empty file");
  }
  if (split.empty()) throw Error(Exit::bad_input, listed(paths) + ": empty file");
  return split;
}

}  // namespace

std::string Origins::of(std::int64_t sample, const std::string& what) const {
  const std::size_t at = omitted + static_cast<std::size_t>(sample);
  const auto next = std::ranges::upper_bound(files, at, {}, &File::first);
  if (next == files.begin() || std::prev(next)->name.empty())
    return fmt::format("{}: line {}", what, sample + 1);
  const auto& [name, first, lines, folder] = *std::prev(next);
  if (folder) return name;
  return lines.empty() ? fmt::format("{}:{}", name, at - first + 1)
                       : fmt::format("{}:{}", name, lines[at - first]);
}

ReadOptions read_options(const DataOptions& options, Reads reads) {
  return {reads,          options.input,  options.lowercase, options.mixture.prefixes,
          options.format, options.columns};
}

bool holds_both_sides(const std::string& path, const ReadOptions& options) {
  return is_table(path, options) || is_folder_of_classes(path, options);
}

RecordReader read_inputs(const std::string& path, const ReadOptions& options) {
  ReadOptions lines = options;
  if (lines.reads == Reads::text) lines.reads = Reads::lines;
  return open_records(path, lines,
                      {lines.reads == Reads::pairs ? ColumnRole::source : ColumnRole::text});
}

Split read_split(const FilesOptions& files, const ReadOptions& options, const std::string& name) {
  require_files({{name, files}});
  Split split;
  if (options.reads != Reads::pairs) {
    if (files.text.empty()) throw Error(Exit::usage, "data.{}.text: names no file", name);
    split = read_texts(text_files(files.text, name), options);
  } else {
    if (files.source.empty()) throw Error(Exit::usage, "data.{}.source: names no file", name);
    const auto both = [&](const std::string& path) { return holds_both_sides(path, options); };
    if (files.target.empty() && !std::ranges::all_of(files.source, both))
      throw Error(Exit::usage, "data.{}.target: names no file", name);
    for (const std::string& path : files.source) {
      if (!files.target.empty() &&
          (is_listed(path, options) || is_folder_of_classes(path, options)))
        throw Error(Exit::usage, "data.{}.target: {} already contains the targets", name,
                    shown_path(path));
    }
    if (!options.prefixes.empty() && options.prefixes.size() != files.source.size()) {
      throw Error(Exit::usage,
                  "data.mixture.prefixes: the number of prefixes is {}, but the number of "
                  "files in data.{}.source is {}",
                  options.prefixes.size(), name, files.source.size());
    }
    split = read_pairs(files, options);
  }
  if (options.lowercase) make_lower(split, options.input);
  return split;
}

Corpus read_corpus(const DataOptions& options, Reads reads, std::uint64_t seed) {
  if (options.synthetic.name != SyntheticKind::none) {
    if (reads != Reads::pairs)
      throw Error(Exit::usage,
                  "data.synthetic: generates pairs of lines, but this task reads text; "
                  "set task to seq2seq or tag, for example");
    if (options.lowercase && options.synthetic.symbols > 26) {
      throw Error(Exit::usage,
                  "data.lowercase: would merge symbols; data.synthetic.symbols must be <= 26");
    }
    Corpus corpus = synthetic_corpus(options.synthetic, seed, options.image, options.video);
    if (options.lowercase) {
      for (Split* split : {&corpus.train, &corpus.valid, &corpus.test})
        make_lower(*split, options.input);
    }
    return corpus;
  }
  require_files({{"train", options.train}, {"valid", options.valid}, {"test", options.test}});
  Corpus corpus;
  const ReadOptions as = read_options(options, reads);
  corpus.train = read_split(options.train, as, "train");
  const bool has_valid = names_files(options.valid), has_test = names_files(options.test);
  const double valid = has_valid ? 0.0 : options.valid_fraction;
  const double test = has_test ? 0.0 : options.test_fraction;
  if (valid != 0.0 || test != 0.0) cut_fractions(corpus, valid, test);
  if (has_valid) corpus.valid = read_split(options.valid, as, "valid");
  if (has_test) corpus.test = read_split(options.test, as, "test");
  return corpus;
}

}  // namespace heed
