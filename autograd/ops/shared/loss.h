#pragma once
/// Parts of cross_entropy that more/cross_entropy.cpp also uses.
#include "autograd/ops/basic.h"

HEED_BEGIN

/// Throws unless there is a valid target for each row.
void require_targets(const char* op, std::int64_t rows, std::int64_t classes,
                     std::span<const std::int32_t> targets, real smoothing, double divisor);
/// The sums and counts of all rows of logits; appends their nll to `each`, if it is not null. If
/// `with_grad`, replaces the logits by `factor` times their gradients.
LossCounts row_losses(Array& logits, const std::int32_t* targets, real smoothing, real factor,
                      bool with_grad, std::vector<double>* each);
/// factor · x: a gradient that forward has computed, times the cotangent of the loss.
Array times_cotangent(const Array& x, real factor);

HEED_END
