#include "autograd/ops/more/reduce.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// A shape viewed as [outer, n, inner], where n is the extent of one axis: a line along that axis
/// has n values, `inner` apart.
struct AxisView {
  std::int64_t outer = 1, n = 1, inner = 1;

  AxisView() = default;
  AxisView(const Shape& shape, int axis)
      : outer(shape.size(0, axis)), n(shape[axis]), inner(shape.size(axis + 1, shape.rank())) {}
  /// All values as one line.
  static AxisView all(const Shape& shape) {
    AxisView view;
    view.n = shape.size();
    return view;
  }

  /// Calls visit(line, first) for each line. `line` counts the lines in row-major order of
  /// [outer, inner]; value k of the line is at first + k · inner.
  template <class Visit>
  void for_each_line(Visit visit) const {
    if (outer == 0 || n == 0 || inner == 0) return;  // no values; the other extents may be huge
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) visit(o * inner + i, o * n * inner + i);
    }
  }
};

/// y = factor · Σ_k x[…, k, …]          x: [outer, n, inner] → y: [outer, inner]
/// dx[…, k, …] = factor · dy            for every k: each x enters one sum, with weight `factor`.
/// The index k runs along one axis, or along all axes. sum: factor = 1; mean: factor = 1/n.
struct Reduce {
  Shape kept;  // x's shape with extent 1 on the summed axes
  Shape result;
  real factor = 1;
  Array forward(const Array& x) {
    Array total = sum_to(x, kept).reshaped(result);
    if (factor == 1) return total;
    Array y(result);
    kernels::scale(factor, total.data(), y.data(), y.size());
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(kept);
    kernels::scale(factor, dy.data(), g.data(), dy.size());
    dx.add(broadcast_to(g, dx.shape()));
  }
};

/// y = max_k x[k] along each line           x: [outer, n, inner] → y: [outer, inner]
/// dx[k] = dy / m where x[k] = y, else 0,    m: the number of values of the line equal to y
/// min: the same with the smallest value. NaN equals no value: a line with a NaN has no gradient.
struct MaxOrMin {
  bool smallest = false;
  AxisView view;
  Shape result;
  Array x, y;
  Array forward(const Array& x_in) {
    x = x_in;
    y = Array(result);
    view.for_each_line([&](std::int64_t line, std::int64_t first) {
      real best = x.data()[first];
      for (std::int64_t k = 1; k < view.n && !std::isnan(best); ++k) {
        const real v = x.data()[first + k * view.inner];
        if ((smallest ? v < best : v > best) || std::isnan(v)) best = v;
      }
      y.data()[line] = best;
    });
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(x.shape());
    view.for_each_line([&](std::int64_t line, std::int64_t first) {
      const real best = y.data()[line];
      std::int64_t m = 0;
      for (std::int64_t k = 0; k < view.n; ++k) m += x.data()[first + k * view.inner] == best;
      for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t at = first + k * view.inner;
        g.data()[at] = x.data()[at] == best ? dy.data()[line] / static_cast<real>(m) : real(0);
      }
    });
    dx.add(std::move(g));
  }
};

/// y = ln Σ_k exp(x[k]) = M + ln Σ_k exp(x[k] − M), M = max x      along each line
/// dx[k] = dy exp(x[k] − y)
/// A line that contains only −inf has the result −inf and no gradient.
struct LogSumExp {
  AxisView view;
  Shape result;
  Array x, y;
  Array forward(const Array& x_in) {
    x = x_in;
    y = Array(result);
    view.for_each_line([&](std::int64_t line, std::int64_t first) {
      const auto value = [&](std::int64_t k) { return x.data()[first + k * view.inner]; };
      real largest = value(0);
      for (std::int64_t k = 1; k < view.n; ++k) largest = std::max(largest, value(k));
      if (std::isinf(largest)) largest = 0;  // inf − inf would be NaN
      real total = 0;
      for (std::int64_t k = 0; k < view.n; ++k) total += std::exp(value(k) - largest);
      y.data()[line] = largest + std::log(total);
    });
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(x.shape());
    view.for_each_line([&](std::int64_t line, std::int64_t first) {
      const real whole = y.data()[line];
      const bool none = whole == -std::numeric_limits<real>::infinity();
      for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t at = first + k * view.inner;
        g.data()[at] = none ? real(0) : dy.data()[line] * std::exp(x.data()[at] - whole);
      }
    });
    dx.add(std::move(g));
  }
};

/// y[k] = Σ_{j ≤ k} x[j]       along each line
/// dx[j] = Σ_{k ≥ j} dy[k]
struct CumulativeSum {
  AxisView view;
  Array forward(const Array& x) {
    Array y(x.shape());
    view.for_each_line([&](std::int64_t, std::int64_t first) {
      real total = 0;
      for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t at = first + k * view.inner;
        y.data()[at] = total += x.data()[at];
      }
    });
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    view.for_each_line([&](std::int64_t, std::int64_t first) {
      real total = 0;
      for (std::int64_t k = view.n - 1; k >= 0; --k) {
        const std::int64_t at = first + k * view.inner;
        g.data()[at] = total += dy.data()[at];
      }
    });
    dx.add(std::move(g));
  }
};

/// The shapes of a reduction of x along `axis`, or along all axes (all_axes).
struct Reduction {
  Shape kept;    ///< x's shape with extent 1 on the reduced axes
  Shape result;  ///< x's shape without the reduced axes, or `kept` if keep_axis is set
  AxisView view;

  Reduction(const char* op, const Tensor& x, int axis, bool keep_axis) {
    require_defined(op, x.value());
    const bool all = axis == all_axes;
    if (!all) axis = require_axis(op, x.shape(), axis);
    for (int i = 0; i < x.shape().rank(); ++i) {
      const bool reduced = all || i == axis;
      kept.push_back(reduced ? 1 : x.shape()[i]);
      if (keep_axis || !reduced) result.push_back(kept[i]);
    }
    view = all ? AxisView::all(x.shape()) : AxisView(x.shape(), axis);
  }
  void require_values(const char* op, const Shape& shape) const {
    if (view.n == 0) fail("[{}] expected at least one value, got shape {}", op, shape);
  }
};

Tensor max_or_min(const char* op, bool smallest, const Tensor& x, int axis, bool keep_axis) {
  const Reduction r(op, x, axis, keep_axis);
  r.require_values(op, x.shape());
  return apply(MaxOrMin{smallest, r.view, r.result, {}, {}}, x);
}

}  // namespace

Tensor sum(const Tensor& x, int axis, bool keep_axis) {
  const Reduction r("sum", x, axis, keep_axis);
  return apply(Reduce{r.kept, r.result, 1}, x);
}
Tensor mean(const Tensor& x, int axis, bool keep_axis) {
  const Reduction r("mean", x, axis, keep_axis);
  r.require_values("mean", x.shape());
  return apply(Reduce{r.kept, r.result, real(1) / static_cast<real>(r.view.n)}, x);
}
Tensor max(const Tensor& x, int axis, bool keep_axis) {
  return max_or_min("max", false, x, axis, keep_axis);
}
Tensor min(const Tensor& x, int axis, bool keep_axis) {
  return max_or_min("min", true, x, axis, keep_axis);
}
Tensor log_sum_exp(const Tensor& x, int axis, bool keep_axis) {
  const Reduction r("log_sum_exp", x, axis, keep_axis);
  r.require_values("log_sum_exp", x.shape());
  return apply(LogSumExp{r.view, r.result, {}, {}}, x);
}
Tensor cumsum(const Tensor& x, int axis) {
  require_defined("cumsum", x.value());
  return apply(CumulativeSum{AxisView(x.shape(), require_axis("cumsum", x.shape(), axis))}, x);
}

HEED_END
