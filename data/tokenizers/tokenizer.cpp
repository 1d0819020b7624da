#include "data/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/imported.h"
#include "data/tokenizers/vocabulary.h"

namespace heed {

void Tokenizer::check_id(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(Exit::failed, "token id {} is outside the vocabulary of {} pieces", id, size());
  }
}

std::int32_t Tokenizer::first_ordinary() const {
  std::int32_t id = eos + 1;
  while (id < size() && special(piece(id)) == id) ++id;
  return id;
}

std::vector<std::int32_t> Tokenizer::encode_with_specials(
    std::string_view line, const std::function<std::string(std::string)>& prepare) const {
  std::vector<std::int32_t> ids;
  const auto add = [&](std::string_view text) {
    const std::vector<std::int32_t> piece_ids =
        prepare ? encode(prepare(std::string(text))) : encode(text);
    ids.insert(ids.end(), piece_ids.begin(), piece_ids.end());
  };
  std::size_t begin = line.find('<');
  while (begin != std::string_view::npos) {
    const std::size_t end = line.find('>', begin);
    if (end == std::string_view::npos) break;
    const auto id = special(std::string(line.substr(begin, end + 1 - begin)));
    if (id && *id > eos) {
      add(line.substr(0, begin));
      ids.push_back(*id);
      line.remove_prefix(end + 1);
      begin = line.find('<');
    } else {
      begin = line.find('<', begin + 1);
    }
  }
  add(line);
  return ids;
}

std::string Tokenizer::decode_with_specials(std::span<const std::int32_t> ids) const {
  const std::int32_t ordinary = first_ordinary();
  std::string text;
  const auto add = [&](const std::string& words) {
    if (!text.empty() && !words.empty()) text += ' ';
    text += words;
  };
  for (std::size_t at = 0; at < ids.size();) {
    std::size_t end = at;
    const auto named = [&](std::int32_t id) { return id > eos && id < ordinary; };
    while (end < ids.size() && !named(ids[end])) ++end;
    add(decode(ids.subspan(at, end - at)));
    if (end < ids.size()) add(piece(ids[end++]));
    at = end;
  }
  return text;
}

std::string tokenizer_file(const std::string& stem, TokenizerKind kind) {
  if (kind == TokenizerKind::imported) return stem + ".imported";
  return stem + (kind == TokenizerKind::sentencepiece ? ".model" : ".vocab");
}

std::filesystem::path Tokenizer::save(const std::filesystem::path& stem) const {
  std::filesystem::path path = tokenizer_file(stem.string(), kind());
  FileWriter file(path);
  file.write(content());
  file.finish();  // synced: checkpoints are useless without the tokenizer
  return path;
}

std::string wrong_specials(std::span<const std::string> names) {
  std::set<std::string> seen{"<unk>", "<s>", "</s>"};
  for (const std::string& name : names) {
    const auto plain = [](char c) {
      return c > ' ' && c < 0x7F && c != '<' && c != '>' && c != ',';
    };
    const bool fits = name.size() > 2 && name.size() <= 64 && name.front() == '<' &&
                      name.back() == '>' && std::all_of(name.begin() + 1, name.end() - 1, plain);
    if (!fits) return fmt::format("\"{}\" is not a name like <mask>", shown(name));
    if (!seen.insert(name).second)
      return fmt::format("duplicate {} (<unk>, <s> and </s> always exist)", name);
  }
  return "";
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file, TokenizerKind kind) {
  std::error_code ignored;
  if (std::filesystem::is_other(file, ignored)) {  // a pipe or device: reading might never end
    throw Error(Exit::bad_input, shown_path(file) + ": not a regular file");
  }
  if (kind == TokenizerKind::imported) return load_imported(file);
  return kind == TokenizerKind::sentencepiece ? load_sentencepiece(file)
                                              : load_vocabulary(file, kind);
}

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options,
                                           std::span<const std::string> lines, std::uint64_t seed) {
  if (const std::string wrong = wrong_specials(options.specials); !wrong.empty())
    throw Error(Exit::usage, "tokenizer.specials: " + wrong);
  if (options.kind == TokenizerKind::imported)
    throw Error(
        Exit::usage,
        "tokenizer.kind: heed does not learn tokenizers of kind imported: name the file of a "
        "run that heed import made with tokenizer.model, or its run with model.init_from");
  return options.kind == TokenizerKind::sentencepiece ? train_sentencepiece(options, lines, seed)
                                                      : train_vocabulary(options, lines);
}

std::vector<std::filesystem::path> Tokenizers::save(const std::filesystem::path& folder) const {
  if (source == target) return {source->save(folder / "tokenizer")};
  return {source->save(folder / "source"), target->save(folder / "target")};
}

Tokenizers Tokenizers::load(const std::filesystem::path& folder, TokenizerKind kind,
                            std::optional<TokenizerKind> target) {
  const auto file = [&](const char* name, TokenizerKind of) {
    return folder / tokenizer_file(name, of);
  };
  Tokenizers both;
  std::error_code ignored;
  if (std::filesystem::exists(file("source", kind), ignored)) {
    const TokenizerKind target_kind = target.value_or(kind);
    both.source = load_tokenizer(file("source", kind), kind);
    both.target = load_tokenizer(file("target", target_kind), target_kind);
  } else {
    both.source = both.target = load_tokenizer(file("tokenizer", kind), kind);
  }
  return both;
}

void refuse_large_tokenizer(std::uint64_t bytes) {
  if (bytes <= largest_tokenizer) return;
  throw Error(Exit::usage,
              "tokenizer: the vocabulary has {} MiB, but the maximum is {} MiB: choose a "
              "smaller tokenizer.vocab_size, or look for very long words in the data",
              (bytes >> 20) + 1, largest_tokenizer >> 20);
}

namespace {

std::unique_ptr<Tokenizer> load(const std::string& file, const TokenizerOptions& options) {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(file, options.kind);
  for (const std::string& name : options.specials) {
    if (!tokenizer->special(name))
      throw Error(Exit::usage, "tokenizer.specials: {} has no special piece {}", shown_path(file),
                  shown(name));
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> learn(const TokenizerOptions& options,
                                 std::span<const std::string> lines, std::uint64_t seed,
                                 const std::function<void(const std::string&)>& on_message) {
  const bool reports = on_message && options.kind == TokenizerKind::sentencepiece;
  if (reports)
    on_message(fmt::format("learning a vocabulary of {} pieces from {} lines", options.vocab_size,
                           lines.size()));
  std::unique_ptr<Tokenizer> tokenizer = train_tokenizer(options, lines, seed);
  if (reports && tokenizer->size() < options.vocab_size)
    on_message(
        fmt::format("note: the vocabulary has {} pieces, fewer than tokenizer.vocab_size ({}): the "
                    "training text yields no more",
                    tokenizer->size(), options.vocab_size));
  return tokenizer;
}

}  // namespace

Tokenizers make_tokenizers(const TokenizerOptions& options, Split train, std::uint64_t seed,
                           const std::function<void(const std::string&)>& on_message,
                           std::optional<TokenizerKind> target) {
  const bool text = !train.text.empty();
  const auto make = [&](const TokenizerOptions& side_options, const std::string& file,
                        std::span<const std::string> lines) {
    return std::shared_ptr<const Tokenizer>(
        file.empty() ? learn(side_options, lines, seed, on_message) : load(file, side_options));
  };
  Tokenizers both;
  if (options.shared || text) {
    std::vector<std::string> lines;
    if (options.model.empty()) {
      lines = std::move(train.source);
      for (const std::string_view line : text_lines(train.text)) lines.emplace_back(line);
      std::ranges::move(train.target, std::back_inserter(lines));
      // A newline marks a continuous text (see train_tokenizer), so a text of one line needs one.
      if (text && !lines.back().ends_with('\n')) lines.back() += '\n';
    }
    both.source = both.target = make(options, options.model, lines);
  } else {
    both.source = make(options, options.source_model, train.source);
    TokenizerOptions labels = options;
    labels.kind = target.value_or(options.kind);
    both.target = make(labels, options.target_model, train.target);
  }
  return both;
}
}  // namespace heed
