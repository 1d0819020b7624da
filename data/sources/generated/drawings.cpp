#include "data/sources/generated/drawings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

constexpr std::string_view drawing_prefix = "drawing:";
constexpr std::array<std::string_view, 6> colours{"red",    "green",  "blue",
                                                  "yellow", "purple", "white"};
constexpr std::array<std::array<std::uint8_t, 3>, 6> rgb{
    {{230, 40, 40}, {40, 200, 60}, {50, 80, 240}, {235, 220, 50}, {170, 60, 200}, {245, 245, 245}}};
constexpr std::array<std::string_view, 4> shapes{"square", "circle", "triangle", "cross"};

struct Shape {
  std::size_t colour = 0, kind = 0;
  std::int64_t left = 0, top = 0, size = 0;

  std::string text() const {
    return fmt::format("{} {} {} {} {}", colours[colour], shapes[kind], left, top, size);
  }
  std::string name() const { return fmt::format("a {} {}", colours[colour], shapes[kind]); }
};

[[noreturn]] void refuse_drawing(std::string_view line) {
  throw Error(Exit::bad_input,
              "\"{}\" is not a drawing: \"drawing:COLOUR SHAPE LEFT TOP SIZE;…\" is "
              "expected, with colours {} and shapes {}",
              shown(line), fmt::join(colours, ", "), fmt::join(shapes, ", "));
}

Shape parse_shape(const std::string& text, std::string_view line) {
  std::array<char, 16> colour{}, kind{};
  std::array<int, 3> n{};
  int end = 0;
  const int found = std::sscanf(text.c_str(), "%15s %15s %6d %6d %6d%n", colour.data(), kind.data(),
                                &n[0], &n[1], &n[2], &end);
  const auto c = std::ranges::find(colours, std::string_view(colour.data())),
             last_colour = colours.end();
  const auto k = std::ranges::find(shapes, std::string_view(kind.data())),
             last_shape = shapes.end();
  if (found != 5 || static_cast<std::size_t>(end) != text.size() || c == last_colour ||
      k == last_shape || n[2] < 1)
    refuse_drawing(line);
  return {static_cast<std::size_t>(c - colours.begin()),
          static_cast<std::size_t>(k - shapes.begin()), n[0], n[1], n[2]};
}

std::vector<Shape> shapes_of(std::string_view line) {
  std::vector<Shape> all;
  std::string_view rest = line.substr(drawing_prefix.size());
  while (true) {
    const std::size_t end = rest.find(';');
    all.push_back(parse_shape(std::string(rest.substr(0, end)), line));
    if (end == std::string_view::npos) return all;
    rest.remove_prefix(end + 1);
  }
}

/// Whether a shape contains the centre of pixel (x, y) of its bounding square.
bool covers(const Shape& shape, std::int64_t x, std::int64_t y) {
  const auto size = static_cast<double>(shape.size);
  const double u = (static_cast<double>(x) + 0.5) / size, v = (static_cast<double>(y) + 0.5) / size;
  switch (shape.kind) {
    case 0:
      return true;
    case 1:
      return (u - 0.5) * (u - 0.5) + (v - 0.5) * (v - 0.5) <= 0.25;
    case 2:
      return std::abs(u - 0.5) <= v / 2;
    default:
      return std::abs(u - 0.5) <= 0.17 || std::abs(v - 0.5) <= 0.17;
  }
}

}  // namespace

bool is_drawing(std::string_view line) { return line.starts_with(drawing_prefix); }

Image draw_image(std::string_view line, std::int64_t height, std::int64_t width,
                 std::int64_t channels) {
  Image image{height, width, channels, {}};
  image.values.resize(static_cast<std::size_t>(height * width * channels));
  for (const Shape& shape : shapes_of(line)) {
    for (std::int64_t y = 0; y < shape.size; ++y) {
      for (std::int64_t x = 0; x < shape.size; ++x) {
        const std::int64_t row = shape.top + y, column = shape.left + x;
        if (row < 0 || row >= height || column < 0 || column >= width || !covers(shape, x, y))
          continue;
        const auto& [r, g, b] = rgb[shape.colour];
        std::uint8_t* const at =
            image.values.data() + static_cast<std::size_t>((row * width + column) * channels);
        if (channels == 3)
          std::ranges::copy(rgb[shape.colour], at);
        else
          *at = static_cast<std::uint8_t>((r + g + b) / 3);
      }
    }
  }
  return image;
}

Scene make_scene(std::int64_t height, std::int64_t width, Random& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(n)));
  };
  const std::int64_t min_size = std::min(height, width) / 5,
                     max_size = std::min(height, width) * 3 / 8;
  const auto shape = [&] {
    Shape one;
    one.colour = random.below(static_cast<std::uint32_t>(colours.size()));
    one.kind = random.below(static_cast<std::uint32_t>(shapes.size()));
    one.size = min_size + below(max_size - min_size + 1);
    one.left = below(width - one.size + 1);
    one.top = below(height - one.size + 1);
    return one;
  };
  for (;;) {
    const Shape a = shape(), b = shape();
    if (a.colour >= b.colour) continue;
    // The horizontal and vertical distances of the centres, in half pixels.
    const std::int64_t dx = 2 * (b.left - a.left) + b.size - a.size,
                       dy = 2 * (b.top - a.top) + b.size - a.size, sizes = a.size + b.size;
    const std::int64_t larger = std::max(std::abs(dx), std::abs(dy)),
                       smaller = std::min(std::abs(dx), std::abs(dy));
    if (larger < sizes || larger < smaller + 4)
      continue;  // the bounding squares overlap, or the relation is unclear
    const char* const relation = std::abs(dx) > std::abs(dy) ? (dx > 0 ? "left of" : "right of")
                                                             : (dy > 0 ? "above" : "below");
    return {fmt::format("{}{};{}", drawing_prefix, a.text(), b.text()),
            fmt::format("{} {} {}", a.name(), relation, b.name())};
  }
}

}  // namespace heed
