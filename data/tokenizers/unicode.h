#pragma once
/// Unicode normalisation forms (Unicode Standard Annex 15).
#include <string>
#include <string_view>

namespace heed {

/// Canonical decomposition: é becomes e and an acute accent. The text must be valid UTF-8.
std::string nfd(std::string_view text);
/// Canonical decomposition, then canonical composition.
std::string nfc(std::string_view text);

}  // namespace heed
