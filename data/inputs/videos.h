#pragma once
/// Videos as sequences of tubelets (Arnab et al., "ViViT: A Video Vision Transformer", 2021,
/// section 3.2).
#include "data/inputs/images.h"

namespace heed {

/// A row is a tubelet: patch × patch pixels of `tubelet` consecutive frames, frame by frame, with
/// the pixels of a frame in raster order. Rows are ordered by time, then in raster order. Training
/// shifts, crops and mirrors all frames of a video in the same way.
class Videos final : public Images {
 public:
  /// A line names a .npy file of uint8 ([frames, height, width] or [frames, height, width,
  /// channels]) or an item of an IDX file of four dimensions ("FILE#17": [videos, frames, height,
  /// width]), or is a description (data/sources/generated/motion.h). Throws Error(bad_input),
  /// naming `what`, the line and the file, if the file cannot be read or the video has the wrong
  /// length, size or number of channels.
  Videos(std::span<const std::string> lines, const ImageOptions& options, const VideoOptions& video,
         bool class_row, const std::string& what, std::int64_t threads);
};

}  // namespace heed
