#include "nn/segment_memory.h"

HEED_BEGIN

void SegmentMemory::begin(bool continues, std::int64_t lanes, std::int64_t max_length) {
  if (!continues || kept_.empty() || !kept_.front().defined()) {
    length_ = 0;
    std::fill(kept_.begin(), kept_.end(), Array({lanes, 0, width_}));
  }
  next_length_ = std::min(tokens_, length_ + max_length);
  for (std::size_t layer = 0; layer < kept_.size(); ++layer) {
    if (kept_[layer].shape()[0] < lanes)
      fail("[segment_memory] a batch of {} lanes cannot continue a batch of {}", lanes,
           kept_[layer].shape()[0]);
    next_[layer] = Array::zeros({lanes, next_length_, width_});
  }
}

void SegmentMemory::write(std::size_t layer, std::int64_t lane, const real* values,
                          std::int64_t rows) {
  real* to = next_[layer].data() + lane * next_length_ * width_;
  const std::int64_t fresh = std::min(rows, next_length_),
                     old = std::min(next_length_ - fresh, length_);
  to = std::copy_n(this->lane(layer, lane) + (length_ - old) * width_, old * width_, to);
  std::copy_n(values + (rows - fresh) * width_, fresh * width_, to);
}

void SegmentMemory::advance() {
  length_ = next_length_;
  std::swap(kept_, next_);
  std::fill(next_.begin(), next_.end(), Array());
}

void SegmentMemory::restore(std::vector<Array> arrays) {
  length_ = arrays.empty() ? 0 : arrays.front().shape()[1];
  kept_ = std::move(arrays);
}

HEED_END
