// Videos, read from files or drawn from descriptions, and converted to rows of tubelets.
#include "data/inputs/videos.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "data/sources/corpus.h"
#include "data/sources/generated/motion.h"
#include "data/sources/npy.h"
#include "data/sources/synthetic.h"
#include "tests/data/files.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(videos)

namespace {

/// n bytes: 0, 1, 2, …
std::string counting(std::size_t n) {
  std::string bytes;
  for (std::size_t i = 0; i < n; ++i) bytes += static_cast<char>(i);
  return bytes;
}

/// Options with which values are read unchanged.
ImageOptions plain(std::int64_t height, std::int64_t width, std::int64_t patch) {
  return {.height = height, .width = width, .patch = patch, .mean = 0, .deviation = 1.0 / 255};
}

Side rows_of(const Inputs& inputs, std::int64_t input, const Draw& draw = {}) {
  Side side;
  inputs.push(input, draw, side);
  return side;
}

/// The rows as integers.
std::vector<std::vector<int>> numbers(const Side& side) {
  std::vector<std::vector<int>> rows(static_cast<std::size_t>(side.rows()));
  for (std::size_t i = 0; i < side.features.size(); ++i)
    rows[i / side.width].push_back(static_cast<int>(std::lround(side.features[i])));
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tubelets_equal_hand_computed_rows) {
  const TempDir dir;
  // 4 frames of 2 x 4 pixels: frame t, pixel row y, column x contains 8 t + 4 y + x.
  const std::vector<std::string> lines{dir.write("a.npy", npy("|u1", "(4, 2, 4)", counting(32)))};
  const Videos one(lines, plain(2, 4, 2), {.frames = 4, .tubelet = 2}, false, "data", 1);
  BOOST_TEST(one.rows(0) == 4);
  BOOST_TEST((numbers(rows_of(one, 0)) ==
              std::vector<std::vector<int>>{{0, 1, 4, 5, 8, 9, 12, 13},
                                            {2, 3, 6, 7, 10, 11, 14, 15},
                                            {16, 17, 20, 21, 24, 25, 28, 29},
                                            {18, 19, 22, 23, 26, 27, 30, 31}}));
  const Videos lower(lines, plain(2, 4, 1), {.frames = 4, .tubelet = 4}, false, "data", 1);
  const auto rows = numbers(rows_of(lower, 0));  // row 4 is the first patch of pixel row 1
  BOOST_TEST((rows[1] == std::vector<int>{1, 9, 17, 25}));
  BOOST_TEST((rows[4] == std::vector<int>{4, 12, 20, 28}));
  const Videos with_class(lines, plain(2, 4, 2), {.frames = 4, .tubelet = 2}, true, "data", 1);
  const auto marked = numbers(rows_of(with_class, 0));
  BOOST_TEST((with_class.rows(0) == 5 && marked.size() == 5u));
  BOOST_TEST((marked[0] == std::vector<int>(8, 0)));
  BOOST_TEST((marked[4] == numbers(rows_of(one, 0))[3]));
  // Channels are the innermost dimension.
  ImageOptions colours = plain(1, 2, 1);
  colours.channels = 3;
  const std::vector<std::string> coloured{
      dir.write("b.npy", npy("|u1", "(2, 1, 2, 3)", counting(12)))};
  BOOST_TEST((numbers(rows_of(
                  Videos(coloured, colours, {.frames = 2, .tubelet = 2}, false, "data", 1), 0)) ==
              std::vector<std::vector<int>>{{0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10, 11}}));
}

BOOST_AUTO_TEST_CASE(video_of_one_frame_equals_image) {
  const TempDir dir;
  const std::string file = dir.write("x", idx({1, 4, 6}, counting(24)));
  const std::vector<std::string> image{file + "#0"},
      video{dir.write("x.npy", npy("|u1", "(1, 4, 6)", counting(24)))};
  const ImageOptions o{.height = 4, .width = 6, .patch = 2, .shift = 2, .flip = true};
  const Images images(image, o, true, "data", 1);
  const Videos videos(video, o, {.frames = 1, .tubelet = 1}, true, "data", 1);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch)
    BOOST_TEST((rows_of(images, 0, {3, epoch, 0}) == rows_of(videos, 0, {3, epoch, 0})));
}

BOOST_AUTO_TEST_CASE(training_transforms_all_frames_equally) {
  const TempDir dir;
  std::string dots(2 * 5 * 5, '\0');
  dots[12] = dots[25 + 12] = '\1';  // the centre of both frames
  const std::vector<std::string> lines{dir.write("x.npy", npy("|u1", "(2, 5, 5)", dots))};
  ImageOptions o = plain(5, 5, 5);
  o.shift = 1;
  const Videos shifted(lines, o, {.frames = 2, .tubelet = 1}, false, "data", 1);
  std::set<std::vector<int>> seen;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    const auto frames = numbers(rows_of(shifted, 0, {7, epoch, 0}));
    BOOST_TEST((frames[0] == frames[1]));
    seen.insert(frames[0]);
  }
  BOOST_TEST(seen.size() == 9u);
  BOOST_TEST(numbers(rows_of(shifted, 0))[1][12] == 1);  // evaluation does not shift
}

BOOST_AUTO_TEST_CASE(idx_items_are_read_as_videos) {
  const TempDir dir;
  FilesOptions files{{dir.write("x", idx({3, 2, 2, 2}, counting(24)))},
                     {dir.write("y", idx({3}, counting(3)))},
                     {}};
  Split split = read_split(files, {Reads::pairs, InputKind::video, false}, "train");
  BOOST_TEST(split.source.size() == 3u);
  const ImageOptions o = plain(2, 2, 2);
  const VideoOptions video{.frames = 2, .tubelet = 1};
  const Videos all(split.source, o, video, false, "data", 1);
  BOOST_TEST((numbers(rows_of(all, 2)) ==
              std::vector<std::vector<int>>{{16, 17, 18, 19}, {20, 21, 22, 23}}));
  const std::vector<std::string> wide{dir.write("w", idx({3, 2, 1, 3}, counting(18))) + "#1"};
  BOOST_TEST((numbers(rows_of(Videos(wide, plain(1, 3, 1), video, false, "data", 1), 0)) ==
              std::vector<std::vector<int>>{{6}, {7}, {8}, {9}, {10}, {11}}));
  split.source.push_back(files.source[0] + "#3");
  expect_error(Exit::bad_input,
               {"data: line 4: ",
                "x: there is no item #3: item numbers begin at 0, and the number of videos is 3"},
               [&] { Videos(split.source, o, video, false, "data", 1); });
  const std::vector<std::string> still{dir.write("z", idx({3, 2, 4}, counting(24))) + "#0"};
  expect_error(Exit::bad_input,
               {"z: expected an IDX file of videos ", "got one of shape 3 x 2 x 4"},
               [&] { Videos(still, o, video, false, "data", 1); });
}

BOOST_AUTO_TEST_CASE(broken_video_is_refused_with_line_number_and_file_name) {
  const TempDir dir;
  const std::string good = dir.write("good.npy", npy("|u1", "(4, 2, 4)", counting(32)));
  const auto refused = [&](const std::string& line, const std::string& why) {
    const std::vector<std::string> lines{good, line};
    expect_error(Exit::bad_input, {"data.train: line 2: ", line, why}, [&] {
      Videos(lines, plain(2, 4, 2), {.frames = 4, .tubelet = 2}, false, "data.train", 2);
    });
  };
  const auto file = [&](const std::string& bytes) { return dir.write("bad.npy", bytes); };
  refused(file(npy("|u1", "(3, 2, 4)", counting(24))),
          "the number of frames is 3, but data.video.frames is 4");
  refused(file(npy("|u1", "(4, 4, 2)", counting(32))),
          "the video has 4 x 2 pixels (height x width), but data.image requires 2 x 4");
  refused(file(npy("|u1", "(4, 2, 4, 3)", counting(96))),
          "the number of channels is 3, but data.image.channels is 1");
  refused(file(npy("|u1", "(4, 8)", counting(32))), "channels), got an array of shape (4, 8)");
  refused(file(npy("|u1", "(4, 2, 4)", counting(31))),
          "the values have 31 bytes, which does not match the shape 4 x 2 x 4");
  refused(file(npy("|u1", "(4611686018427387904, 2, 4)", counting(32))), "which does not match");
  refused(file(npy("<f4", "(4, 2, 4)", counting(128))),
          "a .npy file of type '<f4'; only uint8 ('|u1') in row-major order can be read");
  refused(file(npy("|u1", "(4, 2, 4)", counting(32), "True")), "in column-major order");
  refused(file("\x93NUMPY"), "not a .npy file");
  refused((dir / "nowhere.npy").string(), "nowhere.npy");
  refused((dir / "image.png").string(), "not a video: expected a .npy file");
  refused("clip:1 2 1 rr",
          "line 2: \"clip:1 2 1 rr\": the number of frames is 3, but data.video.frames is 4");
  refused("clip:1 2 0 rrr", "\"clip:1 2 0 rrr\" is not a video");
}

BOOST_AUTO_TEST_CASE(drawn_motion_equals_hand_drawn_frames) {
  const Video video = draw_motion("clip:3 0 2 rdl", 3, 5, 1);
  BOOST_TEST((video.frames == 4 && video.height == 3 && video.width == 5 && video.channels == 1));
  std::string drawn;
  for (std::size_t i = 0; i < video.values.size(); ++i) {
    drawn += video.values[i] == 255 ? '#' : '.';
    if (i % 5 == 4) drawn += i % 15 == 14 ? ' ' : '/';
  }
  BOOST_TEST(drawn == "...##/...##/..... #...#/#...#/..... ...../#...#/#...# ...../...##/...## ");
  BOOST_TEST(draw_motion("clip:0 0 9 ", 3, 5, 3).values.size() == 45u);  // one frame, all white
  BOOST_TEST((is_motion("clip:x") && !is_motion("video.npy")));
  for (const char* wrong :
       {"clip:", "clip:1 2 3", "clip:1 2 3  r", "clip:1 2 0 r", "clip:-1 2 3 r", "clip:1 2 3 x",
        "clip:1 2 3 r ", "clip:70000 2 3 r", "clip:1 2 99999999999999999999 r", "clip:1 2 r"})
    expect_error(Exit::bad_input, {wrong, "is not a video", "LEFT TOP SIZE MOVES"},
                 [&] { draw_motion(wrong, 4, 8, 3); });
}

namespace {

/// The side of the square, computed from the number of white pixels of a frame.
std::int64_t side_of(const std::uint8_t* frame, std::int64_t pixels) {
  const auto white = std::count(frame, frame + pixels, 255);
  return std::lround(std::sqrt(static_cast<double>(white)));
}

/// The top left corner (x, y) of a square on a field of n x n pixels that wraps around: the white
/// pixel whose left and upper neighbours are black.
std::pair<std::int64_t, std::int64_t> corner_of(const std::uint8_t* frame, std::int64_t n) {
  const auto white = [&](std::int64_t y, std::int64_t x) {
    return frame[(y + n) % n * n + (x + n) % n] == 255;
  };
  for (std::int64_t y = 0; y < n; ++y) {
    for (std::int64_t x = 0; x < n; ++x)
      if (white(y, x) && !white(y, x - 1) && !white(y - 1, x)) return {x, y};
  }
  return {-1, -1};
}

/// The label of a video, determined from its frames.
std::string watched(const std::string& line, std::int64_t frames, std::int64_t n) {
  const Video video = draw_motion(line, n, n, 1);
  BOOST_REQUIRE(video.frames == frames);
  const std::map<std::pair<std::int64_t, std::int64_t>, std::string> names{
      {{1, 0}, "right"}, {{n - 1, 0}, "left"}, {{0, 1}, "down"}, {{0, n - 1}, "up"}};
  std::string first, last;
  int turns = 0, run = 2;
  for (std::int64_t t = 0; t + 1 < frames; ++t) {
    const auto a = corner_of(video.values.data() + t * n * n, n),
               b = corner_of(video.values.data() + (t + 1) * n * n, n);
    const std::string& direction =
        names.at({(b.first - a.first + n) % n, (b.second - a.second + n) % n});
    if (t == 0) first = direction;
    const bool turned = t > 0 && direction != last;
    if (turned) {
      const auto vertical = [](const std::string& name) { return name == "up" || name == "down"; };
      BOOST_TEST(vertical(direction) != vertical(last));  // a turn is by 90 degrees
      BOOST_TEST(run >= 2);
      ++turns;
    }
    run = turned || t == 0 ? 1 : run + 1;
    last = direction;
  }
  BOOST_TEST(run >= 2);
  return fmt::format("{} {}", first, turns);
}

}  // namespace

BOOST_AUTO_TEST_CASE(motion_labels_are_correct_and_independent_of_middle_frame) {
  constexpr std::int64_t n = 16, frames = 9;
  const Corpus corpus =
      synthetic_corpus({.name = SyntheticKind::motion, .train = 16000, .valid = 50, .test = 50}, 1,
                       {.height = n, .width = n}, {.frames = frames});
  std::map<std::string, std::int64_t> labels;
  std::map<std::string, std::map<std::int64_t, std::int64_t>>
      positions;  // counts by label and by cell (4 x 4 pixels) of the middle frame
  std::set<std::int64_t> sizes;
  for (std::size_t i = 0; i < corpus.train.source.size(); ++i) {
    const std::string &line = corpus.train.source[i], &label = corpus.train.target[i];
    ++labels[label];
    if (i < 2000) BOOST_TEST(watched(line, frames, n) == label, line);
    const Video video = draw_motion(line, n, n, 1);
    const std::uint8_t* const middle = video.values.data() + frames / 2 * n * n;
    const auto [x, y] = corner_of(middle, n);
    ++positions[label][y / 4 * 4 + x / 4];
    sizes.insert(side_of(middle, n * n));
  }
  BOOST_TEST((sizes == std::set<std::int64_t>{2, 3, 4}));
  BOOST_TEST(labels.size() == 16u);
  for (const auto& [label, count] : labels) {
    BOOST_TEST(std::abs(count - 1000) < 160, label);  // 5 standard deviations
    double chi_squared = 0;  // 16 equally likely cells: 15 degrees of freedom
    for (std::int64_t square = 0; square < 16; ++square) {
      const double expected = static_cast<double>(count) / 16,
                   off = static_cast<double>(positions[label][square]) - expected;
      chi_squared += off * off / expected;
    }
    BOOST_TEST(chi_squared < 45, label);  // p = 8e-5
  }
}

BOOST_AUTO_TEST_SUITE_END()
