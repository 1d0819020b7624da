#include "autograd/ops/more/cross_entropy.h"

#include <algorithm>
#include <optional>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/kernels/fast/rows.h"
#include "autograd/kernels/gemm.h"
#include "autograd/ops/shared/loss.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// x Wᵀ + b for `rows` rows of x
Array logits_of(const real* x, std::int64_t rows, const Array& weight, const Array& bias) {
  const std::int64_t in = weight.cols(), classes = weight.rows();
  Array z({rows, classes});
  gemm(Trans::no, Trans::yes, rows, classes, in, 1, x, in, weight.data(), in, 0, z.data(), classes);
  if (bias.defined()) kernels::add_bias(z.data(), bias.data(), z.data(), rows, classes);
  return z;
}

/// row_losses for R-Drop (rdrop_cross_entropy): of the n rows, r and r + n / 2 belong to target r.
LossCounts paired_chunk_loss(Array& logits, const std::int32_t* targets, real smoothing, real alpha,
                             real factor, bool with_grad, std::vector<double>* each) {
  const std::int64_t half = logits.rows() / 2, classes = logits.cols();
  Array log_p({2, classes});
  LossCounts counts;
  for (std::int64_t r = 0; r < half; ++r) {
    real* const rows[] = {logits.row(r), logits.row(half + r)};
    if (targets[r] == ignored_target) {
      for (real* const row : rows) std::fill_n(row, with_grad ? classes : 0, real(0));
      continue;
    }
    for (const int k : {0, 1}) kernels::log_softmax_row(rows[k], log_p.row(k), classes);
    counts.loss += alpha / 4 *
                   kernels::symmetric_kl_row(log_p.row(0), log_p.row(1), classes,
                                             factor * alpha / 4, with_grad);
    double nll = 0;
    for (const int k : {0, 1}) {
      const kernels::RowLoss row = kernels::cross_entropy_row(rows[k], classes, targets[r],
                                                              smoothing, factor / 2, with_grad);
      counts.loss += row.loss / 2;
      nll += row.nll / 2;
      counts.correct += k == 0 && row.correct ? 1 : 0;
      if (with_grad) kernels::axpy(1, log_p.row(k), rows[k], classes);
    }
    counts.nll += nll;
    ++counts.tokens;
    if (each != nullptr) each->push_back(nll);
  }
  return counts;
}

/// row_losses for distillation. `taught` contains the teacher's logits, which are overwritten.
LossCounts distilled_chunk_loss(Array& logits, Array& taught, const std::int32_t* targets,
                                real smoothing, const TeacherLogits& teacher, real factor,
                                bool with_grad, std::vector<double>* each) {
  const std::int64_t classes = logits.cols();
  const real share = teacher.share, t = teacher.temperature;
  Array log_p({classes}), q({classes});
  LossCounts counts;
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    real *const z = logits.row(r), *const theirs = taught.row(r);
    if (targets[r] == ignored_target) {
      std::fill_n(z, with_grad ? classes : 0, real(0));
      continue;
    }
    kernels::scale(1 / t, z, log_p.data(), classes);
    kernels::log_softmax_row(log_p.data(), log_p.data(), classes);
    kernels::scale(1 / t, theirs, theirs, classes);
    kernels::softmax_row(theirs, q.data(), classes);
    kernels::log_softmax_row(theirs, theirs, classes);
    kernels::axpy(-1, log_p.data(), theirs, classes);  // log q − log p
    const double divergence = kernels::dot(q.data(), theirs, classes);
    const kernels::RowLoss row = kernels::cross_entropy_row(z, classes, targets[r], smoothing,
                                                            factor * (1 - share), with_grad);
    counts.loss += (1 - share) * row.loss + share * t * t * divergence;
    counts.nll += row.nll;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each != nullptr) each->push_back(row.nll);
    if (!with_grad) continue;
    kernels::softmax_row(log_p.data(), log_p.data(), classes);  // p
    kernels::axpy(factor * share * t, log_p.data(), z, classes);
    kernels::axpy(-factor * share * t, q.data(), z, classes);
  }
  return counts;
}

/// The same loss for logits z = x Wᵀ + b, in chunks of rows. Each chunk's dz is used at once for
///   dx = dz W,  dW += dzᵀ x,  db += Σ_rows dz
/// so the logits and gradients dz of only one chunk exist at a time. With R-Drop (`alpha`), a chunk
/// contains both rows of each of its targets. The logits of a teacher are also computed chunk by
/// chunk.
/// Shapes: x: [rows, in], W: [classes, in], b: [classes] or none
struct ProjectedCrossEntropy {
  /// Approximate number of logits per chunk, few enough to fit in the last-level cache. A chunk has at
  /// most 4096 rows, and at least 256, even if its logits then exceed the cache, because each chunk
  /// reads the weights and reads and writes their gradient.
  static constexpr std::int64_t chunk_values = std::int64_t{1} << 21;

  std::span<const std::int32_t> targets;
  real smoothing = 0;
  double divisor = 1;
  std::optional<real> alpha = std::nullopt;
  const TeacherLogits* teacher = nullptr;  // read in forward only
  bool needs_x = false, needs_weight = false, needs_bias = false;
  LossCounts* counts = nullptr;
  Array dx, dweight, dbias;

  Array forward(const Array& x, const Array& weight, const Array& bias) {
    check_shapes(x, weight, bias);
    const std::int64_t times = alpha ? 2 : 1, rows = x.rows() / times, in = x.cols(),
                       classes = weight.shape()[0];
    if (x.rows() % times != 0)
      fail("[{}] expected an even number of rows, got {}", name(), x.rows());
    require_targets(name(), rows, classes, targets, smoothing, divisor);
    if (needs_x) dx = Array(x.shape());
    if (needs_weight) dweight = rows == 0 ? Array::zeros(weight.shape()) : Array(weight.shape());
    if (needs_bias) dbias = Array::zeros(bias.shape());
    const std::int64_t chunk =
        std::clamp<std::int64_t>(chunk_values / std::max<std::int64_t>(classes, 1), 256, 4096) /
        times;
    LossCounts total;
    for (std::int64_t begin = 0; begin < rows; begin += chunk) {
      const std::int64_t n = std::min(chunk, rows - begin);
      Array inputs = paired_rows(x, begin, n, rows);
      const real* const input = alpha ? inputs.data() : x.row(begin);
      Array z = logits_of(input, times * n, weight, bias);
      const bool with_grad = needs_x || needs_weight || needs_bias;
      const auto factor = static_cast<real>(1 / divisor);
      const std::int32_t* const chunk_targets = targets.data() + begin;
      std::vector<double>* const each = counts != nullptr ? counts->each : nullptr;
      if (teacher != nullptr) {
        Array taught = logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias);
        total.add(distilled_chunk_loss(z, taught, chunk_targets, smoothing, *teacher, factor,
                                       with_grad, each));
      } else if (alpha) {
        total.add(paired_chunk_loss(z, chunk_targets, smoothing, *alpha, factor, with_grad, each));
      } else {
        total.add(row_losses(z, chunk_targets, smoothing, factor, with_grad, each));
      }
      if (needs_weight) {
        gemm(Trans::yes, Trans::no, classes, in, z.rows(), 1, z.data(), classes, input, in,
             begin == 0 ? real(0) : real(1), dweight.data(), in);
      }
      if (needs_bias) kernels::add_column_sums(z.data(), z.rows(), classes, dbias.data());
      if (needs_x) {  // R-Drop: `inputs` is reused for dx of both passes
        gemm(Trans::no, Trans::no, z.rows(), in, classes, 1, z.data(), classes, weight.data(), in,
             0, alpha ? inputs.data() : dx.row(begin), in);
        if (alpha) {
          std::copy_n(inputs.row(0), n * in, dx.row(begin));
          std::copy_n(inputs.row(n), n * in, dx.row(rows + begin));
        }
      }
    }
    if (counts != nullptr) counts->add(total);
    return Array::scalar(static_cast<real>(total.loss / divisor));
  }

  void backward(const Array& dy, Grad to_x, Grad to_weight, Grad to_bias) const {
    const real factor = dy.item();
    if (to_x) to_x.add(times_cotangent(dx, factor));
    if (to_weight) to_weight.add(times_cotangent(dweight, factor));
    if (to_bias) to_bias.add(times_cotangent(dbias, factor));
  }

 private:
  const char* name() const {
    return teacher != nullptr ? "distilled_cross_entropy"
           : alpha            ? "rdrop_cross_entropy"
                              : "projected_cross_entropy";
  }
  /// R-Drop: rows [begin, begin + n) of both passes together, so that one product covers them;
  /// otherwise an undefined array.
  Array paired_rows(const Array& x, std::int64_t begin, std::int64_t n, std::int64_t rows) const {
    if (!alpha) return {};
    Array both({2 * n, x.cols()});
    std::copy_n(x.row(begin), n * x.cols(), both.row(0));
    std::copy_n(x.row(rows + begin), n * x.cols(), both.row(n));
    return both;
  }
  void check_shapes(const Array& x, const Array& weight, const Array& bias) const {
    if (x.shape().rank() != 2 || weight.shape().rank() != 2 || x.cols() != weight.cols()) {
      fail("[{}] expected x [rows, in] and weight [classes, in], got {} and {}", name(), x.shape(),
           weight.shape());
    }
    if (bias.defined() && bias.shape() != Shape{weight.shape()[0]}) {
      fail("[{}] expected a bias [{}], got {}", name(), weight.shape()[0], bias.shape());
    }
    if (teacher == nullptr) return;
    const Shape &teacher_rows = teacher->x.shape(), &matrix = teacher->weight.shape();
    if (teacher_rows.rank() != 2 || matrix.rank() != 2 || teacher_rows.rows() != x.rows() ||
        teacher_rows.cols() != matrix.cols() || matrix.rows() != weight.rows() ||
        (teacher->bias.defined() && teacher->bias.shape() != Shape{matrix.rows()})) {
      fail(
          "[{}] expected teacher logits of {} rows and {} classes, got x {}, weight {} and bias {}",
          name(), x.rows(), weight.rows(), teacher_rows, matrix,
          teacher->bias.defined() ? teacher->bias.shape() : Shape{});
    }
    if (!(teacher->share >= 0 && teacher->share <= 1) || !(teacher->temperature > 0))
      fail("[{}] expected a share in [0, 1] and a temperature above 0, got {} and {}", name(),
           teacher->share, teacher->temperature);
  }
};

Tensor projected(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 std::span<const std::int32_t> targets, real smoothing, std::optional<real> alpha,
                 const TeacherLogits* teacher, double divisor, LossCounts* counts) {
  ProjectedCrossEntropy op;
  op.teacher = teacher;
  op.targets = targets;
  op.smoothing = smoothing;
  op.divisor = divisor;
  op.alpha = alpha;
  op.needs_x = recording() && x.needs_grad();
  op.needs_weight = recording() && weight.needs_grad();
  op.needs_bias = recording() && bias.needs_grad();
  op.counts = counts;
  return apply(std::move(op), x, weight, bias);
}

}  // namespace

Tensor projected_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               std::span<const std::int32_t> targets, real smoothing,
                               double divisor, LossCounts* counts) {
  return projected(x, weight, bias, targets, smoothing, std::nullopt, nullptr, divisor, counts);
}

Tensor rdrop_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::span<const std::int32_t> targets, real smoothing, real alpha,
                           double divisor, LossCounts* counts) {
  if (!(alpha >= 0)) fail("[rdrop_cross_entropy] expected alpha >= 0, got {}", alpha);
  return projected(x, weight, bias, targets, smoothing, alpha, nullptr, divisor, counts);
}

Tensor distilled_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               std::span<const std::int32_t> targets, real smoothing,
                               const TeacherLogits& teacher, double divisor, LossCounts* counts) {
  return projected(x, weight, bias, targets, smoothing, std::nullopt, &teacher, divisor, counts);
}

HEED_END
