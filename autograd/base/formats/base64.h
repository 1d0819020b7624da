#pragma once
#include <string>
#include <string_view>

namespace heed {

/// Bytes as text (RFC 4648), with padding and without line breaks.
std::string base64(std::string_view bytes);

}  // namespace heed
