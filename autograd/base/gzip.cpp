#include "autograd/base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "autograd/base/error.h"

namespace heed {
namespace {

/// A text shrinks to a tenth at best. What grows to so many times its size, beyond the first bytes,
/// is made to fill the memory.
constexpr std::uint64_t kMostTimes = 200, kNoBomb = std::uint64_t{8} << 20;

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, with gzip's header and trailer

Bytef* input_of(std::string_view bytes) {  // zlib does not write there, but is not const
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK)
      throw Error(Exit::io, "gzip: no memory to unpack");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string unpack_gzip(std::string_view bytes, std::uint64_t limit, const std::string& name) {
  const auto fail = [&](std::string_view what) {
    throw Error(Exit::bad_input, fmt::format("{}: {}", name, what));
  };
  std::string content;
  const std::uint64_t size = bytes.size();
  std::array<char, 1 << 16> piece;
  do {  // a file may hold several members, one after the other
    Inflater inflater;
    z_stream& stream = inflater.stream;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (stream.avail_in == 0) {  // zlib counts in 32 bits
        const std::size_t next = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
        if (next == 0) fail("gzip data cut short");
        stream.next_in = input_of(bytes);
        stream.avail_in = static_cast<uInt>(next);
        bytes.remove_prefix(next);
      }
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      status = inflate(&stream, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END) fail("gzip data damaged");
      content.append(piece.data(), piece.size() - stream.avail_out);
      const std::uint64_t used = size - bytes.size() - stream.avail_in;
      if (content.size() > kNoBomb + kMostTimes * used)
        fail(fmt::format("unpacks to more than {} times its size", kMostTimes));
      if (content.size() > limit) fail(fmt::format("unpacks to more than {} bytes", limit));
    }
    if (stream.avail_in > 0)  // what inflate has not used belongs to the next member
      bytes = std::string_view(bytes.data() - stream.avail_in, bytes.size() + stream.avail_in);
  } while (!bytes.empty());
  return content;
}

std::string pack_gzip(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(Exit::io, "gzip: no memory to pack");
  std::string packed(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = input_of(content);
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END)
    throw Error(Exit::failed, "gzip: more content than can be packed at once");
  return packed;
}

}  // namespace heed
