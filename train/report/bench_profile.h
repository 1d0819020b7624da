#pragma once
#include <string>

#include "autograd/profile.h"
#include "data/batches/batch.h"
#include "nn/models/model.h"

HEED_BEGIN

/// Forward and backward of one shard on this thread, timed op by op.
class OpProfile {
 public:
  static OpProfile of(const Model& model, const Batch& shard, double label_smoothing,
                      bool bf16 = false);
  /// One line an op, the costliest first.
  std::string table() const;
  const OpTimes& times() const { return times_; }

 private:
  OpTimes times_;     ///< of one pass: the mean of several
  double whole_ = 0;  ///< seconds of a pass, ops and all else
};

HEED_END

namespace heed {

/// Seconds, by a clock that also tells when this process started.
double now_since_epoch();
double process_start_seconds();

}  // namespace heed
