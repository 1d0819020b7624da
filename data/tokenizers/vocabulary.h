#pragma once
/// Tokenizers with a plain list of pieces: characters, bytes, words. Internal to data/.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace heed {

/// `specials` are those from id 3 on; `pieces` follow.
std::unique_ptr<Tokenizer> vocabulary_tokenizer(TokenizerKind kind,
                                                std::span<const std::string> specials,
                                                std::vector<std::string> pieces);

/// The pieces found in lines; see train_tokenizer.
std::vector<std::string> learn_vocabulary(const TokenizerOptions& options,
                                          std::span<const std::string> lines);

std::unique_ptr<Tokenizer> load_vocabulary(const std::filesystem::path& file, TokenizerKind kind);

/// The sentencepiece kind (sentencepiece.cpp).
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& file);
std::unique_ptr<Tokenizer> train_sentencepiece(const TokenizerOptions& options,
                                               std::span<const std::string> lines,
                                               std::uint64_t seed);

/// Throws Error(usage) unless all are distinct ASCII names like "<mask>".
void check_specials(std::span<const std::string> names);

/// Writes a whole file or throws Error(io).
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace heed
