#pragma once
/// gzip in memory (RFC 1952).
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Does it begin as gzip does?
bool is_gzip(std::string_view bytes);

/// The content. Throws Error(bad_input), beginning with `name`, when it is damaged, cut short,
/// followed by something else, or longer than `limit` bytes.
std::string unpack_gzip(std::string_view bytes, std::uint64_t limit, const std::string& name);

/// The same content always gives the same bytes: no time and no name are stored.
std::string pack_gzip(std::string_view content);

}  // namespace heed
