#pragma once
/// Images of coloured shapes, drawn from a line of text.
///
///   drawing:red square 3 20 8;blue circle 18 5 10     colour, shape; left, top and size in pixels
///
/// A description is used in place of a file name (data/inputs/images.h), so drawings and files are
/// read by the same code.
#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/base/random.h"
#include "data/sources/image.h"

namespace heed {

/// Whether a line describes a drawing.
bool is_drawing(std::string_view line);

/// Draws the shapes on black. Grey is the mean of red, green and blue. Throws Error(bad_input) if
/// the line does not have the form at the top of this file.
Image draw_image(std::string_view line, std::int64_t height, std::int64_t width,
                 std::int64_t channels);

/// A drawing and its caption: "a red square left of a blue circle". The caption names the colours
/// in the order red, green, blue, yellow, purple, white, so each drawing has exactly one caption.
/// The two shapes do not overlap and lie within height × width pixels; height and width must be at
/// least 16. The relation is along the axis with the larger distance.
struct Scene {
  std::string drawing, caption;
};
Scene make_scene(std::int64_t height, std::int64_t width, Random& random);

}  // namespace heed
