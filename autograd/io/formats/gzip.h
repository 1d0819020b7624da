#pragma once
/// gzip in memory (RFC 1952).
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace heed {

/// Whether the bytes begin with the gzip magic number.
bool is_gzip(std::string_view bytes);

/// Unpacks a gzip stream, which may consist of several members. Throws Error(bad_input), with a
/// message that begins with `name`, if the data are damaged. (zlib's gzread is unsuitable: it
/// ignores garbage after a member, and waits for full buffers on a terminal.)
class GzipUnpacker {
 public:
  /// Content of more than `limit` bytes is an error. If the caller keeps the content in memory
  /// (`kept`), so is content of more than 8 MiB plus 200 times its packed size.
  GzipUnpacker(std::string name, std::uint64_t limit, bool kept);
  ~GzipUnpacker();

  /// Appends the unpacked content of the next bytes. Throws if they are damaged or do not belong to
  /// a member, or if the content exceeds a limit.
  void unpack(std::string_view packed, std::string& into);
  /// Throws if the last member is incomplete or if there is no member.
  void finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The unpacked content. Throws Error(bad_input), with a message that begins with `name`, if the
/// bytes are damaged, truncated or followed by other data, or if the content is longer than `limit`
/// bytes or than 8 MiB plus 200 times the packed size.
std::string unpack_gzip(std::string_view bytes, std::uint64_t limit, const std::string& name);

/// Packs the content. Equal content has equal packed bytes: the header contains neither a time nor
/// a name.
std::string pack_gzip(std::string_view content);

}  // namespace heed
