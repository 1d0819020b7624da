#pragma once
/// Videos of a moving square, drawn from a line of text.
///
///   clip:3 12 4 rrrruuu       left, top and size of the square in the first frame, then a move by
///                             one pixel for each further frame: l, r, u or d
///
/// A description is used in place of a file name (data/inputs/videos.h). The frame wraps around: a
/// square that leaves it on one side enters it on the opposite side.
#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/base/random.h"
#include "data/sources/image.h"

namespace heed {

/// Whether a line describes a video.
bool is_motion(std::string_view line);

/// The number of frames of the video that a line describes: the number of moves plus 1. Throws
/// Error(bad_input) if the line does not have the form at the top of this file.
std::int64_t motion_length(std::string_view line);

/// Draws a white square on black. Throws as motion_length does.
Video draw_motion(std::string_view line, std::int64_t height, std::int64_t width,
                  std::int64_t channels);

/// A video and the motion of its square: "left 2" is the direction of the first move and the number
/// of turns, from 0 to 3. Each turn is by 90 degrees to the left or right. At least two moves
/// precede and follow each turn, so a video must have at least 9 frames. Every initial position is
/// equally likely, whatever the moves, so a single frame contains no information about the motion.
struct Motion {
  std::string video, label;
};
Motion make_motion(std::int64_t frames, std::int64_t height, std::int64_t width, Random& random);
/// The minimum number of frames and the minimum height and width for make_motion.
inline constexpr std::int64_t motion_frames = 9, motion_side = 8;

}  // namespace heed
