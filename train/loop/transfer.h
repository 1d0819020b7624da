#pragma once
/// A run that begins with the weights of another: model.init_from and model.freeze.
#include <span>
#include <string>
#include <vector>

#include "nn/models/model.h"

HEED_BEGIN

/// Names of tensors, in the order of the model (`unused`: of the other run's file).
struct TransferReport {
  std::vector<std::string> transferred;
  std::vector<std::string> initialised;  ///< only this model has them; not copied
  std::vector<std::string> unused;       ///< only the other model has them

  /// Three lines at most; tensors of a layer are named together.
  std::vector<std::string> text() const;
};

/// Copies those tensors of the run's weights (its average, else its best) whose names the model
/// has. The output projection of a model with other labels is not copied; other tensors of another shape
/// are refused. Throws Error(bad_input) if the run has no weights, is damaged, or does not fit.
TransferReport transfer_weights(const std::string& run, Model& model);

/// The parameters whose names match none of the patterns, in which * stands for any characters.
/// Throws Error(usage) if a pattern matches no parameter, or if none is left.
Parameters not_frozen(const Model& model, std::span<const std::string> patterns);

// ---- former names, for one release ---------------------------------------------------------

using TakenWeights [[deprecated("use TransferReport")]] = TransferReport;
[[deprecated("use transfer_weights")]] inline TransferReport take_weights(const std::string& run,
                                                                          Model& model) {
  return transfer_weights(run, model);
}

HEED_END
