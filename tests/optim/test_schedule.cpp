// Learning rates: warmup, change per step, formulas, and values after the last step.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "optim/schedule.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(schedules)

namespace {

constexpr ScheduleKind kinds[] = {ScheduleKind::noam, ScheduleKind::inverse_sqrt,
                                  ScheduleKind::cosine, ScheduleKind::linear,
                                  ScheduleKind::constant};

OptimOptions options(ScheduleKind kind, std::int64_t warmup, double floor = 0) {
  OptimOptions o;
  o.lr = 3e-3;
  o.schedule = {kind, warmup, 0, floor};
  return o;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_learning_rate_peaks_at_the_end_of_warmup) {
  for (const ScheduleKind kind : kinds) {
    for (const std::int64_t warmup : {1, 2, 10, 999}) {
      const OptimOptions o = options(kind, warmup);
      BOOST_TEST(learning_rate(o, warmup, 5000) == o.lr);
      for (std::int64_t t = 1; t <= 5000; ++t) {
        const double lr = learning_rate(o, t, 5000);
        BOOST_TEST((lr >= 0 && lr <= o.lr));
        if (t < warmup) BOOST_TEST(lr < learning_rate(o, t + 1, 5000));
        if (t > warmup) BOOST_TEST(lr <= learning_rate(o, t - 1, 5000));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(
    automatic_warmup_is_a_tenth_of_the_run_or_its_schedule_and_at_most_1000_steps) {
  constexpr std::int64_t automatic = ScheduleOptions::automatic;
  const std::pair<std::int64_t, std::int64_t> expected[] = {
      {10, 1}, {100, 10}, {2005, 200}, {10'000, 1000}, {1'000'000, 1000}, {0, 1000}};
  for (const ScheduleKind kind : kinds) {
    for (const auto& [total, warmup] : expected) {
      BOOST_TEST(warmup_steps(options(kind, automatic).schedule, total) == warmup);
      BOOST_TEST(warmup_steps(options(kind, 7).schedule, total) == 7);
      for (const std::int64_t t : {1, 5, 50, 500, 1500})
        BOOST_TEST(learning_rate(options(kind, automatic), t, total) ==
                   learning_rate(options(kind, warmup), t, total));
    }
    OptimOptions ends = options(kind, automatic);
    ends.schedule.steps = 500;
    BOOST_TEST(warmup_steps(ends.schedule, 10'000) == 50);
    BOOST_TEST(warmup_steps(ends.schedule, 0) == 50);
    BOOST_TEST(warmup_steps(ends.schedule, 200) == 20);  // the run ends before its schedule
    const bool root = kind == ScheduleKind::noam || kind == ScheduleKind::inverse_sqrt;
    BOOST_TEST(warmup_steps(options(kind, automatic).schedule, 9) == (root ? 1 : 0));
  }
}

BOOST_AUTO_TEST_CASE(learning_rates_change_no_faster_than_during_warmup) {
  constexpr std::int64_t warmup = 1000, steps = 5000;
  for (const ScheduleKind kind : kinds) {
    for (const double floor : {0.0, 1e-4}) {
      const OptimOptions o = options(kind, warmup, floor);
      // In the warmup, the steepest part, the rate changes by lr / warmup per step.
      for (std::int64_t t = 1; t <= steps + 100; ++t) {
        BOOST_TEST(std::abs(learning_rate(o, t + 1, steps) - learning_rate(o, t, steps)) <
                   1.001 * o.lr / warmup);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(warmup_is_linear_from_the_first_step) {
  for (const ScheduleKind kind : kinds) {
    const OptimOptions o = options(kind, 8);
    for (std::int64_t t = 1; t <= 8; ++t) {
      BOOST_TEST(std::abs(learning_rate(o, t, 100) - 3e-3 * static_cast<double>(t) / 8) < 1e-18);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_noam_schedule_is_proportional_to_the_formula_of_the_paper) {
  // lrate = d^-0.5 min(t^-0.5, t warmup^-1.5) (Vaswani et al. 2017, section 5.3), scaled so that
  // its peak is lr.
  const OptimOptions o = options(ScheduleKind::noam, 400);
  const double peak = std::pow(400.0, -0.5);
  for (const double t : {1.0, 7.0, 399.0, 400.0, 401.0, 5000.0, 1e6}) {
    const double paper = std::min(std::pow(t, -0.5), t * std::pow(400.0, -1.5));
    BOOST_TEST(std::abs(learning_rate(o, static_cast<std::int64_t>(t), 0) / (o.lr * paper / peak) -
                        1) < 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(noam_and_inverse_sqrt_have_the_same_learning_rates) {
  for (const std::int64_t warmup : {0, 1, 7, 400}) {
    const OptimOptions noam = options(ScheduleKind::noam, warmup);
    const OptimOptions inverse_sqrt = options(ScheduleKind::inverse_sqrt, warmup);
    for (std::int64_t t = 1; t <= 1000; ++t)
      BOOST_TEST(learning_rate(noam, t, 500) == learning_rate(inverse_sqrt, t, 500));
  }
}

BOOST_AUTO_TEST_CASE(cosine_and_linear_schedules_have_min_lr_from_the_last_step_on) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear}) {
    const OptimOptions o = options(kind, 10, 1e-4);
    // Step 110 is the middle of the decay.
    BOOST_TEST(std::abs(learning_rate(o, 110, 210) - (o.lr + 1e-4) / 2) < 1e-17);
    BOOST_TEST(std::abs(learning_rate(o, 210, 210) - 1e-4) < 1e-17);
    BOOST_TEST(std::abs(learning_rate(o, 100000, 210) - 1e-4) < 1e-17);
    OptimOptions shorter = o;  // schedule.steps overrides the run's last step
    shorter.schedule.steps = 210;
    for (const std::int64_t t : {11, 50, 209, 211})
      BOOST_TEST(learning_rate(shorter, t, 999) == learning_rate(o, t, 210));
  }
}

BOOST_AUTO_TEST_CASE(learning_rates_without_warmup_or_last_step_are_finite) {
  for (const ScheduleKind kind : kinds) {
    const OptimOptions o = options(kind, 0);
    BOOST_TEST(learning_rate(o, 1, 0) > 0);
    for (const std::int64_t t : {1, 2, 1000}) BOOST_TEST(std::isfinite(learning_rate(o, t, 0)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
