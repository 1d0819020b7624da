#pragma once
/// Feature rows for each line: matrices from files, and sound as log-mel features.
#include <span>
#include <string>
#include <vector>

#include "data/inputs/input_info.h"

namespace heed {

/// A line names a .npy file (a matrix of options.width columns) or a .wav file (log_mel), or is a
/// line of tones (data/sources/sound.h). With options.normalise, each column of an input has mean 0
/// and standard deviation 1 over the frames of that input; a constant column becomes 0. Each row
/// consists of options.stack consecutive frames; the last row is padded with zeros.
class Features final : public Inputs {
 public:
  /// With `class_row`, each input begins with a row of zeros. Throws Error(bad_input), naming
  /// `what`, the line and the file, if a file cannot be read, has a width other than options.width,
  /// has no frame, or contains a value that is not finite.
  Features(std::span<const std::string> lines, const FeatureOptions& options, bool class_row,
           const std::string& what, std::int64_t threads);

  std::int64_t rows(std::int64_t input) const override {
    return begins_[input + 1] - begins_[input];
  }
  void push(std::int64_t input, const Draw& draw, Side& side) const override;
  void add_to(Sha256& sum, std::int64_t input) const override;

 private:
  std::span<const float> values(std::int64_t input) const;

  std::int64_t width_;                      // number of values in a row
  std::vector<std::int64_t> begins_ = {0};  // offsets of the inputs, in rows
  std::vector<float> values_;
};

}  // namespace heed
