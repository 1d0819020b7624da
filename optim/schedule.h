#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "optim/options.h"

namespace heed {

/// The least warmup: 1 for the schedules that divide by it.
inline std::int64_t min_warmup(ScheduleKind name) {
  return name == ScheduleKind::noam || name == ScheduleKind::inverse_sqrt ? 1 : 0;
}

/// The number of steps with a rising learning rate in a run of total_steps (0: unknown). automatic: a
/// tenth of the run or, if it ends first, of the schedule, from min_warmup to 1000; 1000 if both are
/// unknown.
inline std::int64_t warmup_steps(const ScheduleOptions& schedule, std::int64_t total_steps) {
  if (schedule.warmup != ScheduleOptions::automatic) return schedule.warmup;
  std::int64_t warmup = 1000;
  for (const std::int64_t end : {total_steps, schedule.steps})
    if (end > 0) warmup = std::min(warmup, end / 10);
  return std::max(warmup, min_warmup(schedule.name));
}

/// The learning rate of step t = 1, 2, …: options.lr is the peak, reached at the end of a linear
/// warmup. After the warmup:
/// - noam, inverse_sqrt: lr √(warmup / t), where a warmup of 0 counts as 1 (Vaswani et al. 2017,
///   section 5.3, scaled to peak lr)
/// - cosine: from lr along half a cosine to min_lr at the last step, then min_lr
/// - linear: from lr along a straight line to min_lr at the last step, then min_lr
/// - constant: lr
/// The last step is schedule.steps or, if that is 0, total_steps, the last step of the run. Unless
/// it is later than the warmup, cosine and linear remain at lr.
inline double learning_rate(const OptimOptions& options, std::int64_t step,
                            std::int64_t total_steps) {
  const ScheduleOptions& schedule = options.schedule;
  const auto t = static_cast<double>(step),
             warmup = static_cast<double>(warmup_steps(schedule, total_steps));
  if (t < warmup) return options.lr * t / warmup;
  const auto end = static_cast<double>(schedule.steps > 0 ? schedule.steps : total_steps);
  const double done = end > warmup ? std::clamp((t - warmup) / (end - warmup), 0.0, 1.0) : 0.0;
  switch (schedule.name) {
    case ScheduleKind::noam:
    case ScheduleKind::inverse_sqrt:
      return options.lr * std::sqrt(std::max(warmup, 1.0) / t);
    case ScheduleKind::cosine:
      return schedule.min_lr +
             (options.lr - schedule.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case ScheduleKind::linear:
      return options.lr + (schedule.min_lr - options.lr) * done;
    case ScheduleKind::constant:
      return options.lr;
  }
  return options.lr;
}

}  // namespace heed
