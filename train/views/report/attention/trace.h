#pragma once
/// One attention head with all its numbers, step by step, forward and backward. X is the input of
/// the layer, M the encoder output for cross-attention (otherwise X), and c the scale:
///
///   Q = X W_Q + b_Q,  K = M W_K + b_K,  V = M W_V + b_V,  A = Q Kᵀ,  S = c A,  P = softmax(S),
///   O = P V,  Y = O W_O                                     (Vaswani et al. 2017, eq. 1)
///   dV = Pᵀ dO,  dP = dO Vᵀ,  D_i = Σ_j P_ij dP_ij,  dS = P ⊙ (dP − D),
///   dQ = c dS K,  dK = c dSᵀ Q,  dX = dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ
///   (for cross-attention, dX = dQ W_Qᵀ and dM = dK W_Kᵀ + dV W_Vᵀ)
///
/// with further steps for rotated queries and keys, for score terms of positions, and for masked
/// keys. X, M, the parameters, the position terms (the biases of ALiBi and T5, the keys R for
/// distances) and dO come from the model's float32 computation; all other matrices are computed in
/// float64 by plain loops.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/views/report/attention/maps.h"

HEED_BEGIN

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};  ///< [rows, columns]

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(r * c) {}
  double& operator()(std::int64_t r, std::int64_t c) { return values[r * columns + c]; }
  double operator()(std::int64_t r, std::int64_t c) const { return values[r * columns + c]; }
};

/// A matrix and its formula. The scores of masked keys are −∞.
struct TraceStep {
  std::string symbol, formula, about;      ///< "Q", "X W_Q + b_Q", "a query for each row"
  std::vector<std::string> rows, columns;  ///< names; empty: numbers from 0
  Matrix matrix;
};

struct AttentionTrace {
  std::string layer;
  std::int64_t head = 0, heads = 1;
  double scale = 1;                ///< the factor c
  std::vector<std::string> notes;  ///< sentences about special features of the layer
  std::vector<TraceStep> forward, backward;
  double loss = 0;  ///< mean over `labels` labels, if backward is requested
  std::int64_t labels = 0;
  double label_smoothing = 0;
  /// The maximum absolute difference of P and O from the model's values.
  double difference = 0;
};

struct TraceRequest {
  std::string layer;  ///< full name of the layer
  std::int64_t head = 0;
  bool backward = false;  ///< whether to trace the gradients of the loss, without dropout
};

/// Traces one head. Throws the errors of attention_layers, and Error(usage) if model.attention.map
/// is not softmax, if the batch has no queries, or if backward is requested for a batch without
/// labels.
AttentionTrace trace_attention(const LoadedModel& trained, const Config& config, const Batch& batch,
                               const TraceRequest& request);

/// The trace with all numbers at full precision, and null for −∞.
nlohmann::json json_of(const AttentionTrace& trace);

HEED_END
