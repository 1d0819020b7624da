/// Training texts: letters for the options, a newline, then the source and, after a line "====",
/// the target. The letters:
///   t  a continuous text; the target is ignored    l  lowercase
///   s  the source is compressed with gzip first    v  a tenth is split off for validation
///   c  b  j  n  the source is a file in CSV, TSV, JSON lines or CoNLL; the target is ignored
#include <nlohmann/json.hpp>

#include "autograd/io/formats/gzip.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "data/batches/dataset.h"
#include "data/sources/corpus.h"
#include "tests/fuzz/target.h"

namespace heed::fuzz {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::uint64_t max_unpacked = std::uint64_t{1} << 26;

/// If the strict unpacker accepts a file, the reader of texts must return the same content.
void require_same_unpacked(const std::string& packed, const std::string& path) {
  std::string content;
  try {
    content = unpack_gzip(packed, max_unpacked, "x.gz");
  } catch (const Error& error) {
    return require_refusal(error, Exit::bad_input, "x.gz: ");
  }
  must_work([&] {
    const bool marked = content.starts_with(byte_order_mark);
    require(read_file(path) == content.substr(marked ? byte_order_mark.size() : 0),
            "both readers of gzip agree");
    require(unpack_gzip(pack_gzip(content), max_unpacked, "y.gz") == content,
            "packed data are unpacked to the same content");
  });
}

void require_sound(const std::vector<std::string>& lines, const Tokenizer& tokenizer) {
  for (const std::string& line : lines) {
    require(invalid_utf8(line) == std::string::npos, "a line is valid UTF-8");
    require(line.find('\n') == std::string::npos, "a line contains no newline");
    require(line.find('\0') == std::string::npos, "a line contains no NUL");
    const std::vector<std::int32_t> ids = tokenizer.encode(line);
    for (const std::int32_t id : ids)
      require(id > Tokenizer::eos, "every character is in the vocabulary");
    require(tokenizer.decode(ids) == line, "decoding the ids of a line returns the line");
  }
}

void require_sound(const Split& split) {
  if (split.source.empty()) return;
  require(split.source.size() == split.target.size(),
          "source and target have the same number of lines");
  const TokenizerOptions options{.kind = TokenizerKind::characters};
  Tokenizers tokenizers;
  try {
    tokenizers = make_tokenizers(options, split, 1);
  } catch (const Error& error) {  // if all lines are empty
    return require_refusal(error, Exit::bad_input, "tokenizer: ");
  }
  require_sound(split.source, *tokenizers.source);
  require_sound(split.target, *tokenizers.target);
  const Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, {}, 1);
  require(data.size() == static_cast<std::int64_t>(split.source.size()), "each line is a sample");
}

/// The pairs as a table in this format.
std::string table_of(const Split& split, FileFormat format) {
  const auto quoted = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
      text.insert(at, 1, '"');
    return '"' + text + '"';
  };
  std::string table = format == FileFormat::csv   ? "target,source\n"
                      : format == FileFormat::tsv ? "target\tsource\n"
                                                  : "";
  for (std::size_t i = 0; i < split.source.size(); ++i) {
    const std::string &source = split.source[i], &target = split.target[i];
    table += format == FileFormat::csv ? quoted(target) + "," + quoted(source)
             : format == FileFormat::tsv
                 ? target + "\t" + source
                 : nlohmann::json{{"source", source}, {"target", target}}.dump();
    table += '\n';
  }
  return table;
}

/// Pairs that a table contains survive in a table of each format.
void require_same_tables(const Split& split) {
  for (const FileFormat format : {FileFormat::csv, FileFormat::tsv, FileFormat::jsonl}) {
    const std::string path = put("y", table_of(split, format)).string();
    const Split again = read_split({.source = {path}}, {.format = format}, "train");
    require(again.source == split.source && again.target == split.target,
            "a table contains the pairs with which it was written");
  }
}

FileFormat format_of_letters(std::string_view letters) {
  for (const auto& [letter, format] :
       {std::pair('c', FileFormat::csv), std::pair('b', FileFormat::tsv),
        std::pair('j', FileFormat::jsonl), std::pair('n', FileFormat::conll)})
    if (letters.find(letter) != std::string_view::npos) return format;
  return FileFormat::automatic;
}

}  // namespace

void target(std::string_view input) {
  Bytes bytes(input);
  const std::string_view letters = bytes.until("\n");
  const auto requests = [&](char letter) { return letters.find(letter) != std::string_view::npos; };
  std::string source(bytes.until("\n====\n"));
  if (requests('s')) source = pack_gzip(source);
  DataOptions options{.valid_fraction = requests('v') ? 0.1 : 0.0,
                      .format = format_of_letters(letters),
                      .lowercase = requests('l')};
  const bool table = options.format != FileFormat::automatic;
  const std::string source_path = put("x.src", source).string();
  if (is_gzip(source)) require_same_unpacked(source, source_path);
  if (requests('t')) {
    options.train.text = {source_path};
  } else {
    options.train.source = {source_path};
    if (!table) options.train.target = {put("x.tgt", bytes.rest()).string()};
  }
  Corpus corpus;
  try {
    corpus = read_corpus(options, requests('t') ? Reads::text : Reads::pairs, 1);
  } catch (const Error& error) {
    // Errors about a key, or about the number of lines, do not begin with a path.
    const bool of_data = std::string_view(error.what()).starts_with("data.");
    const bool of_both = std::string_view(error.what()).starts_with("source and target differ");
    require_refusal(error, Exit::bad_input, of_data || of_both ? "" : scratch().string());
    throw;
  }
  require(!corpus.train.empty(), "the training data are not empty");
  require(corpus.valid.empty() != requests('v'), "validation data exist if requested");
  must_work([&] {
    require_sound(corpus.train);
    if (table && !requests('t')) require_same_tables(corpus.train);
  });
}

}  // namespace heed::fuzz
