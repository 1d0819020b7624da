/// Subword tokenizer based on the SentencePiece library of Kudo and Richardson (EMNLP 2018): the
/// unigram language model of Kudo, "Subword regularization" (ACL 2018), or byte-pair encoding after
/// Sennrich, Haddow and Birch, "Neural machine translation of rare words" (ACL 2016).
#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>

#include "autograd/base/error.h"
#include "autograd/base/random.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "data/tokenizers/piece_model.h"
#include "data/tokenizers/vocabulary.h"

namespace heed {
namespace {

/// The maximum number of lines for training; a larger corpus is sampled, because more lines would
/// only lengthen the training.
constexpr std::size_t learn_from = 2'000'000;

/// The maximum length of a line for training, in bytes, as in SentencePiece. On more than about ten
/// thousand bytes without a space, its trainer runs for minutes or, if a probability underflows,
/// terminates the process.
constexpr std::size_t max_learnt_bytes = 4192;
constexpr std::size_t max_part_bytes = 8192;      // maximum size of a text for Encode, in bytes
constexpr std::string_view word_mark = "\u2581";  // represents a space in normalised text

void check(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw Error(Exit::failed, "sentencepiece: {}", status.message());
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// Error messages begin with `from`, the name of the model.
  SentencePieceTokenizer(std::string proto, const std::string& from) : proto_(std::move(proto)) {
    const auto refuse = [&](const std::string& why) {
      throw Error(Exit::bad_input, "{}: {}", from, why);
    };
    if (const std::string flaw = flaw_in_piece_model(proto_); !flaw.empty()) refuse(flaw);
    const auto status = processor_.LoadFromSerializedProto(proto_);
    if (!status.ok()) refuse(fmt::format("not a sentencepiece model ({})", status.message()));
    special_ = {processor_.unk_id(), processor_.bos_id(), processor_.eos_id()};
    size_ = processor_.GetPieceSize();
    if (const auto use = read_piece_use(proto_)) {
      starts_text_ = use->starts_text;
      looks_up_ = use->ids > 0;
      if (use->ids > 0 && std::cmp_less(use->ids, size_))
        size_ = static_cast<std::int32_t>(use->ids);
      if (special_.unk < 0 || std::max({special_.unk, special_.bos, special_.eos}) >= size_ ||
          (starts_text_ && special_.bos < 0))
        refuse(fmt::format("special ids are <unk> {}, <s> {}, </s> {}, but the ids are 0 to {}",
                           special_.unk, special_.bos, special_.eos, size_ - 1));
    } else if (special_ != SpecialIds{}) {
      refuse(
          fmt::format("special ids are <unk> {}, <s> {}, </s> {}; they must be 0, 1, 2 "
                      "(train with --unk_id=0 --bos_id=1 --eos_id=2)",
                      special_.unk, special_.bos, special_.eos));
    }
    while (ordinary_ < size_ && is_special(ordinary_)) ++ordinary_;
    std::vector<std::vector<int>> nbest;
    // Only unigram models support n-best search.
    is_bpe_ = !processor_.NBestEncode("a", 2, &nbest).ok();
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      const std::string& text = processor_.IdToPiece(id);
      if (invalid_utf8(text) != std::string::npos) refuse(fmt::format("piece {} is not UTF-8", id));
      if (!std::isfinite(processor_.GetScore(id)))
        refuse(fmt::format("piece {} (\"{}\") has a score that is not finite", id, text));
    }
  }

  TokenizerKind kind() const override { return TokenizerKind::sentencepiece; }
  std::int64_t size() const override { return size_; }
  SpecialIds special_ids() const override { return special_; }
  std::optional<std::int32_t> text_start() const override {
    return starts_text_ ? std::optional(special_.bos) : std::nullopt;
  }
  std::int32_t first_ordinary() const override { return ordinary_; }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return processor_.IdToPiece(id);
  }
  std::optional<std::int32_t> special(std::string_view name) const override {
    const int id = processor_.PieceToId({name.data(), name.size()});
    const bool known = id < size_ && (processor_.IsControl(id) || name == "<unk>");
    return known ? std::optional<std::int32_t>(id) : std::nullopt;
  }

  std::vector<std::int32_t> encode(std::string_view line) const override {
    std::vector<int> all;
    do {
      const std::string_view part = line.substr(0, part_length(line));
      line.remove_prefix(part.size());
      const std::vector<int> ids = ids_of({part.data(), part.size()});
      all.insert(all.end(), ids.begin(), ids.end());
    } while (!line.empty());
    return all;
  }

  std::vector<std::int32_t> sample(std::string_view line, const SegmentationOptions& options,
                                   Random& random) const override {
    if (line.size() > max_part_bytes) return encode(line);  // sampling would be too slow
    std::vector<std::int32_t> ids =
        is_bpe_ ? merged(line, options.alpha, random) : one_of_nbest(line, options, random);
    std::ranges::replace_if(
        ids, [&](std::int32_t id) { return id >= size_; }, special_.unk);
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::vector<int> plain;
    plain.reserve(ids.size());
    for (const std::int32_t id : ids) {
      check_id(id);
      if (!processor_.IsControl(id)) plain.push_back(id);
    }
    std::string text;
    check(processor_.Decode(plain, &text));
    return text;
  }

  std::string content() const override { return proto_; }

 private:
  /// The length of the first part of a line. The library's run time is quadratic in the length, so
  /// a long line is cut before a space, where pieces end, or, if it has no space within
  /// max_part_bytes, between two characters.
  static std::size_t part_length(std::string_view line) {
    if (line.size() <= max_part_bytes) return line.size();
    const std::size_t space = line.rfind(' ', max_part_bytes);
    if (space != std::string_view::npos && space > 0) return space;
    std::size_t end = max_part_bytes;
    while (end > 1 && (static_cast<unsigned char>(line[end]) & 0xC0u) == 0x80u) --end;
    return end;
  }

  /// One of the most probable segmentations, with probability proportional to p^alpha (Kudo 2018).
  std::vector<std::int32_t> one_of_nbest(std::string_view line, const SegmentationOptions& options,
                                         Random& random) const {
    std::vector<std::vector<int>> nbest;
    check(processor_.NBestEncode({line.data(), line.size()}, static_cast<int>(options.nbest),
                                 &nbest));
    if (nbest.empty()) return {};
    std::vector<double> weights;
    double total = 0, best = 0;
    for (const std::vector<int>& ids : nbest) {
      double log_p = 0;
      for (const int id : ids) log_p += processor_.GetScore(id);
      if (weights.empty()) best = log_p;
      weights.push_back(std::exp(options.alpha * (log_p - best)));
      total += weights.back();
    }
    double u = total * random.uniform();
    std::size_t chosen = 0;
    while (chosen + 1 < weights.size() && (u -= weights[chosen]) >= 0) ++chosen;
    return {nbest[chosen].begin(), nbest[chosen].end()};
  }

  /// Byte-pair encoding that drops each possible merge of a word from each merge step with
  /// probability `dropout`. A word is complete after the first step in which no merge remains.
  /// Source: Provilkov, Emelianenko and Voita, "BPE-Dropout", 2020, algorithm 1.
  std::vector<std::int32_t> merged(std::string_view line, double dropout, Random& random) const {
    std::vector<std::string> usual;
    check(processor_.Encode({line.data(), line.size()}, &usual));
    std::string text;  // normalised
    for (const std::string& piece : usual) text += piece;
    std::vector<std::int32_t> ids;
    for (std::size_t begin = 0; begin < text.size();) {  // a word ends before the next word_mark
      const std::size_t end = std::min(text.find(word_mark, begin + 1), text.size());
      for (const std::int32_t id :
           merged_word(std::string_view(text).substr(begin, end - begin), dropout, random))
        if (id != special_.unk || ids.empty() || ids.back() != special_.unk)
          ids.push_back(id);  // as in the library, a run of <unk> becomes one
      begin = end;
    }
    return ids;
  }

  std::vector<std::int32_t> merged_word(std::string_view word, double dropout,
                                        Random& random) const {
    std::vector<std::string_view> symbols;
    for (std::size_t at = 0; at < word.size(); at += symbols.back().size())
      symbols.push_back(word.substr(at, std::max<std::size_t>(utf8_length(word, at), 1)));
    for (bool merging = true; merging;) {
      merging = false;
      std::size_t best = 0;
      float best_score = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const int id =
            processor_.PieceToId({symbols[i].data(), symbols[i].size() + symbols[i + 1].size()});
        if (id == special_.unk || processor_.IsControl(id) || random.uniform() < dropout) continue;
        const float score = processor_.GetScore(id);
        if (!merging || score > best_score) {
          merging = true;
          best = i;
          best_score = score;
        }
      }
      if (!merging) break;
      symbols[best] = {symbols[best].data(), symbols[best].size() + symbols[best + 1].size()};
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<std::int32_t> ids;
    ids.reserve(symbols.size());
    for (const std::string_view symbol : symbols)
      ids.push_back(processor_.PieceToId({symbol.data(), symbol.size()}));
    return ids;
  }

  /// Marian's vocabulary contains texts that the model does not know, and lacks some of the model's
  /// pieces. Each piece of a text is therefore looked up by its text.
  std::vector<int> ids_of(absl::string_view part) const {
    std::vector<int> ids;
    if (!looks_up_) {
      check(processor_.Encode(part, &ids));
      return ids;
    }
    std::vector<std::string> pieces;
    check(processor_.Encode(part, &pieces));
    for (const std::string& piece : pieces) {
      const int id = processor_.PieceToId(piece);
      ids.push_back(id < size_ ? id : special_.unk);
    }
    return ids;
  }
  bool is_special(int id) const { return processor_.IsControl(id) || processor_.IsUnknown(id); }

  std::string proto_;  // the file, which save() copies byte for byte
  sentencepiece::SentencePieceProcessor processor_;
  SpecialIds special_;
  std::int32_t size_ = 0, ordinary_ = 0;
  bool starts_text_ = false, looks_up_ = false;
  bool is_bpe_ = false;  // false: unigram model
};

/// Passes lines to the trainer.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::vector<const std::string*> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return *lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<const std::string*> lines_;
  std::size_t at_ = 0;
};

/// The lines, with each long line replaced by its parts, which are cut at spaces and stored in
/// `parts`. Overlong words are skipped.
std::vector<const std::string*> shorter(const std::vector<const std::string*>& lines,
                                        std::deque<std::string>& parts) {
  std::vector<const std::string*> all;
  for (const std::string* line : lines) {
    if (line->size() <= max_learnt_bytes) {
      all.push_back(line);
      continue;
    }
    for (std::size_t begin = 0; begin < line->size();) {
      std::size_t end = line->size();
      if (end - begin > max_learnt_bytes) {
        const std::size_t space = line->rfind(' ', begin + max_learnt_bytes);
        end = space != std::string::npos && space > begin ? space : line->find(' ', begin + 1);
        end = std::min(end, line->size());
      }
      if (end - begin <= max_learnt_bytes) {
        parts.push_back(line->substr(begin, end - begin));
        all.push_back(&parts.back());
      }
      begin = end;  // the space belongs to the following part
    }
  }
  return all;
}

using Arguments = std::unordered_map<std::string, std::string>;

sentencepiece::util::Status train(const Arguments& arguments,
                                  const std::vector<const std::string*>& lines,
                                  std::string& proto) {
  Lines iterator(lines);
  return sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &proto);
}

/// The characters of a line that the trainer uses: it removes specials and white space, and skips
/// lines that contain its mark for unknown characters.
std::string without_marks(std::string line, std::vector<std::string> specials) {
  if (line.find("\u2585") != std::string::npos) return "";
  specials.insert(specials.end(), {"<unk>", "<s>", "</s>", " ", "\t", "\r", "\n"});
  for (const std::string_view mark : specials) {
    for (std::size_t at = 0; (at = line.find(mark, at)) != std::string::npos;)
      line.erase(at, mark.size());
  }
  return line;
}

/// Whether any line is non-empty after normalisation. The trainer terminates the process if all
/// lines are empty, so the lines are first normalised by a model trained on one letter.
bool teach_anything(const std::vector<const std::string*>& lines, Arguments arguments,
                    const std::vector<std::string>& specials) {
  arguments["model_type"] = "bpe";
  arguments["vocab_size"] = std::to_string(100 + specials.size());
  arguments["byte_fallback"] = "false";
  const std::string letter = "a";
  std::string proto;
  check(train(arguments, {&letter}, proto));
  sentencepiece::SentencePieceProcessor processor;
  check(processor.LoadFromSerializedProto(proto));
  return std::any_of(lines.begin(), lines.end(), [&](const std::string* line) {
    std::vector<int> ids;
    check(processor.Encode(without_marks(*line, specials), &ids));
    return !ids.empty();
  });
}

/// The vocabulary size that an error message reports as required: 103 for "... Vocabulary size is
/// smaller than required_chars. 50 vs 103. ...", 0 for any other message.
std::int64_t needed_size(std::string_view message) {
  const auto at = message.find("required_chars. ");
  if (at == std::string_view::npos) return 0;
  const std::string_view number = message.substr(message.find("vs ", at) + 3);
  std::int64_t needed = 0;
  std::from_chars(number.data(), number.data() + number.size(), needed);
  return needed;
}

}  // namespace

std::vector<const std::string*> sample_lines(std::span<const std::string> lines,
                                             std::size_t max_lines, std::uint64_t seed) {
  std::vector<const std::string*> chosen;
  for (const auto& line : lines) chosen.push_back(&line);
  if (chosen.size() <= max_lines) return chosen;
  // A partial Fisher-Yates shuffle: position i receives a random one of the remaining lines.
  Random random({.seed = seed, .stream = Stream::data, .index = 0x73656E74});
  for (std::size_t i = 0; i < max_lines; ++i) {
    const auto left = static_cast<std::uint32_t>(chosen.size() - i);
    std::swap(chosen[i], chosen[i + random.below(left)]);
  }
  chosen.resize(max_lines);
  return chosen;
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& file) {
  std::string proto = read_file(file.string(), largest_tokenizer);
  if (proto.empty()) throw Error(Exit::bad_input, shown_path(file.string()) + ": empty file");
  return make_sentencepiece(std::move(proto), shown_path(file.string()));
}

std::unique_ptr<Tokenizer> make_sentencepiece(std::string proto, const std::string& from) {
  return std::make_unique<SentencePieceTokenizer>(std::move(proto), from);
}

std::unique_ptr<Tokenizer> train_sentencepiece(const TokenizerOptions& options,
                                               std::span<const std::string> lines,
                                               std::uint64_t seed) {
  const bool running_text = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find('\n') != std::string::npos;
  });

  Arguments arguments{
      {"model_type", options.algorithm == PieceAlgorithm::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"hard_vocab_limit", "false"},  // a small corpus may yield a smaller vocabulary
      {"character_coverage", "1.0"},
      {"max_sentence_length", std::to_string(max_learnt_bytes)},
      {"num_threads", "4"},  // affects the result: each thread adds up a partial sum
      {"unk_id", std::to_string(Tokenizer::unk)},
      {"bos_id", std::to_string(Tokenizer::bos)},
      {"eos_id", std::to_string(Tokenizer::eos)},
      {"pad_id", "-1"},
      {"minloglevel", "2"}};
  if (!options.specials.empty())
    arguments["control_symbols"] = fmt::format("{}", fmt::join(options.specials, ","));
  if (running_text) {
    arguments.insert({{"user_defined_symbols", "\n"},
                      {"normalization_rule_name", "identity"},
                      {"remove_extra_whitespaces", "false"},
                      {"add_dummy_prefix", "false"}});
  }
  std::deque<std::string> parts;
  const std::vector<const std::string*> learnt =
      shorter(sample_lines(lines, learn_from, seed), parts);
  if (!lines.empty() && learnt.empty()) {
    throw Error(Exit::bad_input,
                "tokenizer: the training text contains only words of more than {} bytes",
                max_learnt_bytes);
  }
  if (!teach_anything(learnt, arguments, options.specials))
    throw Error(Exit::bad_input, "tokenizer: there is no text to learn from");
  std::string proto;
  const auto status = train(arguments, learnt, proto);
  if (!status.ok()) {
    if (const auto needed = needed_size(status.message())) {
      throw Error(Exit::usage,
                  "tokenizer.vocab_size: {} is too small: characters and specials alone "
                  "need {} pieces; raise it, or leave out files with rare characters",
                  options.vocab_size, needed);
    }
  }
  check(status);
  refuse_large_tokenizer(proto.size());
  return std::make_unique<SentencePieceTokenizer>(std::move(proto), "new sentencepiece model");
}

}  // namespace heed
