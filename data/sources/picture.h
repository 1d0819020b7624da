#pragma once
/// Pictures, and how they are read from files: PNG (libpng), JPEG (libjpeg-turbo), and binary PGM and PPM.
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct Picture {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;  ///< [height, width, channels]
};

/// Moving pictures.
struct Clip {
  std::int64_t frames = 0, height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;  ///< [frames, height, width, channels]
};

/// Reads a picture; the content, not the name, tells the format. channels: 1 (grey) or 3 (red,
/// green, blue); others are converted, and what is transparent becomes black. Throws
/// Error(bad_input) if the file is missing, damaged or truncated, of another format, or has more
/// than 2^24 pixels.
Picture read_picture(const std::string& path, std::int64_t channels);

/// The bytes of a PNG file of the picture.
std::string png_of(const Picture& picture);

}  // namespace heed
