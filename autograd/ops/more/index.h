#pragma once
/// More ops that select by index, and functions that find indices.
#include "autograd/ops/basic.h"

HEED_BEGIN

/// The adjoint of index_select: adds entry t of x [ids, …] to entry ids[t] of a result [n, …],
/// which is initially zero.
Tensor scatter_add(const Tensor& x, std::span<const std::int32_t> ids, std::int64_t n);
/// The values of each row of x [..., n] at its k ids → [..., k]. `ids` lists the ids of all rows in
/// order.
Tensor gather(const Tensor& x, std::span<const std::int32_t> ids);

/// The index of the largest value of each row of x [..., n]. Of equal values, the first is chosen;
/// NaN counts as larger than any number.
std::vector<std::int32_t> argmax(const Array& x);

/// The k largest values of each row in descending order (NaN first), equal values in the order of
/// their ids. The results are constants; gather(x, ids) has a gradient.
struct TopK {
  Array values;                   ///< [..., k]
  std::vector<std::int32_t> ids;  ///< [rows · k]
};
TopK top_k(const Array& x, std::int64_t k);

HEED_END
