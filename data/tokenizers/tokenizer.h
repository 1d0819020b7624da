#pragma once
/// Conversion of text to token ids and back.
///
/// The vocabularies that heed makes have the special ids 0 to 2. The ids of optional further specials
/// (TokenizerOptions::specials) begin at 3 and are followed by those of the pieces of text. Those of
/// other programs may have other special ids (special_ids).
/// encode() adds neither <s> nor </s>; datasets and batches do. Encoding and decoding are const and
/// thread-safe.
///
/// Each newline in a continuous text is a separate token, so encoding a text line by line, newlines
/// included, equals encoding it as a whole. (Tokenizers of other programs: separates_lines.)
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/random.h"
#include "data/options.h"
#include "data/sources/corpus.h"
#include "data/tokenizers/special_ids.h"

namespace heed {

class Tokenizer {
 public:
  // The special ids of the vocabularies that heed makes.
  static constexpr std::int32_t unk = 0, bos = 1, eos = 2;

  virtual ~Tokenizer() = default;
  virtual TokenizerKind kind() const = 0;

  /// The number of ids, specials included.
  virtual std::int64_t size() const = 0;

  /// The text of one id; "<unk>", "<s>" and so on for the specials. A piece of kind `bytes` is one
  /// raw byte. Throws Error(failed) for an id outside [0, size()).
  virtual std::string piece(std::int32_t id) const = 0;

  /// The id of a special piece ("<unk>", "<s>", "</s>", "<mask>"), if the vocabulary contains it.
  virtual std::optional<std::int32_t> special(std::string_view name) const = 0;

  /// The ids of the special pieces that sequences of this vocabulary contain.
  virtual SpecialIds special_ids() const { return {}; }

  /// The id that precedes every text which a language model continues or scores.
  virtual std::optional<std::int32_t> text_start() const { return std::nullopt; }

  /// The id after the first special pieces, which is that of the first piece of text.
  virtual std::int32_t first_ordinary() const;

  /// Whether each newline is a separate token. Otherwise tokens may contain several newlines, but
  /// none that is between two characters that are not spaces.
  virtual bool separates_lines() const { return true; }

  /// The ids of a text. <unk> is the only special that they may contain.
  virtual std::vector<std::int32_t> encode(std::string_view line) const = 0;

  /// Like encode, but the names of special pieces from id 3 on ("<mask>") in the line become their
  /// ids. `prepare`, if not empty, first converts the text between them.
  std::vector<std::int32_t> encode_with_specials(
      std::string_view line, const std::function<std::string(std::string)>& prepare = {}) const;

  /// Like decode, but special pieces from id 3 on become their names, separated from the text by
  /// spaces.
  std::string decode_with_specials(std::span<const std::int32_t> ids) const;

  /// A random segmentation of the line or, for kinds that do not support this, its deterministic
  /// segmentation.
  virtual std::vector<std::int32_t> sample(std::string_view line, const SegmentationOptions&,
                                           Random&) const {
    return encode(line);
  }

  /// The text of ids; specials are dropped, except that unk becomes " ⁇ " (sentencepiece), "<unk>"
  /// (words) or U+FFFD (characters, bytes). The text of `bytes` may be invalid UTF-8. Throws
  /// Error(failed) for an id outside [0, size()).
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  /// Writes `<stem>.model` (the format of SentencePiece), `<stem>.imported` (data/tokenizers/imported.h)
  /// or `<stem>.vocab` and returns its path.
  ///
  /// A `.vocab` file is text: line n, from 0, contains the piece of id n. Lines 0 to 2 are <unk>,
  /// <s>, </s>. Further specials follow, each prefixed with \! ("\!<mask>"). Escapes: \\ backslash,
  /// \n newline, \r carriage return, \t tab, \s space, \xHH a byte that is another control
  /// character or not valid UTF-8. In a piece of text that equals <unk>, <s> or </s>, the first
  /// character is also written as \xHH. Throws Error(io) if the file cannot be written.
  std::filesystem::path save(const std::filesystem::path& stem) const;
  virtual std::string content() const = 0;  ///< the bytes of that file

 protected:
  /// Throws Error(failed) for an id outside [0, size()).
  void check_id(std::int32_t id) const;
};

/// The name of a tokenizer's file: STEM.model (sentencepiece), STEM.imported or STEM.vocab.
std::string tokenizer_file(const std::string& stem, TokenizerKind kind);

/// The maximum size of a tokenizer file. (The file of a vocabulary of 250,000 pieces has 5 MB.)
inline constexpr std::uint64_t largest_tokenizer = std::uint64_t{64} << 20;  // bytes

/// Throws Error(usage) for a learned tokenizer of more than largest_tokenizer bytes.
void refuse_large_tokenizer(std::uint64_t bytes);

/// Reads a file that save() wrote, or any SentencePiece model with the special ids 0 to 2
/// (SentencePiece's defaults). Throws Error(bad_input), naming the file, if it cannot be read or is
/// malformed.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file, TokenizerKind kind);

/// A tokenizer of kind characters, bytes or words with the given special pieces from id 3 on and the
/// given pieces of text. Throws Error(bad_input) if load_tokenizer would refuse its file.
std::unique_ptr<Tokenizer> make_vocabulary(TokenizerKind kind,
                                           const std::vector<std::string>& specials,
                                           const std::vector<std::string>& pieces,
                                           const std::string& from);
/// A tokenizer of kind sentencepiece from the bytes of a model. Throws Error(bad_input), which begins
/// with `from`, if load_tokenizer would refuse its file.
std::unique_ptr<Tokenizer> make_sentencepiece(std::string proto, const std::string& from);

/// Learns a vocabulary from lines: SentencePiece's pieces (unigram model or byte-pair encoding) or
/// the most frequent words, with at most vocab_size ids; all characters; or the 256 bytes. If a
/// line contains \n, the lines are a continuous text, which SentencePiece does not normalise (no
/// NFKC, all spaces kept). The same lines yield the same file, byte for byte; the seed has an
/// effect only if the corpus is so large that SentencePiece learns from a sample of it. Throws
/// Error(usage) if vocab_size is too small for the special pieces and (sentencepiece) characters,
/// the vocabulary has more than largest_tokenizer bytes, or wrong_specials() finds an error;
/// Error(bad_input) if the lines contain no text.
std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options,
                                           std::span<const std::string> lines, std::uint64_t seed);

/// The tokenizers of a model. Source and target are usually the same object if the vocabulary is shared,
/// as it always is in tasks that read text instead of pairs of lines.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source, target;
  bool same_ids = false;  ///< both cut texts differently into pieces of one vocabulary (Marian)

  bool shared() const { return source == target || same_ids; }

  /// Writes `tokenizer.*`, or `source.*` and `target.*`, into a run folder. Returns the paths.
  std::vector<std::filesystem::path> save(const std::filesystem::path& folder) const;
  /// Loads the tokenizers of a run folder. `target` is the kind of the target's tokenizer (nullopt:
  /// `kind`).
  static Tokenizers load(const std::filesystem::path& folder, TokenizerKind kind,
                         std::optional<TokenizerKind> target = std::nullopt);
};

/// The error in the names of special pieces; empty if all are distinct ASCII names like "<mask>".
std::string wrong_specials(std::span<const std::string> names);

/// Loads the files that `options` names, or learns vocabularies from the training split. A
/// continuous text has a single tokenizer. `target` is the kind of the target's tokenizer (nullopt:
/// options.kind). `on_message` receives a line when SentencePiece begins to learn, which can take
/// minutes, and a line if its vocabulary is smaller than requested. Throws as train_tokenizer and
/// load_tokenizer do, and Error(usage) if a loaded vocabulary lacks one of `options.specials`.
Tokenizers make_tokenizers(const TokenizerOptions& options, Split train, std::uint64_t seed,
                           const std::function<void(const std::string&)>& on_message = {},
                           std::optional<TokenizerKind> target = std::nullopt);

}  // namespace heed
