#include "data/sources/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "autograd/base/error.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
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

/// Adds sources that are not text: a line for each item of an IDX file, or for each path in a list
/// of files, which is relative to the folder of the list. A .csv file also contains the targets.
void add_listed(const std::string& path, Split& split) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  if (path != "-" && IdxFile::is(path)) {
    const std::int64_t n = IdxFile::read(path).size();
    for (std::int64_t i = 0; i < n; ++i) split.source.push_back(IdxItem{path, i}.text());
    return;
  }
  const bool both = holds_both_sides(path);
  std::int64_t number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    const std::size_t comma = line.find(',');
    if (both && comma == std::string::npos) {
      throw Error(Exit::bad_input, "{}: line {} has no comma: FILE,TARGET is expected",
                  shown_path(path), number);
    }
    split.source.push_back(file(line.substr(0, both ? comma : std::string::npos)));
    if (both) split.target.push_back(line.substr(comma + 1));
  }
}

void add_targets(const std::string& path, std::vector<std::string>& lines) {
  if (path == "-" || !IdxFile::is(path)) {
    const std::vector<std::string> targets = read_lines(path);
    lines.insert(lines.end(), targets.begin(), targets.end());
    return;
  }
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

/// Adds the lines of each source file, with the prefix of the file before each line. Each file is a
/// part.
void add_prefixed(const std::vector<std::string>& paths, const std::vector<std::string>& prefixes,
                  Split& split) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::vector<std::string> lines = read_lines(paths[i]);
    split.parts.push_back({part_name(prefixes[i]), lines.size()});
    for (const std::string& line : lines) split.source.push_back(prefixes[i] + line);
  }
}

Split read_pairs(const FilesOptions& files, const ReadOptions& options) {
  Split split;
  if (!options.prefixes.empty()) {
    add_prefixed(files.source, options.prefixes, split);
    split.target = read_lines(files.target);
  } else if (options.input == InputKind::text) {
    split.source = read_lines(files.source);
    split.target = read_lines(files.target);
  } else {
    for (const std::string& path : files.source) add_listed(path, split);
    for (const std::string& path : files.target) add_targets(path, split.target);
  }
  if (split.source.empty()) throw Error(Exit::bad_input, listed(files.source) + ": empty file");
  if (split.target.empty()) throw Error(Exit::bad_input, listed(files.target) + ": empty file");
  if (split.source.size() != split.target.size()) {
    throw Error(
        Exit::bad_input, "source and target differ in the number of lines: {} in {}, {} in {}",
        split.source.size(), listed(files.source), split.target.size(), listed(files.target));
  }
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
      return std::filesystem::file_size(path, error) > 0;
    });
    if (all.size() == before)
      throw Error(Exit::bad_input, "{}: no non-empty file matches {}", origin(split, "text"),
                  shown_path(name));
  }
  return all;
}

}  // namespace

bool holds_both_sides(const std::string& path) { return path.ends_with(".csv"); }

Split read_split(const FilesOptions& files, const ReadOptions& options, const std::string& name) {
  const Reads reads = options.reads;
  require_files({{name, files}});
  const std::vector<std::string> texts = text_files(files.text, name);
  Split split;
  if (reads != Reads::pairs && files.text.empty())
    throw Error(Exit::usage, "data.{}.text: names no file", name);
  if (reads == Reads::lines) {
    split.source = read_lines(texts);
    if (split.source.empty()) throw Error(Exit::bad_input, listed(texts) + ": empty file");
  } else if (reads == Reads::text) {
    for (const auto& path : texts) {
      const std::string text = read_text(path);
      if (text.empty()) throw Error(Exit::bad_input, shown_path(path) + ": empty file");
      if (!split.text.empty() && !split.text.ends_with('\n')) split.text += '\n';
      split.text += text;
    }
  } else {
    if (files.source.empty()) throw Error(Exit::usage, "data.{}.source: names no file", name);
    const bool both =
        options.input != InputKind::text && std::ranges::all_of(files.source, holds_both_sides);
    if (files.target.empty() && !both)
      throw Error(Exit::usage, "data.{}.target: names no file", name);
    if (!files.target.empty() && both) {
      throw Error(Exit::usage,
                  "data.{}.target: the .csv files of data.{}.source already contain the targets",
                  name, name);
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
  const ReadOptions read_options{reads, options.input, options.lowercase, options.mixture.prefixes};
  corpus.train = read_split(options.train, read_options, "train");
  const bool has_valid = names_files(options.valid), has_test = names_files(options.test);
  const double valid = has_valid ? 0.0 : options.valid_fraction;
  const double test = has_test ? 0.0 : options.test_fraction;
  if (valid != 0.0 || test != 0.0) cut_fractions(corpus, valid, test);
  if (has_valid) corpus.valid = read_split(options.valid, read_options, "valid");
  if (has_test) corpus.test = read_split(options.test, read_options, "test");
  return corpus;
}

}  // namespace heed
