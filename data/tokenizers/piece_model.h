#pragma once
/// Validates the file of a sentencepiece model before the library reads it, because the library
/// trusts its contents.
#include <string>
#include <string_view>

namespace heed {

/// What is wrong with the protocol buffer, or "": it must be complete, hold what a model needs
/// (pieces without NUL, trainer, normaliser), and the character maps of its normalisers must not
/// point outside themselves.
std::string flaw_in_piece_model(std::string_view proto);

}  // namespace heed
