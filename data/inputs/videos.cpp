#include "data/inputs/videos.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "data/inputs/each_line.h"
#include "data/sources/generated/motion.h"
#include "data/sources/idx.h"
#include "data/sources/npy.h"

namespace heed {
namespace {

void check_frames(std::int64_t frames, const VideoOptions& video, const std::string& line) {
  if (frames == video.frames) return;
  throw Error(Exit::bad_input, "{}the number of frames is {}, but data.video.frames is {}",
              is_motion(line) ? fmt::format("\"{}\": ", shown(line)) : "", frames, video.frames);
}

Video video_of(const std::string& line, const ImageOptions& options, const VideoOptions& video,
               IdxFiles& files) {
  if (is_motion(line)) {
    check_frames(motion_length(line), video, line);
    return draw_motion(line, options.height, options.width, options.channels);
  }
  IdxItem item;
  if (IdxItem::parse(line, item)) {
    const IdxFile& file = files.open(item.path);
    const std::vector<std::int64_t>& shape = file.shape();
    if (shape.size() != 4)
      throw Error(Exit::bad_input,
                  "{}: expected an IDX file of videos (videos x frames x height x width), got one "
                  "of shape {}",
                  shown_path(item.path), fmt::join(shape, " x "));
    const auto values = file.item(item, "videos");
    return {shape[1], shape[2], shape[3], 1, {values.begin(), values.end()}};
  }
  if (!line.ends_with(".npy"))
    throw Error(Exit::bad_input,
                "not a video: expected a .npy file, an item of an IDX file (FILE#17) or a "
                "description (clip:...)");
  ByteArray array = read_npy_bytes(line);
  const std::vector<std::int64_t>& shape = array.shape;
  if (shape.size() != 3 && shape.size() != 4)
    throw Error(Exit::bad_input,
                "expected a video of shape (frames, height, width) or (frames, height, width, "
                "channels), got an array of shape ({})",
                fmt::join(shape, ", "));
  return {shape[0], shape[1], shape[2], shape.size() == 4 ? shape[3] : 1, std::move(array.values)};
}

OptionErrors video_errors(const DataOptions& o) {
  OptionErrors errors = image_errors(o);
  if (o.video.frames % o.video.tubelet != 0)
    errors.push_back(
        {{"data.video.frames", "data.video.tubelet"},
         fmt::format("{} is not a multiple of tubelet ({})", o.video.frames, o.video.tubelet)});
  return errors;
}

/// "1:2,3": the patch in row 2 and column 3 of the first tubelets.
std::string tubelet_name(const DataOptions& o, std::int64_t row, std::int64_t) {
  const std::int64_t patches = patches_of(o.image);
  return fmt::format("{}:{}", row / patches + 1,
                     patch_name(row % patches, o.image.width / o.image.patch));
}

}  // namespace

Videos::Videos(std::span<const std::string> lines, const ImageOptions& options,
               const VideoOptions& video, bool class_row, const std::string& what,
               std::int64_t threads)
    : Images(options, video, class_row) {
  IdxFiles files;
  std::vector<Video> all(lines.size());
  for_each_line(lines, what, threads, [&](std::size_t i) {
    all[i] = video_of(lines[i], options, video, files);
    check_frames(all[i].frames, video, lines[i]);
    if (all[i].channels != options.channels)
      throw Error(Exit::bad_input, "the number of channels is {}, but data.image.channels is {}",
                  all[i].channels, options.channels);
    check_size(all[i].height, all[i].width, "the video");
  });
  for (Video& video : all) keep(video);
}

InputInfo video_input() {
  using Options = const DataOptions&;
  return {
      .name = "video",
      .help = "an IDX file, or .npy files of bytes, as for image",
      .keys = {"image", "video"},
      .noun = "a video",
      .width = [](Options o) { return patch_width(o.image) * o.video.tubelet; },
      .rows = [](Options o) { return patches_of(o.image) * (o.video.frames / o.video.tubelet); },
      .rows_key = "data.image.patch",
      .check = video_errors,
      .captions =
          [](Options o) {
            return std::array{
                fmt::format("{} frames of {}", o.video.frames, pixels_of(o.image)),
                fmt::format("tubelets of {0} × {1} × {1}", o.video.tubelet, o.image.patch)};
          },
      .row_name = tubelet_name,
      .read = [](Options o, const InputLines& in) -> std::shared_ptr<const Inputs> {
        return std::make_shared<Videos>(in.lines, o.image, o.video, in.class_row, in.what,
                                        in.threads);
      }};
}

}  // namespace heed
