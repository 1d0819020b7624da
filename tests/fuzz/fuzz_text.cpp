/// Training texts: letters for the options, a newline, then the source and, after a line "====",
/// the target. The letters:
///   t  a continuous text; the target is ignored    l  lowercase
///   s  the source is compressed with gzip first    v  a tenth is split off for validation
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

}  // namespace

void target(std::string_view input) {
  Bytes bytes(input);
  const std::string_view letters = bytes.until("\n");
  const auto requests = [&](char letter) { return letters.find(letter) != std::string_view::npos; };
  std::string source(bytes.until("\n====\n"));
  if (requests('s')) source = pack_gzip(source);
  DataOptions options{.valid_fraction = requests('v') ? 0.1 : 0.0, .lowercase = requests('l')};
  const std::string source_path = put("x.src", source).string();
  if (is_gzip(source)) require_same_unpacked(source, source_path);
  if (requests('t')) {
    options.train.text = {source_path};
  } else {
    options.train.source = {source_path};
    options.train.target = {put("x.tgt", bytes.rest()).string()};
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
  must_work([&] { require_sound(corpus.train); });
}

}  // namespace heed::fuzz
