#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autograd/ops/norm.h"
#include "nn/context.h"
#include "nn/parameters.h"

HEED_BEGIN

/// The statistics of a batch norm. Training normalises with those of the batch, evaluation with their running
/// means: running += 0.1 (batch − running) after each step, with the unbiased variance, as in PyTorch.
struct BatchStatistics {
  Tensor running_mean, running_var;  ///< [d]
  /// Of the latest training pass, written by shard 0. Recomputation writes the same values again.
  BatchMoments latest;

  explicit BatchStatistics(std::int64_t d)
      : running_mean(Array::zeros({d})), running_var(Array::full({d}, 1)) {}
  /// Moves the running means towards `latest`. Called once after each accepted step.
  void update_running();
};

struct NamedStatistics {
  std::string name;
  std::shared_ptr<BatchStatistics> of;
};

/// Normalises each row: layer norm (Ba, Kiros and Hinton 2016) or RMS norm (Zhang and Sennrich
/// 2019); or each column over all rows of a batch: batch norm (Ioffe and Szegedy 2015).
struct Norm {
  NormKind kind;
  real eps;
  Tensor weight;                                ///< gain [d]
  Tensor bias;                                  ///< [d]; not of RMS norm
  std::shared_ptr<BatchStatistics> statistics;  ///< batch norm only

  Norm(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, const Pass& pass) const;
  Parameters parameters() const {
    Parameters all{{"weight", weight}};
    if (bias.defined()) all.push_back({"bias", bias});
    return all;
  }
};

HEED_END
