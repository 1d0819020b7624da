#pragma once
/// The results of `heed gradcheck` for a model's parameters, as a table.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/gradcheck.h"

HEED_BEGIN

/// The result for a parameter, from single entries and, if some entries were not checked, from
/// random directions.
struct GradcheckRow {
  std::string name, shape;
  std::int64_t entries = 0;     ///< number of values of the parameter
  std::int64_t checked = 0;     ///< number of entries checked individually
  std::int64_t directions = 0;  ///< number of random directions checked
  std::int64_t kinks = 0;       ///< number of entries and directions at kinks
  double largest = 0;           ///< maximum magnitude of a derivative
  double worst_error = 0;       ///< maximum GradcheckEntry::error outside kinks; infinite for NaN
  GradcheckStatus status = GradcheckStatus::ok;
  std::string cause;  ///< probable cause of a failure
};

struct GradcheckTable {
  std::vector<GradcheckRow> rows;  ///< rows in the order of the parameters
  std::string problem;             ///< error of the loss function as a whole, or ""
  std::string wrong_op;            ///< the op that makes gradients wrong and the cause, or ""

  /// Adds a result. A further result for a parameter is merged into its row.
  void add(const GradcheckResult& result);
  /// Whether at least one parameter was checked, all checks passed and `problem` is empty.
  bool passed() const;
  std::string text() const;
  nlohmann::json json() const;
};

HEED_END
