#pragma once
/// Images as sequences of patches (Dosovitskiy et al., "An image is worth 16x16 words", 2021).
/// Images is also the base class of Videos (data/inputs/videos.h).
#include <span>
#include <string>
#include <vector>

#include "data/inputs/input_info.h"
#include "data/sources/image.h"

namespace heed {

/// The rows are the patches of an image in raster order. A row has patch × patch × channels values
/// (v / 255 − mean) / deviation, with the pixels of the patch in raster order. With `class_row`,
/// each image begins with a row of zeros. The encoder turns it into the bias of the projection plus
/// the encoding of the first position, which serves as the class token.
///
/// Depending on the options, training shifts an image by at most options.shift pixels in each
/// direction (black fills the border), crops it at a random position, and mirrors it with
/// probability 1/2. Evaluation crops the centre.
class Images : public Inputs {
 public:
  /// A line names a file (read_image) or an item of an IDX file ("FILE#17"), or is a drawing
  /// (drawings.h). Throws Error(bad_input), naming `what`, the line and the file, if the file
  /// cannot be read or the image has the wrong size or number of channels.
  Images(std::span<const std::string> lines, const ImageOptions& options, bool class_row,
         const std::string& what, std::int64_t threads);

  std::int64_t rows(std::int64_t) const override;
  bool fixed_rows() const override { return true; }
  void push(std::int64_t input, const Draw& draw, Side& side) const override;
  void add_to(Sha256& sum, std::int64_t input) const override;

 protected:
  /// An empty set, to which keep() adds videos. An image is a video of one frame.
  Images(const ImageOptions& options, const VideoOptions& video, bool class_row)
      : options_(options), video_(video), class_row_(class_row) {}
  /// Throws Error(bad_input) if the options do not accept the size; the message begins with `noun`.
  void check_size(std::int64_t height, std::int64_t width, const char* noun) const;
  /// Adds a video and frees its pixels.
  void keep(Video& video);

 private:
  struct Item {
    std::size_t begin = 0;  // index of its first value in pixels_
    std::int64_t height = 0, width = 0;
  };
  std::span<const std::uint8_t> pixels(const Item& item) const;

  ImageOptions options_;
  VideoOptions video_;
  bool class_row_;
  std::vector<Item> items_;
  std::vector<std::uint8_t> pixels_;
};

// Parts of the InputInfo of images and of videos.
OptionErrors image_errors(const DataOptions& o);
std::string pixels_of(const ImageOptions& o);                      ///< "28 × 28 pixels, 1 channel"
std::string patch_name(std::int64_t patch, std::int64_t columns);  ///< "2,3": row, column

}  // namespace heed
