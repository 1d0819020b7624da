#include "autograd/ops/more/attention/relative_keys.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

RelativeKeys::RelativeKeys(const Tensor& keys, std::int64_t first_distance, const Tensor& shift)
    : inputs_{keys}, first_(first_distance) {
  if (keys.shape().rank() != 2 || keys.shape()[0] < 1)
    fail("[relative_keys] expected keys [distances, heads size] of at least one distance, got {}",
         keys.shape());
  if (!shift.defined()) return;
  if (shift.shape() != Shape{keys.shape()[1]})
    fail("[relative_keys] expected a shift of shape [{}], got {}", keys.shape()[1], shift.shape());
  inputs_.push_back(shift);
}

std::int64_t RelativeKeys::row_of(std::int64_t distance) const {
  return std::clamp<std::int64_t>(distance - first_, 0, inputs_[0].shape()[0] - 1);
}

Array RelativeKeys::keys_of(const ScoreBlock& block) const {
  const Diagonals all(block);
  Array keys({all.count, block.size});
  for (std::int64_t e = 0; e < all.count; ++e) {
    const real* const from = inputs_[0].value().row(row_of(all.distance(e)));
    std::copy_n(from + block.head * block.size, block.size, keys.row(e));
  }
  return keys;
}

Array RelativeKeys::queries_of(const ScoreBlock& block) const {
  Array queries({block.rows, block.size});
  const real* const w = shifted() ? inputs_[1].value().data() + block.head * block.size : nullptr;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const real* const q = block.q + r * block.q_stride;
    if (w != nullptr) {
      kernels::add(q, w, queries.row(r), block.size);
    } else {
      std::copy_n(q, block.size, queries.row(r));
    }
  }
  return queries;
}

void RelativeKeys::add(const ScoreBlock& block, real* s) const {
  const Diagonals all(block);
  const Array q = queries_of(block), keys = keys_of(block);
  // c (q_i + w) Rᵀ; row r uses block.keys of its columns, from first(r) on.
  Array products({block.rows, all.count});
  gemm(Trans::no, Trans::yes, block.rows, all.count, block.size, block.scale, q.data(), block.size,
       keys.data(), block.size, 0, products.data(), all.count);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    real* const row = s + r * block.keys;
    kernels::add(row, products.row(r) + all.first(r), row, block.keys);
  }
}

void RelativeKeys::backward(const ScoreBlock& block, const real* ds, real* dq,
                            std::span<const Grad> dinputs) const {
  const Diagonals all(block);
  const std::int64_t size = block.size;
  const Array keys = keys_of(block);
  Array g = Array::zeros({block.rows, all.count});  // gradient of the products
  for (std::int64_t r = 0; r < block.rows; ++r)
    std::copy_n(ds + r * block.keys, block.keys, g.row(r) + all.first(r));
  Array product({block.rows, size});  // c g R
  gemm(Trans::no, Trans::no, block.rows, size, all.count, block.scale, g.data(), all.count,
       keys.data(), size, 0, product.data(), size);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    real* const to = dq + r * block.q_stride;
    kernels::add(to, product.row(r), to, size);
    if (!shifted() || !dinputs[1]) continue;
    real* const dw = dinputs[1].sum().data() + block.head * size;
    kernels::add(dw, product.row(r), dw, size);
  }
  if (!dinputs[0]) return;
  const Array q = queries_of(block);
  Array dkeys({all.count, size});  // c gᵀ (q + w)
  gemm(Trans::yes, Trans::no, all.count, size, block.rows, block.scale, g.data(), all.count,
       q.data(), size, 0, dkeys.data(), size);
  Array& sum = dinputs[0].sum();
  for (std::int64_t e = 0; e < all.count; ++e) {
    real* const to = sum.row(row_of(all.distance(e))) + block.head * size;
    kernels::add(to, dkeys.row(e), to, size);
  }
}

TermFormula RelativeKeys::formula(const ScoreBlock& block) const {
  TermFormula f{"B_ij = c Q_i R[i − j]ᵀ", "a key for each distance i − j", keys_of(block)};
  if (!shifted()) return f;
  f.formula = "B_ij = c (Q_i + w) R[i − j]ᵀ";
  f.shift =
      inputs_[1].value().reshaped({block.heads, block.size}).sliced(block.head, block.head + 1);
  f.shift_formula = "v − u";
  return f;
}

HEED_END
