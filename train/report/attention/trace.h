#pragma once
/// One attention head worked through with its numbers, step by step, forward and backward. With X the
/// rows that enter the layer, M the encoder's rows of cross-attention (else X) and c the scale,
///
///   Q = X W_Q + b_Q,  K = M W_K + b_K,  V = M W_V + b_V,  A = Q Kᵀ,  S = c A,  P = softmax(S),
///   O = P V,  Y = O W_O                                     (Vaswani et al. 2017, eq. 1)
///   dV = Pᵀ dO,  dP = dO Vᵀ,  D_i = Σ_j P_ij dP_ij,  dS = P ⊙ (dP − D),
///   dQ = c dS K,  dK = c dSᵀ Q,  dX = dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ
///
/// and steps of their own for rotated queries and keys, for what positions add to the scores, and for
/// keys that a query does not read. What the model computed in float32 is taken from its log (X, M, the
/// weights, P, dO); everything else is computed here, in float64, by plain loops.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/report/attention/maps.h"

HEED_BEGIN

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};  ///< [rows, columns]

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(r * c) {}
  double& operator()(std::int64_t r, std::int64_t c) { return values[r * columns + c]; }
  double operator()(std::int64_t r, std::int64_t c) const { return values[r * columns + c]; }
};

/// A matrix and how it follows from those before it. The score of a key that the query does not read
/// is −∞.
struct TraceStep {
  std::string symbol, formula, about;      ///< "Q", "X W_Q + b_Q", "a query for each row"
  std::vector<std::string> rows, columns;  ///< names; empty: the numbers from 0
  Matrix matrix;
};

struct AttentionTrace {
  std::string layer;
  std::int64_t head = 0, heads = 1;
  double scale = 1;                ///< c
  std::vector<std::string> notes;  ///< sentences about what is special in this layer
  std::vector<TraceStep> forward, backward;
  double loss = 0;  ///< with backward: the mean over `labels`
  std::int64_t labels = 0;
  double label_smoothing = 0;
  /// The largest difference between P and O as computed here and by the model.
  double difference = 0;
};

struct TraceRequest {
  std::string layer;  ///< its whole name
  std::int64_t head = 0;
  bool backward = false;  ///< of the model's loss, without dropout; needs labels in the batch
};

/// Throws Error(usage) as attention_layers does, if model.attention.map is not softmax, and if backward is
/// requested for a batch without labels.
AttentionTrace trace_attention(const LoadedModel& trained, const Config& config, const Batch& batch,
                               const TraceRequest& request);

/// Every number at full precision; null in place of −∞.
nlohmann::json json_of(const AttentionTrace& trace);

HEED_END
