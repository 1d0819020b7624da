#pragma once
#include <string>
#include <string_view>

namespace heed {

/// The bytes in Base64 (RFC 4648), with padding and without line breaks.
std::string base64(std::string_view bytes);

}  // namespace heed
