#include "data/inputs/images.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "data/inputs/each_line.h"
#include "data/sources/generated/drawings.h"
#include "data/sources/idx.h"

namespace heed {
namespace {

Video image_of(const std::string& line, const ImageOptions& options, IdxFiles& files) {
  const auto still = [](Image&& p) {
    return Video{1, p.height, p.width, p.channels, std::move(p.values)};
  };
  const std::int64_t channels = options.channels;
  if (is_drawing(line)) return still(draw_image(line, options.height, options.width, channels));
  IdxItem item;
  if (!IdxItem::parse(line, item)) return still(read_image(line, channels));
  const IdxFile& file = files.open(item.path);
  const std::vector<std::int64_t>& shape = file.shape();
  const std::int64_t image_channels = shape.size() == 4 ? shape[3] : 1;
  if (shape.size() < 3 || image_channels != channels) {
    throw Error(Exit::bad_input,
                "{}: expected an IDX file of images whose number of channels is {} "
                "(data.image.channels), got one of shape {}",
                shown_path(item.path), channels, fmt::join(shape, " x "));
  }
  const auto values = file.item(item, "images");
  return {1, shape[1], shape[2], image_channels, {values.begin(), values.end()}};
}

}  // namespace

Images::Images(std::span<const std::string> lines, const ImageOptions& options, bool class_row,
               const std::string& what, std::int64_t threads)
    : Images(options, {.frames = 1, .tubelet = 1}, class_row) {
  IdxFiles files;
  std::vector<Video> all(lines.size());
  for_each_line(lines, what, threads, [&](std::size_t i) {
    all[i] = image_of(lines[i], options, files);
    check_size(all[i].height, all[i].width, "the image");
  });
  for (Video& image : all) keep(image);
}

void Images::check_size(std::int64_t height, std::int64_t width, const char* noun) const {
  const bool same = height == options_.height && width == options_.width,
             enough = height >= options_.height && width >= options_.width;
  if (same || (options_.crop && enough)) return;
  throw Error(Exit::bad_input,
              "{} has {} x {} pixels (height x width), but data.image requires {} x {}{}", noun,
              height, width, options_.height, options_.width,
              enough ? "; set data.image.crop to accept larger sizes" : "");
}

void Images::keep(Video& video) {
  items_.push_back({pixels_.size(), video.height, video.width});
  pixels_.insert(pixels_.end(), video.values.begin(), video.values.end());
  video.values = {};
}

std::int64_t Images::rows(std::int64_t) const {
  return (class_row_ ? 1 : 0) + patches_of(options_) * (video_.frames / video_.tubelet);
}

std::span<const std::uint8_t> Images::pixels(const Item& item) const {
  return std::span(pixels_).subspan(
      item.begin,
      static_cast<std::size_t>(video_.frames * item.height * item.width * options_.channels));
}

void Images::push(std::int64_t input, const Draw& draw, Side& side) const {
  const Item& item = items_[input];
  const std::span<const std::uint8_t> values = pixels(item);
  Random random = draw.random(Stream::augment);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(n)));
  };
  const std::int64_t spare_y = item.height - options_.height, spare_x = item.width - options_.width,
                     shift = options_.shift;
  std::int64_t top = spare_y / 2, left = spare_x / 2;
  bool mirrored = false;
  if (draw.epoch) {
    if (spare_y > 0) top = below(spare_y + 1);
    if (spare_x > 0) left = below(spare_x + 1);
    if (shift > 0) {
      top += below(2 * shift + 1) - shift;
      left += below(2 * shift + 1) - shift;
    }
    mirrored = options_.flip && below(2) == 1;
  }
  const std::int64_t c = options_.channels, p = options_.patch;
  side.width = patch_width(options_) * video_.tubelet;
  if (side.offsets.empty()) side.offsets.push_back(0);
  if (class_row_) side.features.resize(side.features.size() + static_cast<std::size_t>(side.width));
  const auto value = [&](std::int64_t frame, std::int64_t y, std::int64_t x, std::int64_t channel) {
    if (mirrored) x = options_.width - 1 - x;
    y += top;
    x += left;
    const bool inside = y >= 0 && y < item.height && x >= 0 && x < item.width;
    const double v =
        inside ? values[((frame * item.height + y) * item.width + x) * c + channel] : 0;
    return static_cast<float>((v / 255 - options_.mean) / options_.deviation);
  };
  const auto push_patch = [&](std::int64_t frame, std::int64_t py, std::int64_t px) {
    for (std::int64_t y = py; y < py + p; ++y) {
      for (std::int64_t x = px; x < px + p; ++x)
        for (std::int64_t k = 0; k < c; ++k) side.features.push_back(value(frame, y, x, k));
    }
  };
  for (std::int64_t first = 0; first < video_.frames; first += video_.tubelet) {
    for (std::int64_t py = 0; py < options_.height; py += p) {
      for (std::int64_t px = 0; px < options_.width; px += p)
        for (std::int64_t t = first; t < first + video_.tubelet; ++t) push_patch(t, py, px);
    }
  }
  side.offsets.push_back(side.offsets.back() + static_cast<std::int32_t>(rows(input)));
}

void Images::add_to(Sha256& sum, std::int64_t input) const {
  sum.update(std::as_bytes(pixels(items_[input])));
}

OptionErrors image_errors(const DataOptions& o) {
  const ImageOptions& image = o.image;
  OptionErrors errors;
  for (const auto& [key, side] :
       {std::pair("data.image.height", image.height), std::pair("data.image.width", image.width)}) {
    if (side % image.patch != 0)
      errors.push_back({{key, "data.image.patch"},
                        fmt::format("{} is not a multiple of patch ({})", side, image.patch)});
  }
  if (image.channels == 2)
    errors.push_back({{"data.image.channels"}, "2: images have 1 or 3 channels"});
  return errors;
}

std::string pixels_of(const ImageOptions& o) {
  return fmt::format("{} × {} pixels, {} channel{}", o.height, o.width, o.channels,
                     o.channels == 1 ? "" : "s");
}

std::string patch_name(std::int64_t patch, std::int64_t columns) {
  return fmt::format("{},{}", patch / columns + 1, patch % columns + 1);
}

InputInfo image_input() {
  using Options = const DataOptions&;
  return {.name = "image",
          .help =
              "an IDX file, or PNG, JPEG, PGM or PPM files, as a list, a table, or a folder with a "
              "subfolder for each class",
          .keys = {"image"},
          .noun = "an image",
          .convolved = true,
          .width = [](Options o) { return patch_width(o.image); },
          .rows = [](Options o) { return patches_of(o.image); },
          .rows_key = "data.image.patch",
          .grid =
              [](Options o) {
                return std::array{o.image.height / o.image.patch, o.image.width / o.image.patch};
              },
          .check = image_errors,
          .captions =
              [](Options o) {
                return std::array{"an image: " + pixels_of(o.image),
                                  fmt::format("patches of {0} × {0}", o.image.patch)};
              },
          .row_name = [](Options, std::int64_t row,
                         std::int64_t columns) { return patch_name(row, columns); },
          .read = [](Options o, const InputLines& in) -> std::shared_ptr<const Inputs> {
            return std::make_shared<Images>(in.lines, o.image, in.class_row, in.what, in.threads);
          }};
}

}  // namespace heed
