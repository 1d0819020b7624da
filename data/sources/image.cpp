#include "data/sources/image.h"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "data/sources/binary_file.h"

namespace heed {
namespace {

constexpr std::int64_t max_pixels = std::int64_t{1} << 24;

void check_size(const std::string& path, std::int64_t height, std::int64_t width) {
  if (height <= 0 || width <= 0 || height > max_pixels / width)
    refuse_file(path,
                fmt::format("an image of {} x {} pixels (height x width); expected 1 to {} pixels",
                            height, width, max_pixels));
}

Image sized(const std::string& path, std::int64_t height, std::int64_t width,
            std::int64_t channels) {
  check_size(path, height, width);
  return {height, width, channels, std::vector<std::uint8_t>(height * width * channels)};
}

Image from_png(const std::string& path, const std::string& bytes, std::int64_t channels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> guard(&png, png_image_free);
  const auto check = [&](int fine) {
    if (fine == 0 || png.warning_or_error >= 2)
      refuse_file(path, fmt::format("a broken PNG file ({})", png.message));
  };
  check(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Image image = sized(path, png.height, png.width, channels);
  constexpr png_color black{0, 0, 0};
  check(png_image_finish_read(&png, &black, image.values.data(), 0, nullptr));
  return image;
}

Image from_jpeg(const std::string& path, const std::string& bytes, std::int64_t channels) {
  const std::unique_ptr<void, int (*)(void*)> decoder(tjInitDecompress(), tjDestroy);
  if (decoder == nullptr) throw Error(Exit::io, "libjpeg-turbo cannot be initialised");
  const auto check = [&](int failed) {
    if (failed != 0)
      refuse_file(path, fmt::format("a broken JPEG file ({})", tjGetErrorStr2(decoder.get())));
  };
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  check(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling,
                            &colours));
  if (width <= 0 || height <= 0) refuse_file(path, "a broken JPEG file (no header)");
  Image image = sized(path, height, width, channels);
  check(tjDecompress2(decoder.get(), data, bytes.size(), image.values.data(), width, 0, height,
                      channels == 1 ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT));
  return image;
}

/// Reads the number at `at` in a PGM or PPM header, after white space and comments (# to the end of
/// the line), and moves `at` past it. Returns −1 if there is no number.
std::int64_t header_number(std::string_view bytes, std::size_t& at) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (at < bytes.size() && (space(bytes[at]) || bytes[at] == '#'))
    at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), number);
  at = static_cast<std::size_t>(end - bytes.data());
  return error == std::errc() ? number : -1;
}

Image from_pnm(const std::string& path, const std::string& bytes, std::int64_t channels) {
  std::size_t at = 2;
  const std::int64_t width = header_number(bytes, at), height = header_number(bytes, at),
                     max_value = header_number(bytes, at), file_channels = bytes[1] == '5' ? 1 : 3;
  if (max_value != 255) refuse_file(path, "a PGM or PPM file whose maximum value is not 255");
  ++at;  // a white-space character ends the header
  check_size(path, height, width);
  if (bytes.size() < at + static_cast<std::size_t>(height * width * file_channels))
    refuse_file(path, "a PGM or PPM file that ends too early");
  Image image = sized(path, height, width, channels);
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
  for (std::size_t i = 0; i < image.values.size();
       i += static_cast<std::size_t>(channels), from += file_channels) {
    if (file_channels == channels) {
      std::memcpy(&image.values[i], from, static_cast<std::size_t>(channels));
    } else if (file_channels == 1) {
      std::memset(&image.values[i], *from, 3);
    } else {  // the luma of JPEG (ITU-R BT.601), rounded
      image.values[i] =
          static_cast<std::uint8_t>((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
    }
  }
  return image;
}

}  // namespace

Image read_image(const std::string& path, std::int64_t channels) {
  const std::string bytes = read_binary_file(path);
  const std::string_view begin = std::string_view(bytes).substr(0, 8);
  if (begin == "\x89PNG\r\n\x1a\n") return from_png(path, bytes, channels);
  if (begin.starts_with("\xFF\xD8")) return from_jpeg(path, bytes, channels);
  if (begin.starts_with("P5") || begin.starts_with("P6")) return from_pnm(path, bytes, channels);
  refuse_file(path, bytes.empty() ? "empty file" : "not a PNG, JPEG, PGM or PPM file");
}

std::string png_of(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.height);
  png.width = static_cast<png_uint_32>(image.width);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.values.data(), 0, nullptr) == 0)
    throw Error(Exit::failed, "libpng: {}", png.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace heed
