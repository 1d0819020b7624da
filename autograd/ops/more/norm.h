#pragma once
/// More norms: RMS norm over the last axis, batch norm over the rows.
#include "autograd/base/all_reduce.h"
#include "autograd/ops/basic.h"

HEED_BEGIN

/// Normalises each row of x [..., n] to root mean square 1, then multiplies by gain [n], which may
/// be undefined.
Tensor rms_norm(const Tensor& x, const Tensor& gain, real eps = real(1e-5));

/// The mean and the variance of each column of a batch; the variance is biased (divided by the
/// number of rows).
struct BatchMoments {
  Array mean, variance;   ///< [n]
  std::int64_t rows = 0;  ///< number of rows of the whole batch
};
/// Normalises each column of x [rows, n] to mean 0 and variance 1, then multiplies by gain [n] and
/// adds bias [n]. The rows of a batch may be spread over several ranks, each of which calls this
/// op: `rank` then sums over all ranks, in backward too, so every rank must run backward.
/// `moments`, if not null, receives the statistics.
Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5),
                  BatchMoments* moments = nullptr, Rank rank = {});
/// Batch norm with constant statistics, as in evaluation.
Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                  const BatchMoments& moments, real eps = real(1e-5));

HEED_END
