#pragma once
/// From text to token ids and back.
///
/// Every kind has the same three special ids; optional further ones (TokenizerOptions::specials)
/// follow from 3 on, and then the pieces of text. Tokenizers never add specials: batches do.
/// Encoding and decoding are const and thread-safe.
///
/// In every kind, each newline in a text (lm) is a separate token, so that encoding a text line by
/// line, ends included, equals encoding it as a whole.
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

namespace heed {

class Tokenizer {
 public:
  static constexpr std::int32_t unk = 0;  ///< <unk>: text unseen in training
  static constexpr std::int32_t bos = 1;  ///< <s>
  static constexpr std::int32_t eos = 2;  ///< </s>

  virtual ~Tokenizer() = default;
  virtual TokenizerKind kind() const = 0;

  /// Number of ids, specials included.
  virtual std::int64_t size() const = 0;

  /// The text of one id; "<unk>", "<s>" and so on for the specials. A piece of kind `bytes` is one
  /// raw byte. Throws Error(failed) for an id outside [0, size()).
  virtual std::string piece(std::int32_t id) const = 0;

  /// The id of a special piece ("<unk>", "<s>", "</s>", "<mask>"), if this vocabulary has it.
  virtual std::optional<std::int32_t> special(std::string_view name) const = 0;

  /// The first id that is not a special piece.
  std::int32_t first_ordinary() const;

  /// Never yields a special except unk, whatever the text.
  virtual std::vector<std::int32_t> encode(std::string_view line) const = 0;

  /// As encode, but the names of special pieces in the line ("<mask>") become their ids. `prepare`,
  /// if given, changes the text between them first.
  std::vector<std::int32_t> encode_with_specials(
      std::string_view line, const std::function<std::string(std::string)>& prepare = {}) const;

  /// As decode, but special pieces from id 3 on are written by their names.
  std::string decode_with_specials(std::span<const std::int32_t> ids) const;

  /// A random segmentation of the line; the usual one for kinds that have no other.
  virtual std::vector<std::int32_t> sample(std::string_view line, const SegmentationOptions&,
                                           Random&) const {
    return encode(line);
  }

  /// The text of ids; specials are dropped, except that unk becomes " ⁇ " (sentencepiece), "<unk>"
  /// (words) or U+FFFD. For `bytes` it may be invalid UTF-8. Throws Error(failed) for an id out of
  /// range.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  /// Writes `<stem>.model` (sentencepiece's own format) or `<stem>.vocab` and returns its path.
  ///
  /// A `.vocab` is text: line n, from 0, holds the piece of id n; lines 0 to 2 are <unk>, <s>,
  /// </s>; further specials follow, each prefixed with \! (as "\!<mask>"). Escapes: \\ backslash,
  /// \n newline, \r return, \t tab, \s space, \xHH any other unprintable byte; a piece that looks
  /// like a special has its first character escaped. Throws Error(io).
  virtual std::filesystem::path save(const std::filesystem::path& stem) const = 0;

 protected:
  /// Throws unless 0 <= id < size().
  void check_id(std::int32_t id) const;
};

/// A larger file is refused unread. (250,000 pieces take 5 MB.)
inline constexpr std::uint64_t largest_tokenizer = std::uint64_t{64} << 20;  // bytes

/// Throws Error(usage) if a learned tokenizer has more bytes, because it could not be loaded again.
void refuse_large_tokenizer(std::uint64_t bytes);

/// Reads what save() wrote, or any sentencepiece model with the ids above (sentencepiece's
/// defaults). Throws Error(bad_input), naming the file.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file, TokenizerKind kind);

/// Learns a vocabulary from lines: sentencepiece's pieces (unigram model or byte-pair encoding) or
/// the words, by descending frequency, up to vocab_size; all characters; or just the 256 bytes.
/// Lines that hold \n mark a continuous text: sentencepiece then changes nothing in it (no NFKC,
/// all spaces kept). The same lines always give the same file, byte for byte; the seed matters only
/// if the corpus is so large that sentencepiece learns from a sample of it.
/// Throws Error(usage) if vocab_size is too small for the characters or a special is not a name
/// like "<mask>", Error(bad_input) if the lines are empty.
std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options,
                                           std::span<const std::string> lines, std::uint64_t seed);

/// The tokenizers of a model; the same object if they are shared, and for lm.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source, target;

  bool shared() const { return source == target; }

  /// Into a run folder: `tokenizer.*`, or `source.*` and `target.*`. Returns the files.
  std::vector<std::filesystem::path> save(const std::filesystem::path& folder) const;
  /// `target`: the kind of the target's tokenizer, if it is another one.
  static Tokenizers load(const std::filesystem::path& folder, TokenizerKind kind,
                         std::optional<TokenizerKind> target = std::nullopt);
};

/// What is wrong with names of special pieces; empty if all are distinct ASCII names like "<mask>".
std::string wrong_specials(std::span<const std::string> names);

/// Loads the files that `options` names, or learns from the training split. A text counts as
/// shared. `target` is the kind of the target's tokenizer, if it is another one. `on_message` receives a
/// line when sentencepiece begins to learn, which takes seconds, and another if its vocabulary is
/// smaller than requested. Throws as above, and Error(usage) if a loaded vocabulary lacks one of
/// `options.specials`.
Tokenizers make_tokenizers(const TokenizerOptions& options, const Split& train, std::uint64_t seed,
                           const std::function<void(const std::string&)>& on_message = {},
                           std::optional<TokenizerKind> target = std::nullopt);

}  // namespace heed
