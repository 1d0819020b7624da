#include "nn/layers/mixer_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/base/enum_names.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

// The first sequence is long enough to detect a row that reads far ahead.
constexpr std::int64_t first_length = 40, second_length = 7;
constexpr std::int64_t rows = first_length + second_length;
constexpr std::int64_t steps = 8;

void fill(Array& values, double scale, Random& random) {
  for (real& v : values.values()) v = static_cast<real>(scale * random.normal());
}

/// Whether two rows differ by more than the rounding errors of a different order of operations.
bool differ(const Array& a, std::int64_t i, const Array& b, std::int64_t j) {
  constexpr double tolerance = 1e-3;  // a dependence changes a row by much more
  for (std::int64_t k = 0; k < a.cols(); ++k) {
    const double x = a.row(i)[k], y = b.row(j)[k];
    if (!(std::abs(x - y) <= tolerance * (1 + std::abs(x)))) return true;
  }
  return false;
}

class Check {
 public:
  Check(const ModelOptions& options, AttentionScope scope)
      : name_(name_of(options.mixer)), d_(options.d_model), scope_(scope) {
    Init init(1);
    mixer_ = make_mixer(options, scope, init);
    // The weights are random, because initial values of zero, or those that close a gate, could
    // hide a dependence.
    std::set<std::string> names;
    for (NamedTensor& p : mixer_->parameters()) {
      if (!names.insert(p.name).second)
        reject(fmt::format("two of its parameters have the name {}", p.name));
      const Shape& shape = p.tensor.shape();
      const double in = shape.rank() > 1 ? static_cast<double>(shape.cols()) : 1;
      fill(p.tensor.mutable_value(), 1 / std::sqrt(std::max(in, 1.0)), random_);
    }
  }

  void run() {
    const Array x = random_rows(rows);
    const Array y = run_whole(x, {0, first_length, rows});
    if (y.shape() != x.shape())
      reject(fmt::format("it returns shape {} for rows of shape {}; expected the same shape",
                         y.shape(), x.shape()));
    if (!std::ranges::all_of(y.values(), [](real v) { return std::isfinite(v); }))
      reject("its output is not finite for finite input");
    for (const std::int64_t from : {std::int64_t{1}, first_length / 2, first_length - 1})
      check_change(x, y, from, first_length);
    check_change(x, y, first_length, rows);
    if (scope_ == AttentionScope::past) check_steps();
  }

 private:
  [[noreturn]] void reject(const std::string& what) const { fail("mixer {}: {}", name_, what); }

  Array random_rows(std::int64_t n) {
    Array x({n, d_});
    fill(x, 1, random_);
    return x;
  }

  Array run_whole(const Array& x, const std::vector<std::int32_t>& offsets) const {
    Pass pass;
    return (*mixer_)(Tensor(x), {offsets, nullptr, pass}).value();
  }

  /// Checks that new values in rows [begin, end), the last rows of a sequence, change no other
  /// sequence and, with AttentionScope::past, no earlier row.
  void check_change(const Array& x, const Array& y, std::int64_t begin, std::int64_t end) {
    Array changed = x.clone();
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = 0; k < d_; ++k) changed.row(i)[k] = static_cast<real>(random_.normal());
    const Array y_changed = run_whole(changed, {0, first_length, rows});
    for (std::int64_t i = 0; i < rows; ++i) {
      if ((i >= begin && i < end) || !differ(y, i, y_changed, i)) continue;
      const bool same_sequence = (i < first_length) == (begin < first_length);
      if (!same_sequence)
        reject(
            "a sequence depends on another sequence of its batch; context.offsets gives the index "
            "of each sequence's first row");
      if (scope_ == AttentionScope::past)
        reject(
            fmt::format("row {} of a sequence depends on rows {} and later; in a decoder "
                        "(AttentionScope::past), a row may read only itself and earlier rows",
                        i, begin));
    }
  }

  /// Decodes two hypotheses; halfway, both continue the second.
  void check_steps() {
    const NoGrad no_grad;
    Cache cache(2);
    cache.layers.resize(1);
    std::vector<Array> read;
    Pass pass;
    const std::vector<std::int32_t> each{0, 1, 2};
    for (std::int64_t t = 0; t < steps; ++t) {
      if (t == steps / 2) cache.select(std::vector<std::int32_t>{1, 1});
      cache.grow();
      read.push_back(random_rows(2));
      const Array y =
          mixer_->step(Tensor(read.back().clone()), {each, nullptr, pass, &cache}).value();
      if (y.shape() != read.back().shape())
        reject(
            fmt::format("a decoding step returns shape {} for rows of shape {}; expected the same "
                        "shape",
                        y.shape(), read.back().shape()));
      for (std::int64_t i = 0; i < 2; ++i) {
        Array sequence({t + 1, d_});
        for (std::int64_t s = 0; s <= t; ++s)
          std::copy_n(read[s].row(cache.paths[i][s]), d_, sequence.row(s));
        const Array whole = run_whole(sequence, {0, static_cast<std::int32_t>(t + 1)});
        if (differ(whole, t, y, i))
          reject(
              fmt::format("step-by-step decoding and a pass over the whole sequence differ at "
                          "position {}; check step()",
                          t));
      }
    }
  }

  std::string name_;
  std::int64_t d_;
  AttentionScope scope_;
  Random random_{RandomKey{.seed = 1, .stream = Stream::check}};
  std::unique_ptr<Mixer> mixer_;
};

}  // namespace

void check_mixer(const ModelOptions& options, AttentionScope scope) { Check(options, scope).run(); }

void check_registered_mixer(const ModelOptions& options, AttentionScope scope) {
  if (!is_built_in(options.mixer)) check_mixer(options, scope);
}

HEED_END
