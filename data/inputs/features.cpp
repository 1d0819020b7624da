#include "data/inputs/features.h"

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "data/inputs/each_line.h"
#include "data/sources/npy.h"
#include "data/sources/sound.h"

namespace heed {
namespace {

/// The frames of the matrix or sound that a line names or describes, row by row.
std::vector<float> frames_of(const std::string& line, const FeatureOptions& options) {
  if (!is_tones(line) && line.ends_with(".npy")) {
    Matrix matrix = read_npy(line);
    if (matrix.columns != options.width)
      throw Error(Exit::bad_input, "the number of columns is {}, but data.features.width is {}",
                  matrix.columns, options.width);
    return std::move(matrix.values);
  }
  return log_mel(is_tones(line) ? play_tones(line, options.rate) : read_wav(line, options.rate),
                 options);
}

/// Throws Error(bad_input) if a value is not finite. Without this check, the error would appear
/// only in training and would not name the file.
void require_finite(std::span<const float> frames, std::int64_t width) {
  const auto found = std::ranges::find_if(frames, [](float v) { return !std::isfinite(v); });
  if (found == frames.end()) return;
  const std::int64_t at = found - frames.begin();
  throw Error(Exit::bad_input, "row {}, column {} contains {}, which is not a finite number",
              at / width + 1, at % width + 1, *found);
}

void normalise(std::vector<float>& frames, std::int64_t width) {
  const std::int64_t n = std::ssize(frames) / width;
  for (std::int64_t c = 0; c < width; ++c) {
    double sum = 0, squares = 0;
    for (std::int64_t r = 0; r < n; ++r) sum += frames[r * width + c];
    const double mean = sum / static_cast<double>(n);
    for (std::int64_t r = 0; r < n; ++r) squares += std::pow(frames[r * width + c] - mean, 2);
    const double deviation = std::sqrt(squares / static_cast<double>(n)) + 1e-5;
    for (std::int64_t r = 0; r < n; ++r) {
      float& value = frames[r * width + c];
      value = static_cast<float>((value - mean) / deviation);
    }
  }
}

OptionErrors feature_errors(const DataOptions& o) {
  const FeatureOptions& features = o.features;
  const double rate = static_cast<double>(features.rate), window = features.window * rate / 1000;
  OptionErrors errors;
  if (window < 16 || window > 65536)
    errors.push_back({{"data.features.window", "data.features.rate"},
                      fmt::format("a frame of {} ms: expected 16 to 65536 samples, got {:g}",
                                  features.window, window)});
  const double hop = features.hop * rate / 1000;
  if (hop < 1 || hop > 65536)
    errors.push_back({{"data.features.hop", "data.features.rate"},
                      fmt::format("a distance of {} ms: expected 1 to 65536 samples, got {:g}",
                                  features.hop, hop)});
  return errors;
}

}  // namespace

Features::Features(std::span<const std::string> lines, const FeatureOptions& options,
                   bool class_row, const std::string& what, std::int64_t threads)
    : width_(row_width(options)) {
  std::vector<std::vector<float>> all(lines.size());
  for_each_line(lines, what, threads, [&](std::size_t i) {
    all[i] = frames_of(lines[i], options);
    if (all[i].empty())
      throw Error(
          Exit::bad_input,
          "no frame: the matrix is empty, or the sound is shorter than data.features.window");
    require_finite(all[i], options.width);
    if (options.normalise) normalise(all[i], options.width);
    all[i].resize((all[i].size() + width_ - 1) / width_ * width_);
  });
  for (std::vector<float>& input : all) {
    if (class_row) values_.resize(values_.size() + width_);
    values_.insert(values_.end(), input.begin(), input.end());
    begins_.push_back(std::ssize(values_) / width_);
    input = {};
  }
}

std::span<const float> Features::values(std::int64_t input) const {
  return std::span(values_).subspan(static_cast<std::size_t>(begins_[input] * width_),
                                    static_cast<std::size_t>(rows(input) * width_));
}

void Features::push(std::int64_t input, const Draw&, Side& side) const {
  const auto rows_of_input = values(input);
  side.width = width_;
  if (side.offsets.empty()) side.offsets.push_back(0);
  side.features.insert(side.features.end(), rows_of_input.begin(), rows_of_input.end());
  side.offsets.push_back(side.offsets.back() + static_cast<std::int32_t>(rows(input)));
}

void Features::add_to(Sha256& sum, std::int64_t input) const {
  sum.update(std::as_bytes(values(input)));
}

InputInfo features_input() {
  using Options = const DataOptions&;
  return {.name = "features",
          .help = ".npy files with a row for each frame, or .wav files, as for image",
          .keys = {"features"},
          .convolved = true,
          .width = [](Options o) { return row_width(o.features); },
          .check = feature_errors,
          .captions =
              [](Options o) {
                return std::array{fmt::format("frames of {} features", o.features.width),
                                  fmt::format("{} to a row", o.features.stack)};
              },
          .read = [](Options o, const InputLines& in) -> std::shared_ptr<const Inputs> {
            return std::make_shared<Features>(in.lines, o.features, in.class_row, in.what,
                                              in.threads);
          }};
}

}  // namespace heed
