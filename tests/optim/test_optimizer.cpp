// Updates compared with their definitions, updates of ranges, clipping, and refused arguments.
#include <limits>
#include <string>

#include "autograd/ops.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(optimizers)

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

OptimOptions options_of(OptimizerKind kind) {
  OptimOptions o;
  o.name = kind;
  o.weight_decay = kind == OptimizerKind::adam ? 0 : 0.1;
  return o;
}

Parameters some_parameters() {
  return {{"a", Tensor::variable(normal({7, 11}, 1))}, {"b", Tensor::variable(normal({5}, 2))}};
}

constexpr OptimizerKind kinds[] = {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd};

}  // namespace

BOOST_AUTO_TEST_CASE(adam_equals_algorithm_1_of_kingma_and_ba) {
  const Parameters parameters = some_parameters();
  Parameters defined;
  for (const NamedTensor& p : parameters)
    defined.push_back({p.name, Tensor::variable(p.tensor.value().clone())});
  OptimOptions options = options_of(OptimizerKind::adam);
  options.betas = {0.8, 0.95};
  options.eps = 1e-3;
  options.clip_norm = 0;
  Optimizer optimizer(options, parameters);
  reference::Adam definition(defined);
  definition.beta1 = 0.8;
  definition.beta2 = 0.95;
  definition.eps = 1e-3;
  for (int t = 1; t <= 100; ++t) {
    // The gradients depend on the weights, and their size changes by orders of magnitude.
    const auto loss = [&](const Parameters& all) {
      const auto size = static_cast<real>(t % 7 == 0 ? 1e-4 : 1.0);
      return scale(sum(sin(all[0].tensor)) + sum(mul(all[1].tensor, all[1].tensor)), size);
    };
    const double lr = 0.01 / t;
    optimizer.step(backward(loss(parameters)), lr);
    definition.step(backward(loss(defined)), lr);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      BOOST_TEST(difference(parameters[i].tensor.value(), defined[i].tensor.value()) < 1e-13);
      BOOST_TEST(difference(optimizer.state()[2 * i].tensor.value(), definition.m[i]) < 1e-13);
      BOOST_TEST(difference(optimizer.state()[2 * i + 1].tensor.value(), definition.v[i]) < 1e-13);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_size_of_adams_first_step_is_the_learning_rate) {
  for (const double g : {1e-6, 1.0, -1e6}) {
    Parameters parameters{{"w", Tensor::variable(Array::zeros({1}))}};
    Optimizer optimizer(options_of(OptimizerKind::adam), parameters);
    optimizer.step({Array::full({1}, g)}, 0.01);
    // The tolerance allows for the effect of eps if g = 1e-6.
    BOOST_TEST(std::abs(parameters[0].tensor.item() + std::copysign(0.01, g)) < 1.1e-5);
  }
}

BOOST_AUTO_TEST_CASE(weight_decay_is_decoupled_in_adamw_and_absent_in_adam) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    OptimOptions o = options_of(kind);
    o.weight_decay = 0.1;
    Parameters parameters{{"w", Tensor::variable(Array::full({1, 1}, 2))}};
    Optimizer optimizer(o, parameters);
    optimizer.step({Array::zeros({1, 1})}, 0.5);
    BOOST_TEST(std::abs(parameters[0].tensor.item() -
                        (kind == OptimizerKind::adamw ? 2 * (1 - 0.5 * 0.1) : 2.0)) < 1e-15);
  }
}

BOOST_AUTO_TEST_CASE(weight_decay_of_matrices_excludes_biases) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    for (const DecayedParameters decayed : {DecayedParameters::matrices, DecayedParameters::all}) {
      OptimOptions o = options_of(kind);
      o.decay = decayed;
      Parameters parameters{{"weight", Tensor::variable(Array::full({2, 3}, 2))},
                            {"bias", Tensor::variable(Array::full({3}, 2))}};
      Optimizer(o, parameters).step({Array::zeros({2, 3}), Array::zeros({3})}, 0.5);
      const double shrunk = 2 * (1 - 0.5 * 0.1);
      for (const double w : parameters[0].tensor.value().values())
        BOOST_TEST(std::abs(w - shrunk) < 1e-15);
      for (const double b : parameters[1].tensor.value().values())
        BOOST_TEST(std::abs(b - (decayed == DecayedParameters::all ? shrunk : 2.0)) < 1e-15);
    }
  }
}

BOOST_AUTO_TEST_CASE(updates_of_ranges_that_cover_all_parameters_equal_a_full_update) {
  for (const OptimizerKind kind : kinds) {
    Parameters whole = some_parameters(), parts = some_parameters();
    Optimizer a(options_of(kind), whole), b(options_of(kind), parts);
    for (std::uint32_t t = 1; t <= 5; ++t) {
      const std::vector<Array> gradients{normal({7, 11}, 10 * t), normal({5}, 10 * t + 1)};
      a.step(gradients, 0.01, 0.5);
      b.begin_step(0.01, 0.5);
      for (const auto& [parameter, begin, end] :
           {std::tuple{0, 33, 77}, {1, 0, 5}, {0, 1, 33}, {0, 0, 1}}) {
        const auto p = static_cast<std::size_t>(parameter);
        b.update(p, begin, end, gradients[p].data());
      }
      for (std::size_t i = 0; i < 2; ++i)
        BOOST_TEST(same_bits(whole[i].tensor.value(), parts[i].tensor.value()));
    }
    for (std::size_t i = 0; i < a.state().size(); ++i) {
      BOOST_TEST(same_bits(a.state()[i].tensor.value(), b.state()[i].tensor.value()));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_update_of_a_range_changes_only_that_range) {
  for (const OptimizerKind kind : kinds) {
    Parameters parameters = some_parameters();
    const Array before = parameters[0].tensor.value().clone();
    Optimizer optimizer(options_of(kind), parameters);
    const Array gradient = normal({7, 11}, 3);
    optimizer.begin_step(0.01, 1);
    optimizer.update(0, 20, 30, gradient.data());
    for (std::int64_t i = 0; i < 77; ++i) {
      BOOST_TEST((parameters[0].tensor.value().data()[i] == before.data()[i]) ==
                 (i < 20 || i >= 30));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_gradient_scale_multiplies_the_gradients) {
  for (const OptimizerKind kind : kinds) {
    Parameters scaled = some_parameters(), unscaled = some_parameters();
    Optimizer a(options_of(kind), scaled), b(options_of(kind), unscaled);
    for (std::uint32_t t = 1; t <= 3; ++t) {
      const std::vector<Array> g{normal({7, 11}, t), normal({5}, t + 50)};
      std::vector<Array> quarter;
      for (const Array& x : g) {
        quarter.push_back(x.clone());
        for (real& v : quarter.back().values()) v *= real(0.25);
      }
      a.step(g, 0.01, 0.25);
      b.step(quarter, 0.01, 1);
    }
    for (std::size_t i = 0; i < 2; ++i)
      BOOST_TEST(difference(scaled[i].tensor.value(), unscaled[i].tensor.value()) < 1e-15);
  }
}

// A matrix and a vector have a gradient in the first of three steps. In the others, their moments
// and, by weight decay, the matrix shrink as with a gradient of 0.
BOOST_AUTO_TEST_CASE(parameters_without_a_gradient_are_updated_with_a_gradient_of_zero) {
  constexpr double lr = 0.01, beta1 = 0.8, beta2 = 0.95, momentum = 0.7;
  for (const OptimizerKind kind : kinds) {
    OptimOptions o = options_of(kind);
    o.betas = {beta1, beta2};
    o.momentum = momentum;
    const Parameters parameters = some_parameters();
    std::vector<Array> before;
    for (const NamedTensor& p : parameters) before.push_back(p.tensor.value().clone());
    const std::vector<Array> gradients{normal({7, 11}, 3), normal({5}, 4)};
    Optimizer optimizer(o, parameters);
    for (int t = 1; t <= 3; ++t) optimizer.step(t == 1 ? gradients : std::vector<Array>(2), lr);
    const std::vector<NamedTensor> state = optimizer.state();
    for (std::size_t p = 0; p < 2; ++p) {
      const double decay = p == 0 ? o.weight_decay : 0;
      for (std::int64_t i = 0; i < before[p].size(); ++i) {
        double w = before[p].data()[i], m = 0, v = 0;
        for (int t = 1; t <= 3; ++t) {
          const double g = t == 1 ? gradients[p].data()[i] : 0;
          if (kind == OptimizerKind::sgd) {
            m = momentum * m + g + decay * w;
            w -= lr * m;
          } else {
            m = beta1 * m + (1 - beta1) * g;
            v = beta2 * v + (1 - beta2) * g * g;
            w -= lr *
                 (m / (1 - std::pow(beta1, t)) / (std::sqrt(v / (1 - std::pow(beta2, t))) + o.eps) +
                  decay * w);
          }
        }
        BOOST_TEST(std::abs(parameters[p].tensor.value().data()[i] - w) < 1e-13);
        const std::size_t at = p * state.size() / 2;
        BOOST_TEST(std::abs(state[at].tensor.value().data()[i] - m) < 1e-13);
        if (kind != OptimizerKind::sgd)
          BOOST_TEST(std::abs(state[at + 1].tensor.value().data()[i] - v) < 1e-13);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(steps_of_an_optimizer_with_restored_state_have_the_same_bits) {
  for (const OptimizerKind kind : kinds) {
    Parameters parameters = some_parameters();
    Optimizer first(options_of(kind), parameters);
    const auto step = [](Optimizer& optimizer, std::uint32_t t) {
      optimizer.step({normal({7, 11}, t), normal({5}, t + 50)}, 0.01);
    };
    for (std::uint32_t t = 1; t <= 3; ++t) step(first, t);
    Parameters copies;
    for (const NamedTensor& p : parameters)
      copies.push_back({p.name, Tensor::variable(p.tensor.value().clone())});
    Optimizer second(options_of(kind), copies);
    second.set_steps(first.steps());
    for (std::size_t i = 0; i < first.state().size(); ++i)
      BOOST_TEST(first.state()[i].name == second.state()[i].name);
    second.set_state(first.state());
    for (std::uint32_t t = 4; t <= 6; ++t) {
      step(first, t);
      step(second, t);
    }
    for (std::size_t i = 0; i < 2; ++i)
      BOOST_TEST(same_bits(parameters[i].tensor.value(), copies[i].tensor.value()));
  }
}

BOOST_AUTO_TEST_CASE(moments_are_named_after_their_parameters) {
  const auto names = [](OptimizerKind kind) {
    std::string all;
    for (const NamedTensor& t : Optimizer(options_of(kind), some_parameters()).state())
      all += t.name + " ";
    return all;
  };
  BOOST_TEST(names(OptimizerKind::adam) == "m.a v.a m.b v.b ");
  BOOST_TEST(names(OptimizerKind::sgd) == "momentum.a momentum.b ");
}

BOOST_AUTO_TEST_CASE(clip_factor_of_a_non_finite_norm_is_one) {
  BOOST_TEST(clip_factor(nan, 1.0) == 1.0);
  BOOST_TEST(clip_factor(infinity, 1.0) == 1.0);
  BOOST_TEST(clip_factor(-nan, 1.0) == 1.0);
}

BOOST_AUTO_TEST_CASE(clipping_scales_larger_norms_to_the_maximum_and_keeps_smaller_norms) {
  for (const double norm : {1e-300, 0.0, 0.5, 0.999}) BOOST_TEST(clip_factor(norm, 1.0) == 1.0);
  for (const double norm : {1.0, 1.5, 1e10, 1e300}) {
    BOOST_TEST(clip_factor(norm, 1.0) * norm <= 1.0);
    BOOST_TEST(clip_factor(norm, 1.0) * norm > 0.999998);
  }
  for (const double norm : {0.1, 10.0, 1e300})
    BOOST_TEST(clip_factor(norm, 0.0) == 1.0);  // max_norm 0: no clipping
}

BOOST_AUTO_TEST_CASE(invalid_parameters_and_gradients_are_refused) {
  const OptimOptions o = options_of(OptimizerKind::adam);
  const Tensor w = Tensor::variable(normal({2, 3}, 1));
  EXPECT_FAIL(Optimizer(o, {{"w", Tensor()}}), "[optimizer] w is an undefined tensor");
  EXPECT_FAIL(Optimizer(o, {{"w", Tensor(normal({2}, 1))}}),
              "[optimizer] w is a constant: make it with Tensor::variable");
  EXPECT_FAIL(Optimizer(o, {{"w", mul(w, w)}}), "[optimizer] w is the result of an op");
  Optimizer optimizer(o, some_parameters());
  EXPECT_FAIL(optimizer.step({Array::zeros({7, 11})}, 0.1),
              "[optimizer] expected one gradient per parameter (2 in all), got 1");
  EXPECT_FAIL(optimizer.step({Array::zeros({7, 11}), Array::zeros({6})}, 0.1),
              "[optimizer] b has shape [5], but its gradient has shape [6]");
  BOOST_TEST(optimizer.steps() == 0);
}

BOOST_AUTO_TEST_CASE(a_variable_listed_twice_is_refused) {
  const Tensor w = Tensor::variable(normal({2, 3}, 1));
  EXPECT_FAIL(Optimizer({}, {{"in", w}, {"out", w}}),
              "[optimizer] in and out are the same variable: list it once");
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  const auto refused = [](const char* message, OptimOptions o) {
    EXPECT_FAIL(Optimizer(o, some_parameters()), message);
  };
  refused("[optimizer] expected lr of at least 0, got -1", {.lr = -1});
  refused("[optimizer] expected lr of at least 0, got nan", {.lr = nan});
  refused("[optimizer] expected betas in [0, 1), got 1", {.betas = {0.9, 1.0}});
  refused("[optimizer] expected betas in [0, 1), got -0.1", {.betas = {-0.1, 0.9}});
  refused("[optimizer] expected eps above 0, got 0", {.eps = 0});
  refused("[optimizer] expected weight_decay of at least 0, got -1", {.weight_decay = -1});
  refused("[optimizer] expected momentum in [0, 1), got 1", {.momentum = 1});
  refused("[optimizer] expected momentum in [0, 1), got -1", {.momentum = -1});
  refused("[optimizer] expected clip_norm of at least 0, got -1", {.clip_norm = -1});
}

BOOST_AUTO_TEST_CASE(a_step_from_gradients_uses_the_scheduled_rate_and_clips_the_norm) {
  for (const OptimizerKind kind : kinds) {
    OptimOptions o = options_of(kind);
    o.lr = 0.01;
    o.clip_norm = 0.5;
    o.schedule = {.name = ScheduleKind::cosine, .warmup = 2, .steps = 6};
    const Parameters one = some_parameters(), other = some_parameters();
    Optimizer a(o, one), b(o, other);
    for (std::uint32_t t = 1; t <= 5; ++t) {
      const Array u = normal({7, 11}, t), v = normal({5}, t + 50);
      const Tensor loss = sum(one[0].tensor * u) + sum(one[1].tensor * v);
      const OptimizerStep used = a.step(backward(loss));
      double squares = 0;
      for (const Array* g : {&u, &v}) {
        for (const real x : g->values()) squares += x * x;
      }
      BOOST_TEST(used.lr == learning_rate(o, t, 6));
      BOOST_TEST(std::abs(used.gradient_norm - std::sqrt(squares)) < 1e-12);
      b.step({u, v}, used.lr, clip_factor(used.gradient_norm, 0.5));
      for (std::size_t i = 0; i < 2; ++i)
        BOOST_TEST(same_bits(one[i].tensor.value(), other[i].tensor.value()));
    }
    BOOST_TEST(a.steps() == 5);
  }
}

BOOST_AUTO_TEST_CASE(an_optimizer_without_a_schedule_has_a_constant_rate) {
  const Parameters parameters = some_parameters();
  Optimizer optimizer({.lr = 0.1}, parameters);
  for (std::uint32_t t = 1; t <= 3; ++t)
    BOOST_TEST(optimizer.step(backward(sum(parameters[0].tensor))).lr == 0.1);
}

BOOST_AUTO_TEST_CASE(a_given_learning_rate_overrides_the_schedule) {
  const Parameters one = some_parameters(), other = some_parameters();
  OptimOptions o = options_of(OptimizerKind::adam);
  o.schedule = {.name = ScheduleKind::linear};  // the linear schedule requires a last step
  Optimizer a(o, one), b(o, other);
  const Array g = normal({7, 11}, 1);
  // The loss is independent of "b".
  const OptimizerStep used = a.step(backward(sum(one[0].tensor * g)), 0.3);
  BOOST_TEST(used.lr == 0.3);
  b.step({g, Array()}, 0.3, clip_factor(used.gradient_norm, o.clip_norm));
  for (std::size_t i = 0; i < 2; ++i)
    BOOST_TEST(same_bits(one[i].tensor.value(), other[i].tensor.value()));
}

BOOST_AUTO_TEST_CASE(refused_steps_change_neither_weights_nor_step_count) {
  const Parameters parameters = some_parameters();
  const Array before = parameters[0].tensor.value().clone();
  const Tensor &w = parameters[0].tensor, foreign = Tensor::variable(normal({2}, 1));
  OptimOptions o = options_of(OptimizerKind::adamw);
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear}) {
    o.schedule = {.name = kind, .warmup = 1};
    EXPECT_FAIL(Optimizer(o, parameters).step(backward(sum(w))),
                fmt::format("[optimizer] the schedule {} requires a last step: set schedule.steps",
                            name_of(kind)));
  }
  o.schedule = {};
  Optimizer optimizer(o, parameters);
  EXPECT_FAIL(optimizer.step(backward(sum(foreign))),
              "[optimizer] the loss depends on none of the parameters");
  EXPECT_FAIL(optimizer.step(backward(sum(w)), nan),
              "[optimizer] expected a learning rate of at least 0, got nan");
  EXPECT_FAIL(optimizer.step(backward(sum(w)), -1), "of at least 0, got -1");
  Gradients taken = backward(sum(w));
  taken.take(w);
  EXPECT_FAIL(optimizer.step(taken), "has already been taken");
  for (const double bad : {nan, infinity}) {
    try {
      optimizer.step(backward(sum(w) + scale(sum(parameters[1].tensor), static_cast<real>(bad))));
      BOOST_TEST(false, "nothing was thrown");
    } catch (const Error& error) {
      BOOST_TEST((error.code == Exit::non_finite));
      BOOST_TEST(std::string(error.what()) ==
                 "[optimizer] step 1: the gradient of b is not finite; the weights are as before "
                 "the step");
    }
  }
  BOOST_TEST(optimizer.steps() == 0);
  BOOST_TEST(same_bits(w.value(), before));
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
