#pragma once
/// Updates weights from their gradients: Adam, AdamW, and SGD with momentum (formulas in
/// autograd/kernels/fast/update.h).
///
///   Optimizer optimizer({.lr = 1e-3}, model.parameters());  // Adam with a constant rate
///   optimizer.step(backward(loss));
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/fast/update.h"
#include "autograd/tensor.h"
#include "optim/moments.h"
#include "optim/options.h"
#include "optim/pieces.h"

HEED_BEGIN

/// The values that a step used.
struct OptimizerStep {
  double lr = 0;
  double gradient_norm = 0;  ///< global norm of the gradients, before clipping
};

inline constexpr ValueRange all_values{0, std::numeric_limits<std::int64_t>::max()};

class Optimizer {
 public:
  /// Keeps handles to the parameters' values and allocates their moments, initially zero. Throws
  /// Error(failed) if a parameter is not a variable or is listed twice, or if an option is out of
  /// range. Only the values in `owned`, a range of indices over the values of all parameters, have
  /// moments and may be updated.
  Optimizer(const OptimOptions& options, std::vector<NamedTensor> parameters,
            ValueRange owned = all_values);

  /// A full step on this thread: the learning rate of options.schedule, clipping to
  /// options.clip_norm, and the update. A parameter that the loss does not depend on has a zero
  /// gradient. Throws before any value changes: Error(failed) if the loss depends on no parameter,
  /// if a parameter is owned only in part, or if a schedule with a last step (cosine, linear) has
  /// schedule.steps 0; Error(non_finite), naming the first such parameter, if a gradient is NaN or
  /// infinite.
  OptimizerStep step(Gradients gradients);
  /// A full step with this learning rate instead of the schedule's. Also throws Error(failed) if
  /// `lr` is negative or NaN.
  OptimizerStep step(Gradients gradients, double lr);

  /// Starts the next step, with its learning rate and the factor that is first applied to the
  /// gradients (clipping).
  void begin_step(double lr, double grad_scale);
  /// Updates values [begin, end) of a parameter, which must lie in owned(parameter); `gradient`
  /// points to the gradient of the parameter's first value. Disjoint ranges are independent:
  /// threads may share the work without changing the result. Unless the moments are float32, `begin`
  /// and `end` must be a multiple of kernels::block_values from the beginning of owned(parameter),
  /// or its end. Returns whether the values were finite before the update.
  bool update(std::size_t parameter, std::int64_t begin, std::int64_t end, const real* gradient);
  /// A full step on this thread. The gradients are in the order of the parameters; an undefined one
  /// counts as zero. Throws Error(failed) if their number or a shape differs from the parameters',
  /// or if a parameter is owned only in part.
  void step(const std::vector<Array>& gradients, double lr, double grad_scale = 1);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// Moments by name ("m.<parameter>" and "v.<parameter>"; for sgd, "momentum.<parameter>"), for
  /// checkpoints: the values in use or, unless they are float32, copies. The moments of a partly
  /// owned parameter are vectors that contain only the moments of the owned values.
  std::vector<NamedTensor> state() const;
  /// Sets the moments to these values, in the order of state(). Values that state() has returned are
  /// stored exactly.
  void set_state(const std::vector<NamedTensor>& state);
  /// The range of a parameter's values that have moments.
  ValueRange owned(std::size_t parameter) const { return owned_[parameter]; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  double decay_of(std::size_t parameter) const;
  /// The gradients in the order of the parameters; undefined where the loss does not depend on the
  /// parameter. Throws if it depends on no parameter.
  std::vector<Array> in_order(Gradients& gradients) const;
  /// The global norm of the gradients. Throws Error(non_finite) if a gradient is not finite or, in
  /// the double build, if its sum of squares overflows.
  double norm_of(const std::vector<Array>& gradients) const;

  OptimOptions options_;
  std::vector<NamedTensor> parameters_;
  std::vector<ValueRange> owned_;  ///< the owned range of each parameter
  /// m and v of the owned values; SGD stores its momentum in first_.
  std::vector<Moment> first_, second_;
  std::int64_t steps_ = 0;
  kernels::AdamStep adam_{};
};

HEED_END
