#include "data/inputs/pictures.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "data/inputs/each_line.h"
#include "data/sources/drawings.h"
#include "data/sources/idx.h"
#include "data/sources/picture.h"

namespace heed {
namespace {

/// Reads what lines name; each IDX file only once.
class Album {
 public:
  explicit Album(const ImageOptions& options)
      : height_(options.height), width_(options.width), channels_(options.channels) {}

  Picture open(const std::string& line) {
    if (is_drawing(line)) return draw_picture(line, height_, width_, channels_);
    IdxItem item;
    if (!IdxItem::parse(line, item)) return read_picture(line, channels_);
    const IdxFile& file = idx(item.path);
    const std::vector<std::int64_t>& shape = file.shape();
    const std::int64_t own = shape.size() == 4 ? shape[3] : 1;
    if (shape.size() < 3 || own != channels_) {
      throw Error(Exit::bad_input,
                  fmt::format("{}: an IDX file of {}, not of pictures with data.image.channels: {}",
                              shown_path(item.path), fmt::join(shape, " x "), channels_));
    }
    if (item.number >= file.size()) {
      throw Error(Exit::bad_input, fmt::format("{}: has {} pictures, so there is no #{}",
                                               shown_path(item.path), file.size(), item.number));
    }
    const auto values = file[item.number];
    return {shape[1], shape[2], own, {values.begin(), values.end()}};
  }

 private:
  const IdxFile& idx(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto found = files_.find(path);
    return found != files_.end() ? found->second
                                 : files_.emplace(path, IdxFile::read(path)).first->second;
  }

  std::int64_t height_, width_, channels_;
  std::mutex mutex_;
  std::map<std::string, IdxFile> files_;
};

void check_size(const Picture& picture, const ImageOptions& options) {
  const bool same = picture.height == options.height && picture.width == options.width,
             enough = picture.height >= options.height && picture.width >= options.width;
  if (same || (options.crop && enough)) return;
  throw Error(Exit::bad_input,
              fmt::format("a picture of {} x {} pixels, but data.image has {} x {}{}",
                          picture.height, picture.width, options.height, options.width,
                          enough ? " (data.image.crop accepts larger ones)" : ""));
}

}  // namespace

Pictures::Pictures(std::span<const std::string> lines, const ImageOptions& options, bool class_row,
                   const std::string& what, std::int64_t threads)
    : options_(options), class_row_(class_row) {
  Album album(options);
  std::vector<Picture> all(lines.size());
  for_each_line(lines, what, threads, [&](std::size_t i) {
    all[i] = album.open(lines[i]);
    check_size(all[i], options);
  });
  for (Picture& picture : all) {
    items_.push_back({pixels_.size(), picture.height, picture.width});
    pixels_.insert(pixels_.end(), picture.values.begin(), picture.values.end());
    picture.values = {};
  }
}

std::int64_t Pictures::rows(std::int64_t) const {
  return (class_row_ ? 1 : 0) + patches_of(options_);
}

std::span<const std::uint8_t> Pictures::pixels(const Item& item) const {
  return std::span(pixels_).subspan(
      item.begin, static_cast<std::size_t>(item.height * item.width * options_.channels));
}

void Pictures::push(std::int64_t input, const Draw& draw, Side& side) const {
  const Item& item = items_[input];
  const std::span<const std::uint8_t> picture = pixels(item);
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
  side.width = patch_width(options_);
  if (side.offsets.empty()) side.offsets.push_back(0);
  if (class_row_) side.features.resize(side.features.size() + static_cast<std::size_t>(side.width));
  const auto value = [&](std::int64_t y, std::int64_t x, std::int64_t channel) {
    if (mirrored) x = options_.width - 1 - x;
    y += top;
    x += left;
    const bool inside = y >= 0 && y < item.height && x >= 0 && x < item.width;
    const double v = inside ? picture[(y * item.width + x) * c + channel] : 0;
    return static_cast<float>((v / 255 - options_.mean) / options_.deviation);
  };
  for (std::int64_t py = 0; py < options_.height; py += p) {
    for (std::int64_t px = 0; px < options_.width; px += p) {
      for (std::int64_t y = py; y < py + p; ++y) {
        for (std::int64_t x = px; x < px + p; ++x)
          for (std::int64_t k = 0; k < c; ++k) side.features.push_back(value(y, x, k));
      }
    }
  }
  side.offsets.push_back(side.offsets.back() + static_cast<std::int32_t>(rows(input)));
}

void Pictures::add_to(Sha256& sum, std::int64_t input) const {
  sum.update(std::as_bytes(pixels(items_[input])));
}

}  // namespace heed
