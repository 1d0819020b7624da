#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The bytes in Base64 (RFC 4648), with padding and without line breaks.
std::string base64(std::string_view bytes);

/// The inverse; nullopt if the text is not Base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace heed
