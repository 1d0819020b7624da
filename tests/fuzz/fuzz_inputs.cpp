/// Images, matrices of features, sound and video: a letter for the kind of file, a newline, then
/// the file.
///   p  a colour image   g  an image, read as grey   i  an IDX file   n  a .npy file
///   w  a WAV file   v  a .npy file of a video   m  no file: the description of a video
#include <cmath>

#include "data/inputs/features.h"
#include "data/inputs/videos.h"
#include "data/sources/generated/motion.h"
#include "data/sources/idx.h"
#include "data/sources/image.h"
#include "data/sources/npy.h"
#include "data/sources/sound.h"
#include "tests/fuzz/target.h"

namespace heed::fuzz {
namespace {

/// Runs `read`. An Error must have the code bad_input and a message that begins with `path`.
void refused_by_name(const std::string& path, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, path + ": ");
    throw;
  }
}

void read_one_image(const std::string& path, std::int64_t channels) {
  Image image;
  refused_by_name(path, [&] { image = read_image(path, channels); });
  require(image.height > 0 && image.width > 0, "an image has pixels");
  require(image.channels == channels, "an image has the requested number of channels");
  require(std::ssize(image.values) == image.height * image.width * channels,
          "an image has a value for each pixel and channel");
}

void read_idx(const std::string& path) {
  IdxFile file;
  refused_by_name(path, [&] { file = IdxFile::read(path); });
  require(IdxFile::is(path), "an accepted file has the beginning of an IDX file");
  std::size_t values = 0, item = 1;
  for (std::size_t d = 1; d < file.shape().size(); ++d)
    item *= static_cast<std::size_t>(file.shape()[d]);
  for (std::int64_t i = 0; item > 0 && i < file.size(); ++i) values += file[i].size();
  require(item == 0 || values == item * static_cast<std::size_t>(file.size()),
          "all items have the stated size");
}

void read_matrix(const std::string& path) {
  Matrix matrix;
  refused_by_name(path, [&] { matrix = read_npy(path); });
  require(std::ssize(matrix.values) == matrix.rows * matrix.columns,
          "a matrix has rows times columns values");
  if (matrix.columns < 1 || matrix.columns > 64) return;
  // Features, the input of the model, must be finite.
  const FeatureOptions options{.width = matrix.columns, .stack = 2, .normalise = true};
  const std::vector<std::string> lines{path};
  const Features features(lines, options, true, "data", 1);
  Side side;
  must_work([&] { features.push(0, {}, side); });
  for (const float v : side.features) require(std::isfinite(v), "a feature is finite");
}

void read_video(const std::string& path) {
  ByteArray array;
  refused_by_name(path, [&] { array = read_npy_bytes(path); });
  std::size_t values = 1;
  for (const std::int64_t n : array.shape) values *= static_cast<std::size_t>(n);
  require(array.values.size() == values, "the number of values matches the shape of an array");
  const bool video = array.shape.size() == 3 && values > 0 && array.shape[0] < 64 &&
                     array.shape[1] < 64 && array.shape[2] < 64;
  if (!video) return;
  const ImageOptions image{.height = array.shape[1], .width = array.shape[2], .patch = 1};
  const std::vector<std::string> lines{path};
  must_work([&] {
    Side side;
    Videos(lines, image, {.frames = array.shape[0], .tubelet = 1}, true, "data", 1)
        .push(0, {}, side);
    require(side.features.size() == values + 1,
            "a video has a feature for each pixel, and one for the class token");
  });
}

void draw_video(const std::string& moves) {
  const std::string line = "clip:" + moves;
  const Video video = draw_motion(line, 9, 7, 3);
  require(video.frames >= 1 && std::ssize(video.values) == video.frames * 9 * 7 * 3,
          "the number of values matches the frames of a video");
  require(motion_length(line) == video.frames,
          "a video has the number of frames that motion_length returns");
}

void read_sound(const std::string& path) {
  constexpr std::int64_t rate = 8000;
  std::vector<float> samples;
  refused_by_name(path, [&] { samples = read_wav(path, rate); });
  for (const float s : samples) require(std::isfinite(s), "a sample is finite");
  const FeatureOptions options{.width = 5, .rate = rate, .window = 4, .hop = 2};
  must_work([&] {
    const std::vector<float> rows = log_mel(samples, options);
    for (const float v : rows) require(std::isfinite(v), "a value of a spectrum is finite");
  });
}

}  // namespace

void target(std::string_view input) {
  Bytes bytes(input);
  const std::string_view kind = bytes.until("\n");
  const auto file = [&](const char* name) { return put(name, bytes.rest()).string(); };
  if (kind == "p") return read_one_image(file("x.png"), 3);
  if (kind == "g") return read_one_image(file("x.png"), 1);
  if (kind == "i") return read_idx(file("x.idx"));
  if (kind == "n") return read_matrix(file("x.npy"));
  if (kind == "w") return read_sound(file("x.wav"));
  if (kind == "v") return read_video(file("x.npy"));
  if (kind == "m") return draw_video(std::string(bytes.rest()));
  throw Error(Exit::bad_input,
              "unknown kind of file: expected one of the letters p, g, i, n, w, v, m");
}

}  // namespace heed::fuzz
