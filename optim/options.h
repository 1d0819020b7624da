#pragma once
/// The settings of the optimizer, as plain values. They are read from the YAML section `optim` and
/// used by both builds.
#include <array>
#include <cstdint>

#include "autograd/base/enum_names.h"

namespace heed {

enum class OptimizerKind { adam, adamw, sgd };
constexpr auto names_of(OptimizerKind) { return enum_names<OptimizerKind>("adam", "adamw", "sgd"); }

/// The parameters that weight decay shrinks. matrices: those with two or more axes (weights of
/// layers, embeddings), as in GPT-2, nanoGPT and BERT. all: also biases and the gains of norms, as
/// in PyTorch's optimizers by default.
enum class DecayedParameters { matrices, all };
constexpr auto names_of(DecayedParameters) {
  return enum_names<DecayedParameters>("matrices", "all");
}

/// The numbers that an optimizer keeps its moments in: 4, 2 or 1 bytes per value. The smaller ones
/// are rounded stochastically (autograd/kernels/fast/compact.h).
enum class MomentKind { float32, bf16, float8 };
constexpr auto names_of(MomentKind) { return enum_names<MomentKind>("float32", "bf16", "float8"); }

enum class ScheduleKind { noam, inverse_sqrt, cosine, linear, constant };
constexpr auto names_of(ScheduleKind) {
  return enum_names<ScheduleKind>("noam", "inverse_sqrt", "cosine", "linear", "constant");
}

/// An optimizer without further settings has a constant rate; the config of an experiment begins
/// with the schedule of the Transformer (train/config/config.h).
struct ScheduleOptions {
  /// The value of `warmup` for a tenth of the run's steps (warmup_steps in schedule.h).
  static constexpr std::int64_t automatic = -1;
  ScheduleKind name = ScheduleKind::constant;
  std::int64_t warmup = 0;  ///< number of steps with a rising learning rate, or `automatic`
  std::int64_t steps = 0;   ///< cosine, linear: the last step of the decay; 0: train.steps
  double min_lr = 0.0;      ///< cosine, linear: the final learning rate
};

struct OptimOptions {
  OptimizerKind name = OptimizerKind::adam;
  double lr = 1.0e-3;  ///< the peak learning rate of every schedule, at the end of the warmup
  std::array<double, 2> betas{0.9, 0.98};
  double eps = 1.0e-9;
  double weight_decay = 0.0;  ///< adamw: decoupled; sgd: L2; adam: none
  DecayedParameters decay = DecayedParameters::matrices;
  double momentum = 0.9;  ///< sgd only
  MomentKind moments = MomentKind::float32;
  double clip_norm = 1.0;  ///< maximum global norm of the gradients; 0: no clipping
  ScheduleOptions schedule = {};
};

}  // namespace heed
