#pragma once
/// Pictures as sequences of patches (Dosovitskiy et al., "An image is worth 16x16 words", 2021); also
/// what clips share with them (data/inputs/clips.h).
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/batches/inputs.h"
#include "data/options.h"
#include "data/sources/picture.h"

namespace heed {

/// A row is a patch, read line by line: patch × patch × channels values, each (v / 255 − mean) /
/// deviation. With `class_row`, a row of zeros comes first; projected, it is the bias plus the first
/// position, which serves as the class token.
///
/// In training, the options may shift a picture by up to options.shift pixels in each direction (the
/// border is filled with black), crop it at a random position, and mirror it with probability 1/2.
/// Evaluation crops the middle.
class Pictures : public Inputs {
 public:
  /// A line names a file (read_picture) or an item of an IDX file ("FILE#17"), or is a drawing
  /// (drawings.h). Throws Error(bad_input), naming
  /// `what`, the line and the file, for a file that cannot be read or a picture of another size.
  Pictures(std::span<const std::string> lines, const ImageOptions& options, bool class_row,
           const std::string& what, std::int64_t threads);

  std::int64_t rows(std::int64_t) const override;
  void push(std::int64_t input, const Draw& draw, Side& side) const override;
  void add_to(Sha256& sum, std::int64_t input) const override;

 protected:
  /// Without pictures: those of `keep`. A picture is a clip of one frame.
  Pictures(const ImageOptions& options, const VideoOptions& video, bool class_row)
      : options_(options), video_(video), class_row_(class_row) {}
  /// Throws Error(bad_input) if the options do not accept the size; `noun` is for the message.
  void check_size(std::int64_t height, std::int64_t width, const char* noun) const;
  /// Adds a clip and frees its pixels.
  void keep(Clip& clip);

 private:
  struct Item {
    std::size_t begin = 0;  // in pixels_
    std::int64_t height = 0, width = 0;
  };
  std::span<const std::uint8_t> pixels(const Item& item) const;

  ImageOptions options_;
  VideoOptions video_;
  bool class_row_;
  std::vector<Item> items_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace heed
