#pragma once
/// Initialises a run with the weights of another run (model.init_from) and freezes parameters
/// (model.freeze).
#include <span>
#include <string>
#include <vector>

#include "nn/models/model.h"
#include "train/run/checkpoint_folder.h"

HEED_BEGIN

/// Names of tensors, in the order of the model (`unused`: of the file).
struct TransferReport {
  std::vector<std::string> transferred;
  std::vector<std::string> initialised;  ///< tensors of the model that keep their initial values
  std::vector<std::string> unused;       ///< tensors of the file that were not copied
  Checkpoint weights = {};               ///< the origin of the tensors

  /// Up to three lines for the user, which list the tensors of a layer as one name.
  std::vector<std::string> text() const;
};

/// Copies from the run's weights (find_weights without a name) the tensors whose names exist in the
/// model. The output projection is not copied if the number of labels differs. Throws
/// Error(bad_input) if the run has no weights or is damaged or its tokenizer has changed, if the
/// shape of any other tensor differs, or if no tensor can be copied.
TransferReport transfer_weights(const std::string& run, Model& model);

/// The parameters whose names match none of the patterns; * matches any characters. Throws
/// Error(usage) if a pattern matches no parameter or if no parameter remains.
Parameters not_frozen(const Model& model, std::span<const std::string> patterns);

// ---- former names, for one release ---------------------------------------------------------

using TakenWeights [[deprecated("use TransferReport")]] = TransferReport;
[[deprecated("use transfer_weights")]] inline TransferReport take_weights(const std::string& run,
                                                                          Model& model) {
  return transfer_weights(run, model);
}

HEED_END
