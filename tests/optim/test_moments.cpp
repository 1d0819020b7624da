// Moments in fewer bytes than a float: their values, their rounding, and the optimizers that keep them.
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "optim/moments.h"
#include "optim/optimizer.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(moments)

namespace {

constexpr MomentKind compact[] = {MomentKind::bf16, MomentKind::float8};

/// All non-negative values of float8 in a block with exponent E, from the formula in compact.h.
std::set<double> values_of_float8(bool with_sign, int E) {
  const int k = with_sign ? 15 : 31;
  std::set<double> all;
  for (int c = 0; c < (with_sign ? 128 : 256); ++c) {
    all.insert(c < 8 ? std::ldexp(c / 8.0, E - k + 1)
                     : std::ldexp(1 + (c % 8) / 8.0, E - k + c / 8));
  }
  return all;
}

/// Those of bfloat16 near x: float32 values whose lower 16 bits are zero.
std::set<double> values_of_bf16(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent), steps = std::floor(std::ldexp(fraction, 8));
  return {std::ldexp(steps, exponent - 8), std::ldexp(steps + 1, exponent - 8)};
}

/// The largest value is 1.5, so a block of float8 has exponent 0. The others cover the range down to 0.
Array spread(std::int64_t n, bool with_sign) {
  Array all = normal({n}, 3);
  for (std::int64_t i = 0; i < n; ++i) {
    real& x = all.data()[i];
    x = std::ldexp(std::abs(std::remainder(x, real(1))) + real(0.6), -static_cast<int>(i % 40));
    if (i % 64 == 0) x = 1.5;
    if (i % 64 == 63) x = 0;
    if (with_sign && i % 3 == 1) x = -x;
  }
  return all;
}

/// The values that a moment has after one of them was stored with `key`.
Array stored(MomentKind kind, bool with_sign, const Array& x, std::uint32_t key) {
  Moment moment(kind, with_sign, x.shape());
  std::vector<real> buffer(x.values().begin(), x.values().end());
  buffer.resize(Moment::chunk_values);
  moment.write(0, x.size(), buffer.data(), key);
  return moment.values();
}

Parameters some_parameters() {
  return {{"a", Tensor::variable(normal({70, 53}, 1))}, {"b", Tensor::variable(normal({5}, 2))}};
}

OptimOptions options_of(OptimizerKind name, MomentKind moments) {
  OptimOptions o;
  o.name = name;
  o.moments = moments;
  return o;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stored_value_is_a_neighbour_and_right_on_average) {
  constexpr std::int64_t n = 200, rounds = 4000;  // three whole blocks and a part of one
  for (const MomentKind kind : compact) {
    for (const bool with_sign : {true, false}) {
      const Array x = spread(n, with_sign);
      std::vector<double> sums(n);
      for (std::uint32_t key = 0; key < rounds; ++key) {
        const Array y = stored(kind, with_sign, x, key);
        for (std::int64_t i = 0; i < n; ++i) sums[i] += y.data()[i];
        if (key > 50) continue;
        const std::set<double> of_block = values_of_float8(with_sign, 0);
        for (std::int64_t i = 0; i < n; ++i) {
          const double size = std::abs(x.data()[i]);
          const std::set<double> grid =
              kind == MomentKind::float8 || size == 0 ? of_block : values_of_bf16(size);
          const auto above = grid.lower_bound(size);
          const double high = *above, low = high == size ? high : *std::prev(above);
          const double found = std::abs(y.data()[i]);
          BOOST_TEST((found == high || found == low), size << " became " << found);
          BOOST_TEST((y.data()[i] == 0 || std::signbit(y.data()[i]) == std::signbit(x.data()[i])));
        }
      }
      for (std::int64_t i = 0; i < n; ++i) {
        const double size = std::abs(x.data()[i]), mean = sums[i] / rounds;
        // The distance of neighbours: an eighth of the power of two, and not less than that of the smallest.
        const double step = kind == MomentKind::float8
                                ? std::max(std::exp2(std::floor(std::log2(size + 1e-30)) - 3),
                                           std::ldexp(1, with_sign ? -17 : -33))
                                : std::ldexp(size, -7);
        // Five standard deviations of the mean of `rounds` values, each at most a half of the distance.
        BOOST_TEST(std::abs(mean - x.data()[i]) <=
                       5 * 0.5 * step / std::sqrt(double(rounds)) + 1e-5 * step,
                   "mean " << mean << " of " << x.data()[i]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(values_that_have_been_stored_are_stored_without_change) {
  for (const MomentKind kind : compact) {
    for (const bool with_sign : {true, false}) {
      // The largest value of a block is 1.5 · factor: below 1.875, at it, where rounding may reach it, and
      // above it.
      for (const auto& [factor, scale] :
           {std::pair{1.0, 0}, {1.2, 40}, {1.25, 0}, {1.25, -60}, {1.33, -60}, {1.33, 40}}) {
        Array x = spread(333, with_sign);
        for (real& v : x.values()) v = static_cast<real>(std::ldexp(v * factor, scale));
        for (std::uint32_t first = 1; first <= 8; ++first) {
          const Array once = stored(kind, with_sign, x, first);
          for (std::uint32_t key = 10; key < 30; ++key)
            BOOST_TEST(same_bits(stored(kind, with_sign, once, key), once));
        }
        BOOST_TEST(!same_bits(stored(kind, with_sign, x, 2), stored(kind, with_sign, x, 1)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(changes_smaller_than_the_distance_of_neighbours_add_up) {
  // v = 0.999 v + 0.001 g² with a constant gradient approaches g². Rounding to the nearest would stop
  // far below: in bf16 where 0.001 (g² − v) is less than half of v / 256.
  for (const MomentKind kind : compact) {
    OptimOptions options = options_of(OptimizerKind::adam, kind);
    options.betas = {0.9, 0.999};
    const Parameters parameters{{"w", Tensor::variable(normal({1024}, 5))}};
    Optimizer optimizer(options, parameters);
    for (int t = 0; t < 5000; ++t) optimizer.step({Array::full({1024}, real(0.01))}, 0);
    for (const int which : {0, 1}) {
      double mean = 0;
      const Array found = optimizer.state()[which].tensor.value();
      for (const double x : found.values()) mean += x / 1024;
      const double right = which == 0 ? 0.01 : 1e-4 * (1 - std::pow(0.999, 5000));
      BOOST_TEST(std::abs(mean / right - 1) < 0.01, "mean " << mean << ", expected " << right);
    }
  }
}

BOOST_AUTO_TEST_CASE(moments_in_fewer_bytes_follow_those_in_float32) {
  // The moments of 100 steps with gradients of very different sizes. Each stored value of float8 is within an
  // eighth of its value, and those of the last steps count most.
  for (const auto& [kind, limit] :
       {std::pair{MomentKind::bf16, 0.02}, {MomentKind::float8, 0.25}}) {
    Parameters parameters = some_parameters(), others = some_parameters();
    Optimizer exact(options_of(OptimizerKind::adam, MomentKind::float32), parameters),
        optimizer(options_of(OptimizerKind::adam, kind), others);
    for (std::uint32_t t = 1; t <= 100; ++t) {
      Array a = normal({70, 53}, 10 * t), b = normal({5}, 10 * t + 1);
      for (std::int64_t i = 0; i < a.size(); ++i)
        a.data()[i] *= std::exp2(static_cast<real>(-(i % 10)));
      exact.step({a, b}, 0.01);
      optimizer.step({a, b}, 0.01);
    }
    double error = 0, size = 0;
    for (int i = 0; i < 3710; ++i) {
      const double v = exact.state()[1].tensor.value().data()[i],
                   w = optimizer.state()[1].tensor.value().data()[i];
      BOOST_REQUIRE_GT(w, 0);
      error += std::abs(w / v - 1) / 3710;
      size +=
          std::abs(parameters[0].tensor.value().data()[i] - others[0].tensor.value().data()[i]) /
          3710;
    }
    BOOST_TEST(error < limit / 2);
    BOOST_TEST(error > 0);
    BOOST_TEST(size < 0.1 * limit);  // each of 100 steps moves a weight by at most about 0.01
  }
}

BOOST_AUTO_TEST_CASE(compact_momentum_stays_close_to_momentum_in_float32) {
  for (const auto& [kind, limit] :
       {std::pair{MomentKind::bf16, 0.02}, {MomentKind::float8, 0.25}}) {
    Parameters parameters = some_parameters(), others = some_parameters();
    Optimizer exact(options_of(OptimizerKind::sgd, MomentKind::float32), parameters),
        optimizer(options_of(OptimizerKind::sgd, kind), others);
    const Array before = parameters[0].tensor.value().clone();
    for (std::uint32_t t = 1; t <= 20; ++t) {
      const std::vector<Array> gradients{normal({70, 53}, 10 * t), normal({5}, 10 * t + 1)};
      exact.step(gradients, 0.01);
      optimizer.step(gradients, 0.01);
    }
    double apart = 0, size = 0, apart_weights = 0, moved = 0;
    const Array m = exact.state()[0].tensor.value(), found = optimizer.state()[0].tensor.value();
    for (std::int64_t i = 0; i < m.size(); ++i) {
      apart += std::abs(found.data()[i] - m.data()[i]);
      size += std::abs(m.data()[i]);
      const double w = parameters[0].tensor.value().data()[i];
      apart_weights += std::abs(others[0].tensor.value().data()[i] - w);
      moved += std::abs(w - before.data()[i]);
    }
    BOOST_TEST(apart > 0);
    BOOST_TEST(apart < limit * size);
    BOOST_TEST(apart_weights < limit * moved);
  }
}

BOOST_AUTO_TEST_CASE(ranges_of_whole_blocks_and_restored_moments_give_the_same_bits) {
  for (const MomentKind kind : compact) {
    for (const OptimizerKind name : {OptimizerKind::adam, OptimizerKind::sgd}) {
      Parameters whole = some_parameters(), parts = some_parameters(), copies;
      Optimizer a(options_of(name, kind), whole), b(options_of(name, kind), parts);
      const auto gradients = [](std::uint32_t t) {
        return std::vector<Array>{normal({70, 53}, 10 * t), normal({5}, 10 * t + 1)};
      };
      for (std::uint32_t t = 1; t <= 4; ++t) {
        a.step(gradients(t), 0.01, 0.5);
        b.begin_step(0.01, 0.5);
        for (const auto& [parameter, begin, end] :
             {std::tuple{0, 2048, 3710}, {1, 0, 5}, {0, 64, 2048}, {0, 0, 64}})
          b.update(parameter, begin, end, gradients(t)[parameter].data());
      }
      for (const NamedTensor& p : parts)
        copies.push_back({p.name, Tensor::variable(p.tensor.value().clone())});
      Optimizer restored(options_of(name, kind), copies);
      restored.set_steps(b.steps());
      restored.set_state(b.state());
      for (std::uint32_t t = 5; t <= 8; ++t) {
        a.step(gradients(t), 0.01, 0.5);
        restored.step(gradients(t), 0.01, 0.5);
      }
      for (std::size_t i = 0; i < 2; ++i)
        BOOST_TEST(same_bits(whole[i].tensor.value(), copies[i].tensor.value()));
      for (std::size_t i = 0; i < a.state().size(); ++i)
        BOOST_TEST(same_bits(a.state()[i].tensor.value(), restored.state()[i].tensor.value()));
    }
  }
}

BOOST_AUTO_TEST_CASE(partial_optimizers_round_moments_like_a_full_optimizer) {
  constexpr std::int64_t size = 70 * 53 + 5, cut = 2048;
  for (const MomentKind kind : compact) {
    for (const OptimizerKind name : {OptimizerKind::adam, OptimizerKind::sgd}) {
      Parameters whole = some_parameters(), left = some_parameters(), right = some_parameters();
      Optimizer a(options_of(name, kind), whole), b(options_of(name, kind), left, {0, cut}),
          c(options_of(name, kind), right, {cut, size});
      for (std::uint32_t t = 1; t <= 8; ++t) {
        const std::vector<Array> gradients{normal({70, 53}, 10 * t), normal({5}, 10 * t + 1)};
        a.step(gradients, 0.01, 0.5);
        for (Optimizer* part : {&b, &c}) {
          part->begin_step(0.01, 0.5);
          for (std::size_t p = 0; p < 2; ++p) {
            const ValueRange own = part->owned(p);
            if (own.size() > 0) part->update(p, own.begin, own.end, gradients[p].data());
          }
        }
      }
      for (std::int64_t i = 0; i < 70 * 53; ++i) {
        const Parameters& owner = i < cut ? left : right;
        BOOST_REQUIRE(whole[0].tensor.value().data()[i] == owner[0].tensor.value().data()[i]);
      }
      BOOST_TEST(same_bits(whole[1].tensor.value(), right[1].tensor.value()));
    }
  }
}

BOOST_AUTO_TEST_CASE(update_reports_whether_all_values_were_finite) {
  constexpr std::int64_t size = 70 * 53;
  for (const MomentKind kind : {MomentKind::float32, MomentKind::bf16, MomentKind::float8})
    for (const OptimizerKind name : {OptimizerKind::adam, OptimizerKind::sgd})
      for (const std::int64_t at : {std::int64_t{-1}, std::int64_t{5}, size / 2, size - 1}) {
        Parameters parameters = some_parameters();
        if (at >= 0)
          parameters[0].tensor.mutable_value().data()[at] = std::numeric_limits<real>::infinity();
        Optimizer optimizer(options_of(name, kind), parameters);
        optimizer.begin_step(0.01, 1);
        BOOST_TEST(optimizer.update(0, 0, size, normal({70, 53}, 3).data()) == (at < 0));
      }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
