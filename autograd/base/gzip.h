#pragma once
/// gzip in memory (RFC 1952).
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace heed {

/// Does it begin as gzip does?
bool is_gzip(std::string_view bytes);

/// Unpacks gzip as it comes; a file may hold several members, one after the other. (zlib's gzread
/// takes garbage behind a member for its end, and waits for whole buffers where somebody types.)
/// Errors are Error(bad_input) and begin with `name`.
class GzipUnpacker {
 public:
  /// Content that grows beyond `limit` bytes is refused; where it is `kept` in memory, so is content
  /// that grows to more than 200 times its packed size, the first 8 MiB aside.
  GzipUnpacker(std::string name, std::uint64_t limit, bool kept);
  ~GzipUnpacker();

  /// Appends what the next bytes unpack to. Throws where they are damaged, or belong to no member.
  void unpack(std::string_view packed, std::string& into);
  /// Throws where the last member has not ended.
  void finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The content. Throws Error(bad_input), beginning with `name`, when it is damaged, cut short,
/// followed by something else, or longer than `limit` bytes.
std::string unpack_gzip(std::string_view bytes, std::uint64_t limit, const std::string& name);

/// The same content always gives the same bytes: no time and no name are stored.
std::string pack_gzip(std::string_view content);

}  // namespace heed
