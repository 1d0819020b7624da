#include "autograd/io/formats/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "autograd/base/error.h"

namespace heed {
namespace {

/// Text rarely compresses to less than a tenth of its size. Content larger than kNoBomb plus
/// kMaxTimes times its packed size is considered an attempt to exhaust memory.
constexpr std::uint64_t kMaxTimes = 200, kNoBomb = std::uint64_t{8} << 20;

constexpr int kGzipWindow = 15 + 16;  // 15: the maximum window; 16: gzip's header and trailer

Bytef* input_of(std::string_view bytes) {  // zlib only reads it, but is not const-correct
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

struct GzipUnpacker::State {
  std::string name;
  std::uint64_t limit, packed = 0, unpacked = 0;  // all in bytes
  bool kept, within = false;                      // within: the position is inside a member
  z_stream stream{};
};

GzipUnpacker::GzipUnpacker(std::string name, std::uint64_t limit, bool kept)
    : state_(new State{.name = std::move(name), .limit = limit, .kept = kept}) {
  if (inflateInit2(&state_->stream, kGzipWindow) != Z_OK)
    throw Error(Exit::io, "gzip: not enough memory to unpack");
}

GzipUnpacker::~GzipUnpacker() { inflateEnd(&state_->stream); }

void GzipUnpacker::unpack(std::string_view packed, std::string& into) {
  const auto fail = [&](std::string_view what) {
    throw Error(Exit::bad_input, "{}: {}", state_->name, what);
  };
  z_stream& stream = state_->stream;
  std::array<char, 1 << 16> piece;
  stream.avail_in = 0;
  for (bool full = false; stream.avail_in > 0 || !packed.empty() || full;) {
    if (stream.avail_in == 0) {  // zlib uses 32 bits for sizes
      const std::size_t next = std::min<std::size_t>(packed.size(), std::size_t{1} << 30);
      stream.next_in = input_of(packed);
      stream.avail_in = static_cast<uInt>(next);
      packed.remove_prefix(next);
      state_->packed += next;
    }
    state_->within = true;
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    full = stream.avail_out == 0;  // zlib may hold more output
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail("gzip data damaged");
    const std::size_t made = piece.size() - stream.avail_out;
    into.append(piece.data(), made);
    state_->unpacked += made;
    const std::uint64_t used = state_->packed - stream.avail_in;
    if (state_->kept && state_->unpacked > kNoBomb + kMaxTimes * used)
      fail(fmt::format("unpacks to more than {} times its size", kMaxTimes));
    if (state_->unpacked > state_->limit)
      fail(fmt::format("unpacks to more than {} bytes", state_->limit));
    if (status == Z_STREAM_END) {  // unused input belongs to the next member
      state_->within = full = false;
      inflateReset(&stream);
    }
  }
}

void GzipUnpacker::finish() const {
  if (state_->within || state_->packed == 0)
    throw Error(Exit::bad_input, state_->name + ": gzip data truncated");
}

std::string unpack_gzip(std::string_view bytes, std::uint64_t limit, const std::string& name) {
  std::string content;
  GzipUnpacker unpacker(name, limit, true);
  unpacker.unpack(bytes, content);
  unpacker.finish();
  return content;
}

std::string pack_gzip(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(Exit::io, "gzip: not enough memory to pack");
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
