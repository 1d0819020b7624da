#pragma once
/// Pictures of two shapes, drawn from a line of text.
///
///   drawing:red square 3 20 8;blue circle 18 5 10     colour, shape, left, top, size; in pixels
///
/// A line stands where a file's name would (data/inputs/pictures.h), so generated pictures and those of files take the
/// same way.
#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/base/random.h"
#include "data/sources/picture.h"

namespace heed {

/// Whether a line describes a drawing.
bool is_drawing(std::string_view line);

/// Shapes on black. Grey is the mean of the colours. Throws Error(bad_input) if the line is not of the form above.
Picture draw_picture(std::string_view line, std::int64_t height, std::int64_t width,
                     std::int64_t channels);

/// A drawing, and a sentence that is true of it: "a red square left of a blue circle". Of the
/// two colours, the one that comes first in red, green, blue, yellow, purple, white is named first, so that a drawing has
/// one caption. Shapes do not overlap and lie within `height` x `width`. The
/// relation is that of the larger of both distances. height and width are at least 16.
struct Scene {
  std::string drawing, caption;
};
Scene make_scene(std::int64_t height, std::int64_t width, Random& random);

}  // namespace heed
