#pragma once
/// Normalisation over the last axis or, in batch norm, over the rows.
#include "autograd/base/meeting.h"
#include "autograd/tensor.h"

HEED_BEGIN

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5));
Tensor rms_norm(const Tensor& x, const Tensor& gain, real eps = real(1e-5));

/// The mean and the variance of each column of a batch; the variance is biased (divided by the rows).
struct BatchMoments {
  Array mean, variance;   ///< [n]
  std::int64_t rows = 0;  ///< of the whole batch
};
/// Each column of x [rows, n] with mean 0 and variance 1, times gain, plus bias (both [n]). The rows of a
/// batch may be spread over several calls in different threads: then `member` lets them meet, and each
/// must also run backward. `moments`, if given, receives the statistics.
Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5),
                  BatchMoments* moments = nullptr, Member member = {});
/// The same with given statistics, which are constants: outside of training.
Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                  const BatchMoments& moments, real eps = real(1e-5));

HEED_END
