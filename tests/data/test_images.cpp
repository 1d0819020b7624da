// Images, read from files and converted to rows of patches.
#include "data/inputs/images.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <map>
#include <set>

#include "autograd/io/lines.h"
#include "data/sources/corpus.h"
#include "data/sources/generated/drawings.h"
#include "data/sources/idx.h"
#include "data/sources/image.h"
#include "data/sources/synthetic.h"
#include "tests/data/files.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(images)

namespace {

/// height × width × channels values: 0, 1, 2, … (modulo 256).
Image counting(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image p{height, width, channels, {}};
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    p.values.push_back(static_cast<std::uint8_t>(i));
  return p;
}

std::string pnm(const Image& p, const std::string& comment = "") {
  return fmt::format("P{}\n{}{} {}\n255\n", p.channels == 1 ? 5 : 6, comment, p.width, p.height) +
         std::string(p.values.begin(), p.values.end());
}

std::string jpeg(const Image& p) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  BOOST_REQUIRE(tjCompress2(encoder, p.values.data(), static_cast<int>(p.width), 0,
                            static_cast<int>(p.height), p.channels == 1 ? TJPF_GRAY : TJPF_RGB,
                            &bytes, &size, p.channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 100,
                            0) == 0);
  std::string result(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return result;
}

std::string bytes_of(const Image& p) { return {p.values.begin(), p.values.end()}; }

Side rows_of(const Inputs& inputs, std::int64_t input, const Draw& draw = {}) {
  Side side;
  inputs.push(input, draw, side);
  return side;
}

}  // namespace

BOOST_AUTO_TEST_CASE(read_image_returns_written_pixels) {
  const TempDir dir;
  for (const std::int64_t channels : {1, 3}) {
    const Image p = counting(5, 7, channels);
    for (const std::string& bytes : {png_of(p), pnm(p), pnm(p, "# a comment\n")}) {
      const Image read = read_image(dir.write("image", bytes), channels);
      BOOST_TEST((read.height == 5 && read.width == 7 && read.channels == channels));
      BOOST_TEST((read.values == p.values));
    }
    const Image read = read_image(dir.write("image", jpeg(p)), channels);
    BOOST_REQUIRE(read.values.size() == p.values.size());
    for (std::size_t i = 0; i < p.values.size(); ++i)
      BOOST_TEST(std::abs(read.values[i] - p.values[i]) <= 12);  // JPEG is lossy
  }
}

BOOST_AUTO_TEST_CASE(grey_and_colour_images_are_converted_to_requested_channels) {
  const TempDir dir;
  const Image grey = counting(3, 4, 1);
  for (const std::string& bytes : {png_of(grey), pnm(grey)}) {
    const Image colours = read_image(dir.write("grey", bytes), 3);
    for (std::size_t i = 0; i < 12; ++i) {
      for (std::size_t c = 0; c < 3; ++c) BOOST_TEST(colours.values[3 * i + c] == grey.values[i]);
    }
  }
  Image colours{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
  const Image luma = read_image(dir.write("colours", pnm(colours)), 1);
  BOOST_TEST((luma.values == std::vector<std::uint8_t>{76, 150, 29}));  // BT.601
}

BOOST_AUTO_TEST_CASE(broken_image_is_refused) {
  const TempDir dir;
  const Image p = counting(40, 40, 3);
  const auto refused = [&](const std::string& bytes, const char* why) {
    const std::string path = dir.write("broken", bytes);
    expect_error(Exit::bad_input, {why, path}, [&] { read_image(path, 3); });
  };
  refused("", "empty file");
  refused("GIF89a....", "not a PNG, JPEG, PGM or PPM file");
  const std::string png = png_of(p), jpeg_file = jpeg(p);
  refused(png.substr(0, png.size() / 2), "a broken PNG file");
  refused(png.substr(0, 12), "a broken PNG file");
  refused(jpeg_file.substr(0, jpeg_file.size() / 2), "a broken JPEG file");
  refused(jpeg_file.substr(0, 10), "a broken JPEG file");
  std::string damaged = png;
  damaged[damaged.size() / 2] ^= 0x55;
  refused(damaged, "a broken PNG file");
  refused(pnm(p).substr(0, 200), "a PGM or PPM file that ends too early");
  refused("P6\n40 40\n65535\n", "whose maximum value is not 255");
  refused("P6\n0 40\n255\n", "an image of 40 x 0 pixels");
  refused("P6\n-1 40\n255\n", "an image of 40 x -1 pixels");
  refused("P6\n99999999 99999999\n255\n", "an image of 99999999 x 99999999 pixels");
  expect_error(Exit::bad_input, {"nowhere.png"},
               [&] { read_image((dir / "nowhere.png").string(), 3); });
}

BOOST_AUTO_TEST_CASE(idx_file_is_read_and_broken_idx_file_is_refused) {
  const TempDir dir;
  const std::string two = bytes_of(counting(4, 3, 1));
  const IdxFile file = IdxFile::read(dir.write_gz("x.gz", idx({2, 2, 3}, two)));
  BOOST_TEST((file.shape() == std::vector<std::int64_t>{2, 2, 3}));
  BOOST_TEST((file.size() == 2 && file[1].size() == 6 && file[1][0] == 6));
  BOOST_TEST(IdxFile::is(dir.write("y", idx({2, 2, 3}, two))));
  BOOST_TEST(!IdxFile::is(dir.write("z", "a list\n")));
  BOOST_TEST(!IdxFile::is(dir.write("empty", "")));
  const auto refused = [&](const std::string& bytes, const char* why) {
    const std::string path = dir.write("broken", bytes);
    expect_error(Exit::bad_input, {why, path}, [&] { IdxFile::read(path); });
  };
  refused("", "not an IDX file");
  refused("\xEF\xBB\xBF" + idx({2, 2, 3}, two), "not an IDX file");  // a byte-order mark
  refused(idx({2, 2, 3}, two).substr(0, 9), "ends within its header");
  refused(idx({2, 2, 3}, two + "x"), "declares 2 x 2 x 3 values, but 13 follow");
  refused(idx({1u << 31, 1u << 31, 2}, two), "values, but 12 follow");
  refused(idx({2}, "ab", 0x0D), "whose values are not bytes");
  IdxItem item;
  BOOST_TEST((IdxItem::parse("a/b#c#12", item) && item.path == "a/b#c" && item.number == 12));
  for (const char* line : {"a", "a#", "a#x", "a#-1", "a#1x"})
    BOOST_TEST(!IdxItem::parse(line, item));
}

BOOST_AUTO_TEST_CASE(patches_of_image_are_rows_in_raster_order) {
  const TempDir dir;
  const std::vector<std::string> lines{dir.write("p", pnm(counting(4, 6, 3)))};
  ImageOptions o{
      .height = 4, .width = 6, .channels = 3, .patch = 2, .mean = 0, .deviation = 1.0 / 255};
  const Images plain(lines, o, false, "data", 1);
  BOOST_TEST(plain.rows(0) == 6);
  const Side side = rows_of(plain, 0);
  BOOST_TEST((side.width == 12 && side.rows() == 6 && side.features.size() == 72u));
  // Row 4 is the patch of pixel rows 2 and 3, columns 2 and 3.
  for (std::int64_t y = 0; y < 2; ++y) {
    for (std::int64_t k = 0; k < 6; ++k) {
      const double expected = static_cast<double>((2 + y) * 18 + 6 + k);
      BOOST_CHECK_SMALL(side.features[4 * 12 + y * 6 + k] - expected, 1e-3);
    }
  }
  const Side with_class = rows_of(Images(lines, o, true, "data", 1), 0);
  BOOST_TEST(with_class.rows() == 7);
  for (std::size_t i = 0; i < 12; ++i) BOOST_TEST(with_class.features[i] == 0);
  BOOST_TEST((std::vector<float>(with_class.features.begin() + 12, with_class.features.end()) ==
              side.features));
  o.mean = 0.5;
  o.deviation = 0.25;
  const Side normal = rows_of(Images(lines, o, false, "data", 1), 0);
  BOOST_CHECK_SMALL(normal.features[1] - (1.0 / 255 - 0.5) / 0.25, 1e-6);
}

BOOST_AUTO_TEST_CASE(training_augments_images_and_evaluation_does_not) {
  const TempDir dir;
  Image dot{5, 5, 1, std::vector<std::uint8_t>(25)};
  dot.values[12] = 255;  // the centre
  const std::vector<std::string> lines{dir.write("dot", pnm(dot))};
  ImageOptions o{.height = 5, .width = 5, .patch = 1, .shift = 1, .mean = 0, .deviation = 1};
  const Images shifted(lines, o, false, "data", 1);
  const auto position = [](const Side& side) {
    return std::ranges::find(side.features, 1.0f) - side.features.begin();
  };
  BOOST_TEST(position(rows_of(shifted, 0)) == 12);
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    const Draw draw{7, epoch, 0};
    const Side side = rows_of(shifted, 0, draw);
    BOOST_TEST((rows_of(shifted, 0, draw) == side));
    seen.insert(position(side));
  }
  BOOST_TEST((seen == std::set<std::int64_t>{6, 7, 8, 11, 12, 13, 16, 17, 18}));
  o.height = o.width = 3;
  o.shift = 0;
  expect_error(Exit::bad_input,
               {"data.train: line 1: ", "dot",
                "the image has 5 x 5 pixels (height x width), but data.image requires 3 x 3; "
                "set data.image.crop to accept larger sizes"},
               [&] { Images(lines, o, false, "data.train", 1); });
  o.crop = true;
  const Images cropped(lines, o, false, "data", 1);
  BOOST_TEST(position(rows_of(cropped, 0)) == 4);
  seen.clear();
  for (std::int64_t epoch = 0; epoch < 200; ++epoch)
    seen.insert(position(rows_of(cropped, 0, {7, epoch, 0})));
  BOOST_TEST(seen.size() == 9u);
  Image left{1, 4, 1, {255, 0, 0, 0}};
  const std::vector<std::string> one{dir.write("left", pnm(left))};
  const Images mirrored(
      one, {.height = 1, .width = 4, .patch = 1, .flip = true, .mean = 0, .deviation = 1}, false,
      "data", 1);
  int right = 0;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch)
    right += position(rows_of(mirrored, 0, {7, epoch, 0})) == 3 ? 1 : 0;
  BOOST_TEST(std::abs(right - 200) < 5 * 10);  // 5 standard deviations
  BOOST_TEST(position(rows_of(mirrored, 0)) == 0);
}

// Crops, shifts and reflections of an image without symmetry. Every image that these definitions
// allow, and no other, occurs in training, all equally often.
BOOST_AUTO_TEST_CASE(augmented_images_are_the_reflected_shifted_crops) {
  const TempDir dir;
  constexpr std::int64_t height = 4, width = 6, channels = 3;
  const Image whole = counting(height, width, channels);
  const std::vector<std::string> lines{dir.write("p", pnm(whole))};
  for (const std::int64_t shift : {0, 1}) {
    const ImageOptions o{.height = 3,
                         .width = 4,
                         .channels = channels,
                         .patch = 1,
                         .shift = shift,
                         .crop = true,
                         .flip = true,
                         .mean = 0,
                         .deviation = 1.0 / 255};
    const Images images(lines, o, false, "data", 1);
    std::map<std::vector<float>, int> expected, seen;  // the number of ways to make each image
    int ways = 0;
    for (std::int64_t top = 0; top <= height - o.height; ++top) {
      for (std::int64_t left = 0; left <= width - o.width; ++left) {
        for (std::int64_t dy = -shift; dy <= shift; ++dy) {
          for (std::int64_t dx = -shift; dx <= shift; ++dx) {
            for (const bool mirrored : {false, true}) {
              std::vector<float> values;
              for (std::int64_t y = top + dy; y < top + dy + o.height; ++y) {
                for (std::int64_t k = 0; k < o.width; ++k) {
                  const std::int64_t x = left + dx + (mirrored ? o.width - 1 - k : k);
                  for (std::int64_t c = 0; c < channels; ++c) {
                    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
                    values.push_back(inside ? static_cast<float>((y * width + x) * channels + c)
                                            : 0);
                  }
                }
              }
              ++expected[values];
              ++ways;
            }
          }
        }
      }
    }
    const int draws = 400 * ways;
    for (std::int64_t epoch = 0; epoch < draws; ++epoch) {
      std::vector<float> values = rows_of(images, 0, {7, epoch, 0}).features;
      for (float& v : values) v = std::round(v);
      ++seen[values];
    }
    BOOST_TEST(seen.size() == expected.size());
    for (const auto& [values, n] : expected) {
      const double mean = 400.0 * n;
      BOOST_TEST(std::abs(seen[values] - mean) < 5 * std::sqrt(mean));  // 5 standard deviations
    }
  }
}

BOOST_AUTO_TEST_CASE(evaluation_crops_the_centre_of_an_image_that_is_not_a_square) {
  const TempDir dir;
  const std::vector<std::string> lines{dir.write("p", pnm(counting(4, 9, 1)))};
  const auto cropped = [&](std::int64_t height, std::int64_t width) {
    const ImageOptions o{.height = height,
                         .width = width,
                         .patch = 1,
                         .crop = true,
                         .mean = 0,
                         .deviation = 1.0 / 255};
    return rows_of(Images(lines, o, false, "data", 1), 0).features;
  };
  const std::vector<float> found = cropped(2, 5);  // from row 1 and column 2 on
  for (std::int64_t y = 0; y < 2; ++y) {
    for (std::int64_t x = 0; x < 5; ++x)
      BOOST_CHECK_SMALL(found[y * 5 + x] - static_cast<float>((1 + y) * 9 + 2 + x), 1e-3F);
  }
  for (const auto& sides : {std::pair(3, 10), {5, 5}})  // one of the sides is too short
    expect_error(Exit::bad_input,
                 {"the image has 4 x 9 pixels (height x width), but data.image requires ",
                  fmt::format("{} x {}", sides.first, sides.second)},
                 [&] { cropped(sides.first, sides.second); });
}

BOOST_AUTO_TEST_CASE(image_splits_are_read_from_idx_files_and_lists) {
  const TempDir dir;
  const std::string images = idx({3, 2, 2}, bytes_of(counting(3, 4, 1))),
                    labels = idx({3}, {'\7', '\0', '\11'});
  FilesOptions files{{dir.write("x", images)}, {dir.write_gz("y.gz", labels)}, {}};
  const ReadOptions read_options{Reads::pairs, InputKind::image, false};
  Split split = read_split(files, read_options, "train");
  BOOST_TEST(
      (split.source == std::vector<std::string>{files.source[0] + "#0", files.source[0] + "#1",
                                                files.source[0] + "#2"}));
  BOOST_TEST((split.target == std::vector<std::string>{"7", "0", "9"}));
  const Images album(split.source,
                     {.height = 2, .width = 2, .patch = 2, .mean = 0, .deviation = 1.0 / 255},
                     false, "data", 1);
  BOOST_CHECK_SMALL(rows_of(album, 2).features[3] - 11.0f, 1e-4f);
  const std::vector<std::string> coloured{
      dir.write("c", idx({2, 2, 3, 3}, bytes_of(counting(4, 9, 1)))) + "#1"};
  const Side pixels = rows_of(
      Images(
          coloured,
          {.height = 2, .width = 3, .channels = 3, .patch = 1, .mean = 0, .deviation = 1.0 / 255},
          false, "data", 1),
      0);
  BOOST_REQUIRE((pixels.width == 3 && pixels.rows() == 6));
  for (std::size_t i = 0; i < 18; ++i)
    BOOST_CHECK_SMALL(pixels.features[i] - static_cast<float>(18 + i), 1e-3F);
  split.source.push_back(files.source[0] + "#3");
  expect_error(
      Exit::bad_input,
      {"line 4", "there is no item #3: item numbers begin at 0, and the number of images is 3"},
      [&] { Images(split.source, {.height = 2, .width = 2}, false, "data", 1); });
  files.source = {dir.write("list.csv", "a.png,a cat, perhaps\nb/c.png,dog\n")};
  files.target = {};
  split = read_split(files, read_options, "train");
  BOOST_TEST((split.source ==
              std::vector<std::string>{(dir / "a.png").string(), (dir / "b/c.png").string()}));
  BOOST_TEST((split.target == std::vector<std::string>{"a cat, perhaps", "dog"}));
  files.source = {dir.write("list.csv", "a.png,cat\nb.png\n")};
  expect_error(Exit::bad_input, {"list.csv:2: no comma; expected FILE,TARGET"},
               [&] { read_split(files, read_options, "train"); });
  files.target = {dir.write("t", "x\ny\n")};
  expect_error(Exit::usage, {"data.train.target: ", "list.csv already contains the targets"},
               [&] { read_split(files, read_options, "train"); });
  files.source = {dir.write("list", "a.png\nb.png\n")};
  BOOST_TEST(read_split(files, read_options, "train").target[1] == "y");
  files.target = {dir.write("images", images)};
  expect_error(Exit::bad_input, {"expected an IDX file of labels, got one of shape 3 x 2 x 2"},
               [&] { read_split(files, read_options, "train"); });
}

BOOST_AUTO_TEST_CASE(drawings_equal_hand_drawn_pixels) {
  const Image p = draw_image("drawing:red square 1 2 2;white cross 4 0 3", 4, 8, 3);
  BOOST_TEST((p.height == 4 && p.width == 8 && p.channels == 3));
  const auto at = [&](std::int64_t y, std::int64_t x) {
    const auto* const v = p.values.data() + (y * 8 + x) * 3;
    return v[0] == 0 ? '.' : v[1] == 40 ? 'r' : 'w';
  };
  std::string rows;
  for (std::int64_t y = 0; y < 4; ++y) {
    for (std::int64_t x = 0; x < 8; ++x) rows += at(y, x);
    rows += '/';
  }
  BOOST_TEST(rows == ".....w../....www./.rr..w../.rr...../");
  const Image grey = draw_image("drawing:red square 0 0 1;blue square 7 3 9", 4, 8, 1);
  BOOST_TEST(static_cast<int>(grey.values.front()) == (230 + 40 + 40) / 3);
  BOOST_TEST(static_cast<int>(grey.values.back()) ==
             (50 + 80 + 240) / 3);  // the square extends beyond the image
  for (const char* wrong : {"drawing:", "drawing:red square 1 2", "drawing:red square 1 2 3 4",
                            "drawing:pink square 1 2 3", "drawing:red square 1 2 0",
                            "drawing:red square 1 2 3;", "drawing:red square 1 2 3 x"})
    expect_error(Exit::bad_input, {"is not a drawing", "with colours red, green"},
                 [&] { draw_image(wrong, 4, 8, 3); });
  BOOST_TEST((is_drawing("drawing:x") && !is_drawing("image.png")));
  // The message about an invalid line contains the number of the line.
  expect_error(Exit::bad_input, {"data: line 2: \"drawing:red\" is not a drawing"}, [] {
    Images(std::vector<std::string>{"drawing:red square 1 2 3", "drawing:red"},
           {.height = 8, .width = 8, .channels = 3}, false, "data", 1);
  });
}

namespace {

/// The bounding box of a shape that is drawn alone: left, top, right, bottom.
std::array<std::int64_t, 4> box(const std::string& shape, std::int64_t side) {
  const Image p = draw_image("drawing:" + shape, side, side, 1);
  std::array<std::int64_t, 4> box{side, side, -1, -1};
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      if (p.values[static_cast<std::size_t>(y * side + x)] > 0)
        box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x), std::max(box[3], y)};
  return box;
}

}  // namespace

BOOST_AUTO_TEST_CASE(captions_are_correct_and_test_captions_do_not_occur_in_train) {
  const ImageOptions image{.height = 32, .width = 32, .channels = 3};
  const Corpus corpus = synthetic_corpus(
      {.name = SyntheticKind::captions, .train = 3000, .valid = 100, .test = 200}, 1, image);
  std::set<std::string> trained(corpus.train.target.begin(), corpus.train.target.end()), relations;
  for (const std::string& caption : corpus.test.target) BOOST_TEST(!trained.contains(caption));
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string shapes = corpus.train.source[i].substr(8), caption = corpus.train.target[i],
                      first = shapes.substr(0, shapes.find(';')),
                      second = shapes.substr(first.size() + 1);
    const auto a = box(first, 32), b = box(second, 32);
    const auto name = [](const std::string& shape) {
      return "a " + shape.substr(0, shape.find(' ', shape.find(' ') + 1));
    };
    const std::string relation =
        a[2] < b[0] && caption.find(" left of ") != std::string::npos    ? "left of"
        : b[2] < a[0] && caption.find(" right of ") != std::string::npos ? "right of"
        : a[3] < b[1] && caption.find(" above ") != std::string::npos    ? "above"
        : b[3] < a[1]                                                    ? "below"
                                                                         : "none";
    BOOST_TEST(caption == name(first) + " " + relation + " " + name(second));
    relations.insert(relation);
  }
  BOOST_TEST(relations.size() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
