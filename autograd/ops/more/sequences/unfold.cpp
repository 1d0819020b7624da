#include "autograd/ops/more/sequences/unfold.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/more/check.h"

HEED_BEGIN

namespace {

using Offsets = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// The rows of a sequence as lines of equal length.
struct Grid {
  std::int64_t lines, line;

  Grid(std::int64_t rows, const UnfoldWindow& window)
      : lines(window.line > 0 ? rows / window.line : 1),
        line(window.line > 0 ? window.line : rows) {}
  std::int64_t windows(std::int64_t stride) const {
    return ceil_of(lines, stride) * ceil_of(line, stride);
  }
  static std::int64_t ceil_of(std::int64_t n, std::int64_t stride) {
    return n / stride + (n % stride > 0 ? 1 : 0);
  }
};

/// Let x[i, j] be row j of line i of a sequence, s = stride, and x = 0 outside its lines:
/// y[(u, v), (p, q)] = x[s u + p − above, s v + q − before]
///                    x: [rows, d] → y: [windows, height · width, d], 0 ≤ p < height, 0 ≤ q < width
/// dx[i, j] = Σ dy[(u, v), (p, q)]          over s u + p − above = i and s v + q − before = j
struct Unfold {
  Offsets offsets;
  UnfoldWindow window;

  /// Calls visit(at, s, n) for each run of rows: rows [s, s + n) of x are rows [at, at + n) of y,
  /// which contains the rows of all windows one after another.
  template <class Visit>
  void for_each_stretch(const Array& y, Visit visit) const {
    if (y.size() == 0) return;  // avoids a loop: without columns, there may be any number of rows
    std::int64_t at = 0;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const Grid grid(offsets[i + 1] - offsets[i], window);
      for (std::int64_t u = 0; u < grid.lines; u += window.stride) {
        for (std::int64_t v = 0; v < grid.line; v += window.stride) {
          const std::int64_t back = std::min(v, window.before),
                             ahead = std::min(grid.line - v, window.width - window.before);
          for (std::int64_t p = 0; p < window.height; ++p, at += window.width) {
            const std::int64_t line = u + p - window.above;
            if (line < 0 || line >= grid.lines) continue;
            visit(at + window.before - back, offsets[i] + line * grid.line + v - back,
                  back + ahead);
          }
        }
      }
    }
  }

  Array forward(const Array& x) {
    const std::int64_t d = x.cols();
    Array y =
        Array::zeros({unfolded_offsets(offsets, window).back(), window.height * window.width, d});
    for_each_stretch(y, [&](std::int64_t at, std::int64_t s, std::int64_t n) {
      std::copy_n(x.row(s), n * d, y.row(at));
    });
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g = Array::zeros(dx.shape());
    for_each_stretch(dy, [&](std::int64_t at, std::int64_t s, std::int64_t n) {
      kernels::add(g.row(s), dy.row(at), g.row(s), n * g.cols());
    });
    dx.add(std::move(g));
  }
};

void require_window(const UnfoldWindow& w, std::span<const std::int32_t> offsets) {
  if (w.before < 0 || w.before >= w.width || w.above < 0 || w.above >= w.height)
    fail(
        "[unfold] expected a window that contains its row, got height {}, width {}, above {} and "
        "before {}",
        w.height, w.width, w.above, w.before);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (w.width > most || w.height > most / w.width)
    fail("[unfold] expected a window of at most 2^31 rows, got {} x {}", w.height, w.width);
  if (w.stride < 1 || w.line < 0)
    fail("[unfold] expected a stride of at least 1 and a line length of at least 0, got {} and {}",
         w.stride, w.line);
  for (std::size_t i = 0; w.line > 0 && i + 1 < offsets.size(); ++i) {
    if ((offsets[i + 1] - offsets[i]) % w.line != 0)
      fail("[unfold] expected sequence lengths that are multiples of the line length ({}), got {}",
           w.line, offsets[i + 1] - offsets[i]);
  }
}

}  // namespace

Offsets unfolded_offsets(std::span<const std::int32_t> offsets, const UnfoldWindow& window) {
  Offsets all{0};
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const Grid grid(offsets[i + 1] - offsets[i], window);
    all.push_back(all.back() + static_cast<std::int32_t>(grid.windows(window.stride)));
  }
  return all;
}

Tensor unfold(const Tensor& x, std::span<const std::int32_t> offsets, const UnfoldWindow& window) {
  if (x.shape().rank() != 2) fail("[unfold] expected x [rows, d], got {}", x.shape());
  require_offsets("unfold", offsets, x.shape()[0]);
  require_window(window, offsets);
  Unfold op;
  op.offsets.assign(offsets.begin(), offsets.end());
  op.window = window;
  return apply(std::move(op), x);
}

HEED_END
