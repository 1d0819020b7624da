#pragma once
#include <memory>
#include <string>

#include "autograd/ops/more/norm.h"
#include "nn/context.h"
#include "nn/option_kinds.h"
#include "nn/parameters.h"

HEED_BEGIN

/// The statistics of a batch norm. Training normalises with the statistics of the batch, evaluation
/// with their running means: running += 0.1 (batch − running) after each step, with the unbiased
/// variance, as in PyTorch.
struct BatchStatistics {
  Tensor running_mean, running_var;  ///< [d]
  /// The moments of the latest training pass. Shard 0 writes them; recomputation writes them again.
  BatchMoments latest;

  explicit BatchStatistics(std::int64_t d)
      : running_mean(Array::zeros({d})), running_var(Array::full({d}, 1)) {}
  /// Updates running_mean and running_var with `latest`; called once after each accepted step.
  void update_running();
};

struct NamedStatistics {
  std::string name;
  std::shared_ptr<BatchStatistics> of;
};

/// Layer norm (Ba, Kiros and Hinton 2016) and RMS norm (Zhang and Sennrich 2019) normalise each
/// row; batch norm (Ioffe and Szegedy 2015) normalises each column over all rows of a batch.
struct Norm {
  NormKind kind;
  real eps;
  Tensor weight;                                ///< gain [d]
  Tensor bias;                                  ///< [d]; undefined for RMS norm
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
