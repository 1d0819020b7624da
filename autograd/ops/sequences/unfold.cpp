#include "autograd/ops/sequences/unfold.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y[r, j] = x[r + j − before] if that is a row of r's sequence, else 0
///                                             x: [rows, d] → y: [rows, width, d], 0 ≤ j < width
/// dx[s] = Σ_j dy[s − j + before, j]           over the rows of s's sequence
struct Unfold {
  std::vector<std::int32_t, ArenaAllocator<std::int32_t>> offsets;
  std::int64_t width = 1, before = 0;

  /// Calls visit(r, j, s, n) for each row r of x: rows [s, s + n) of x are at [j, j + n) of its window.
  template <class Visit>
  void for_each_window(const Array& y, Visit visit) const {
    if (y.size() == 0) return;  // without columns, windows may be of any width
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const std::int64_t begin = offsets[i], end = offsets[i + 1];
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t back = std::min(r - begin, before);
        const std::int64_t ahead = std::min(end - 1 - r, width - 1 - before);
        visit(r, before - back, r - back, back + 1 + ahead);
      }
    }
  }

  Array forward(const Array& x) {
    const std::int64_t d = x.cols();
    Array y = Array::zeros({x.rows(), width, d});
    for_each_window(y, [&](std::int64_t r, std::int64_t j, std::int64_t s, std::int64_t n) {
      std::copy_n(x.row(s), n * d, y.row(r * width + j));
    });
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g = Array::zeros(dx.shape());
    for_each_window(dy, [&](std::int64_t r, std::int64_t j, std::int64_t s, std::int64_t n) {
      kernels::add(g.row(s), dy.row(r * width + j), g.row(s), n * g.cols());
    });
    dx.add(std::move(g));
  }
};

}  // namespace

Tensor unfold(const Tensor& x, std::span<const std::int32_t> offsets, std::int64_t width,
              std::int64_t before) {
  if (x.shape().rank() != 2) fail("[unfold] expected x [rows, d], got {}", x.shape());
  if (before < 0 || before >= width)
    fail("[unfold] expected a window with its own row, got {} rows from {} before", width, before);
  require_offsets("unfold", offsets, x.shape()[0]);
  Unfold op;
  op.offsets.assign(offsets.begin(), offsets.end());
  op.width = width;
  op.before = before;
  return apply(std::move(op), x);
}

HEED_END
