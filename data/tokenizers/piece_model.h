#pragma once
/// The file of a sentencepiece model, looked through before the library reads it: the library trusts
/// what it finds there.
#include <string>
#include <string_view>

namespace heed {

/// What is wrong with the protocol buffer, or "": it must be whole, hold what a model needs (pieces
/// without NUL, trainer, normaliser), and the character maps of its normalisers must stay within
/// themselves.
std::string flaw_in_piece_model(std::string_view proto);

}  // namespace heed
