#include "data/sources/generated/motion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

constexpr std::string_view prefix = "clip:";

/// A direction of a move; `directions` lists the four directions clockwise.
struct Direction {
  char letter;
  std::string_view name;
  std::int64_t x, y;
};
constexpr std::array<Direction, 4> directions{
    {{'u', "up", 0, -1}, {'r', "right", 1, 0}, {'d', "down", 0, 1}, {'l', "left", -1, 0}}};
constexpr std::int64_t max_turns = 3, min_run = 2;
static_assert(motion_frames == 1 + (max_turns + 1) * min_run);

struct Path {
  std::int64_t left = 0, top = 0, size = 1;
  std::string_view moves;
};

[[noreturn]] void refuse_video(std::string_view line) {
  throw Error(Exit::bad_input,
              "\"{}\" is not a video: \"clip:LEFT TOP SIZE MOVES\" is expected, with "
              "numbers below 65536, a size of at least 1, and moves l, r, u and d",
              shown(line));
}

Path parse_path(std::string_view line) {
  std::string_view rest = line.substr(prefix.size());
  Path path;
  for (std::int64_t* const n : {&path.left, &path.top, &path.size}) {
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *n);
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    if (error != std::errc() || *n < 0 || *n > 65535 || !rest.starts_with(' ')) refuse_video(line);
    rest.remove_prefix(1);
  }
  path.moves = rest;
  if (path.size < 1 || rest.find_first_not_of("lrud") != std::string_view::npos) refuse_video(line);
  return path;
}

std::int64_t wrapped(std::int64_t at, std::int64_t side) { return (at % side + side) % side; }

}  // namespace

bool is_motion(std::string_view line) { return line.starts_with(prefix); }

std::int64_t motion_length(std::string_view line) { return std::ssize(parse_path(line).moves) + 1; }

Video draw_motion(std::string_view line, std::int64_t height, std::int64_t width,
                  std::int64_t channels) {
  const Path path = parse_path(line);
  Video video{motion_length(line), height, width, channels, {}};
  const std::int64_t frame = height * width * channels;
  video.values.resize(static_cast<std::size_t>(video.frames * frame));
  std::int64_t left = path.left, top = path.top;
  for (std::int64_t t = 0; t < video.frames; ++t) {
    if (t > 0) {
      const auto& move = *std::ranges::find(directions, path.moves[t - 1], &Direction::letter);
      left += move.x;
      top += move.y;
    }
    for (std::int64_t y = 0; y < std::min(path.size, height); ++y) {
      for (std::int64_t x = 0; x < std::min(path.size, width); ++x) {
        const std::int64_t pixel = wrapped(top + y, height) * width + wrapped(left + x, width);
        std::fill_n(video.values.begin() + t * frame + pixel * channels, channels,
                    std::uint8_t{255});
      }
    }
  }
  return video;
}

Motion make_motion(std::int64_t frames, std::int64_t height, std::int64_t width, Random& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(n)));
  };
  const std::int64_t turns = below(max_turns + 1), first = below(std::ssize(directions)),
                     size = 2 + below(std::min(height, width) / 4 - 1), left = below(width),
                     top = below(height);
  // Each run begins with the minimum length; the remaining moves extend random runs.
  std::array<std::int64_t, max_turns + 1> runs{};
  std::fill_n(runs.begin(), turns + 1, min_run);
  for (std::int64_t i = (turns + 1) * min_run; i < frames - 1; ++i) ++runs[below(turns + 1)];
  std::string moves;
  std::int64_t direction = first;
  for (std::int64_t run = 0; run <= turns; ++run) {
    if (run > 0) direction = (direction + 1 + 2 * below(2)) % std::ssize(directions);
    moves.append(static_cast<std::size_t>(runs[run]), directions[direction].letter);
  }
  return {fmt::format("{}{} {} {} {}", prefix, left, top, size, moves),
          fmt::format("{} {}", directions[first].name, turns)};
}

}  // namespace heed
