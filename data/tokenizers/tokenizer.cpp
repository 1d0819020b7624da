#include "data/tokenizers/tokenizer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "autograd/base/lines.h"
#include "data/tokenizers/vocabulary.h"

namespace heed {

void Tokenizer::check_id(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(Exit::failed,
                fmt::format("token id {} is outside of the vocabulary of {} pieces", id, size()));
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file, TokenizerKind kind) {
  std::error_code ignored;
  if (std::filesystem::is_other(file, ignored)) {  // a pipe or device: reading might never end
    throw Error(Exit::bad_input, shown_path(file) + ": not a regular file");
  }
  return kind == TokenizerKind::sentencepiece ? load_sentencepiece(file)
                                              : load_vocabulary(file, kind);
}

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options,
                                           std::span<const std::string> lines, std::uint64_t seed) {
  if (options.kind == TokenizerKind::sentencepiece)
    return train_sentencepiece(options, lines, seed);
  return vocabulary_tokenizer(options.kind, learn_vocabulary(options, lines));
}

std::vector<std::filesystem::path> Tokenizers::save(const std::filesystem::path& folder) const {
  if (shared()) return {source->save(folder / "tokenizer")};
  return {source->save(folder / "source"), target->save(folder / "target")};
}

Tokenizers Tokenizers::load(const std::filesystem::path& folder, TokenizerKind kind) {
  const char* const ending = kind == TokenizerKind::sentencepiece ? ".model" : ".vocab";
  const auto file = [&](const char* name) { return folder / (std::string(name) + ending); };
  Tokenizers both;
  std::error_code ignored;
  if (std::filesystem::exists(file("source"), ignored)) {
    both.source = load_tokenizer(file("source"), kind);
    both.target = load_tokenizer(file("target"), kind);
  } else {
    both.source = both.target = load_tokenizer(file("tokenizer"), kind);
  }
  return both;
}

void refuse_large_tokenizer(std::uint64_t bytes) {
  if (bytes <= largest_tokenizer) return;
  throw Error(Exit::usage,
              fmt::format("tokenizer: what was learned takes {} MiB, and {} are allowed: choose a "
                          "smaller tokenizer.vocab_size, or look for very long words in the data",
                          (bytes >> 20) + 1, largest_tokenizer >> 20));
}

Tokenizers make_tokenizers(const TokenizerOptions& options, const Split& train,
                           std::uint64_t seed) {
  const bool text = !train.text.empty();
  const auto make = [&](const std::string& file, std::span<const std::string> lines) {
    return std::shared_ptr<const Tokenizer>(file.empty() ? train_tokenizer(options, lines, seed)
                                                         : load_tokenizer(file, options.kind));
  };
  Tokenizers both;
  if (options.shared || text) {
    std::vector<std::string> lines;
    if (options.model.empty()) {
      lines = text ? text_lines(train.text) : train.source;
      lines.insert(lines.end(), train.target.begin(), train.target.end());
      // Newlines mark a running text (see train_tokenizer), also one of a single line.
      if (text && !lines.back().ends_with('\n')) lines.back() += '\n';
    }
    both.source = both.target = make(options.model, lines);
  } else {
    both.source = make(options.source_model, train.source);
    both.target = make(options.target_model, train.target);
  }
  return both;
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  FileDescriptor out = open_file(file, O_WRONLY | O_CREAT | O_TRUNC);
  write_all(out.get(), as_bytes(content), file);
  sync_file(out.get(), file);  // a run's checkpoints are worth nothing without its tokenizer
  out.close(file);
}

}  // namespace heed
