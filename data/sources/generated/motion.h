#pragma once
/// Clips of a moving square, drawn from a line of text.
///
///   clip:3 12 4 rrrruuu       left, top and size of the square in the first frame, then a move by
///                             one pixel for each further frame: l, r, u or d
///
/// A description takes the place of a file name (data/inputs/clips.h). The field has no edges: what
/// leaves it on one side enters on the other.
#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/base/random.h"
#include "data/sources/picture.h"

namespace heed {

/// Whether a line describes a clip.
bool is_motion(std::string_view line);

/// Frames of the clip: one more than there are moves. Throws Error(bad_input) if the line is not of
/// the form above.
std::int64_t motion_length(std::string_view line);

/// A white square on black. Throws as motion_length does.
Clip draw_motion(std::string_view line, std::int64_t height, std::int64_t width,
                 std::int64_t channels);

/// A clip, and how its square moves: "left 2", the direction of the first move and the number of
/// turns, from 0 to 3. A turn is by 90 degrees, to either side, and at least two moves go in each
/// direction, so a clip needs at least 9 frames. All places of the first frame are equally likely,
/// whatever the moves: a single frame says nothing about them.
struct Motion {
  std::string clip, label;
};
Motion make_motion(std::int64_t frames, std::int64_t height, std::int64_t width, Random& random);
/// The fewest frames of make_motion, and the shortest side of its field.
inline constexpr std::int64_t motion_frames = 9, motion_side = 8;

}  // namespace heed
