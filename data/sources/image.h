#pragma once
/// Images and their files: PNG (libpng), JPEG (libjpeg-turbo), and binary PGM and PPM with values
/// from 0 to 255.
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;  ///< [height, width, channels]
};

struct Video {
  std::int64_t frames = 0, height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;  ///< [frames, height, width, channels]
};

/// Reads an image file, whose format is detected from its content. Converts the image to `channels`
/// channels: 1 (grey) or 3 (red, green, blue). Transparent images are drawn on black. Throws
/// Error(bad_input) if the file is missing, damaged, truncated or of an unknown format, or has more
/// than 2^24 pixels.
Image read_image(const std::string& path, std::int64_t channels);

/// The image as the bytes of a PNG file.
std::string png_of(const Image& image);

}  // namespace heed
