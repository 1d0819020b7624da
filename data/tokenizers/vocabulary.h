#pragma once
/// Tokenizers with a plain list of pieces: characters, bytes, words. Internal to data/.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace heed {

/// Learns a tokenizer of kind characters, bytes or words from the lines (train_tokenizer).
std::unique_ptr<Tokenizer> train_vocabulary(const TokenizerOptions& options,
                                            std::span<const std::string> lines);

std::unique_ptr<Tokenizer> load_vocabulary(const std::filesystem::path& file, TokenizerKind kind);

/// Tokenizers of kind sentencepiece (sentencepiece.cpp).
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& file);
std::unique_ptr<Tokenizer> train_sentencepiece(const TokenizerOptions& options,
                                               std::span<const std::string> lines,
                                               std::uint64_t seed);

/// All lines in order or, if there are more than `max_lines`, a sample of `max_lines` lines without
/// replacement, in the order in which they are drawn. The draws depend only on the seed and the
/// number of lines (sentencepiece.cpp).
std::vector<const std::string*> sample_lines(std::span<const std::string> lines,
                                             std::size_t max_lines, std::uint64_t seed);

}  // namespace heed
