#include "nn/layers/norm.h"

#include "nn/options.h"

HEED_BEGIN

Norm::Norm(const ModelOptions& options, Init& init)
    : kind(options.norm_kind),
      eps(static_cast<real>(options.norm_eps)),
      weight(init.ones(options.d_model)),
      bias(kind == NormKind::rms ? Tensor() : init.zeros(options.d_model)) {
  if (kind == NormKind::batch) statistics = std::make_shared<BatchStatistics>(options.d_model);
}

void BatchStatistics::update_running() {
  constexpr real momentum = real(0.1);
  const auto n = static_cast<real>(latest.rows);
  const real unbiased = latest.rows > 1 ? n / (n - 1) : real(1);
  for (std::int64_t c = 0; c < latest.mean.size(); ++c) {
    real& mean = running_mean.mutable_value().data()[c];
    real& var = running_var.mutable_value().data()[c];
    mean += momentum * (latest.mean.data()[c] - mean);
    var += momentum * (unbiased * latest.variance.data()[c] - var);
  }
}

Tensor Norm::operator()(const Tensor& x, const Pass& pass) const {
  switch (kind) {
    case NormKind::layer:
      return layer_norm(x, weight, bias, eps);
    case NormKind::rms:
      return rms_norm(x, weight, eps);
    case NormKind::batch:
      break;
  }
  if (!pass.training) {
    return batch_norm(x, weight, bias,
                      {statistics->running_mean.value(), statistics->running_var.value(), 0}, eps);
  }
  return batch_norm(x, weight, bias, eps, pass.shard == 0 ? &statistics->latest : nullptr,
                    {pass.all_reduce, pass.shard});
}

HEED_END
