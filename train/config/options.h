#pragma once
/// The options of training, decoding, distributed runs and benchmarks, as plain values. They are
/// read from the YAML sections `train`, `decode`, `distributed` and `bench`.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config/tasks.h"

namespace heed {

/// The type of the operands of matrix products. Weights, moments and sums are always float32.
enum class Precision { float32, bf16 };
constexpr auto names_of(Precision) { return enum_names<Precision>("float32", "bf16"); }
/// The type of the operands of matrix products in decoding (int8: autograd/kernels/fast/gemm/int8.h).
enum class DecodePrecision { float32, bf16, int8 };
constexpr auto names_of(DecodePrecision) {
  return enum_names<DecodePrecision>("float32", "bf16", "int8");
}

/// What a run does when the loss or the gradients of a step are not finite.
enum class OnNonFinite { stop, skip };
constexpr auto names_of(OnNonFinite) { return enum_names<OnNonFinite>("stop", "skip"); }

struct EarlyStoppingOptions {
  std::optional<Metric> metric;  ///< unset: no early stopping
  std::int64_t patience = 10;    ///< number of validations without an improvement that ends the run
};

/// Knowledge distillation (train/loop/teacher.h).
struct DistillOptions {
  std::string teacher = {};  ///< run folder; empty: none
  double weight = 0.5;       ///< weight λ of the divergence from the teacher
  double temperature = 2.0;  ///< divisor of the logits of both models
};

struct TrainOptions {
  std::string init_from = {};  ///< model.init_from: run folder with the initial weights
  std::vector<std::string> freeze =
      {};  ///< model.freeze: name patterns of the parameters that keep their values
  std::int64_t steps = 10000;  ///< maximum number of steps, including skipped steps; 0: no limit
  double epochs = 0.0;         ///< maximum number of passes over the data; 0: no limit
  double minutes = 0.0;        ///< maximum training time in minutes; 0: no limit
  std::int64_t batch_tokens = 4096;  ///< maximum number of tokens on the larger side of a batch
  std::int64_t batch_sequences = 0;  ///< number of sequences per batch; 0: batch_tokens applies
  std::int64_t shards = 4;  ///< maximum number of parts of a batch; the result's bits depend on it
  Precision precision = Precision::float32;
  bool recompute = false;  ///< keep only the input of each block; backward runs the block again
  OnNonFinite on_nonfinite = OnNonFinite::stop;
  double label_smoothing = 0.1;
  double rdrop = 0.0;  ///< weight of R-Drop's divergence; 0: off
  DistillOptions distill = {};
  double ema = 0.0;                   ///< decay of the weights' moving average; 0: none
  std::int64_t log_every = 50;        ///< in steps
  bool tensorboard = false;           ///< write event files as well (train/run/run_metrics.h)
  std::int64_t validate_every = 500;  ///< in steps
  std::int64_t save_every = 500;      ///< in steps
  /// Number of newest checkpoints kept besides the best: at least 2 and at least `average`.
  std::int64_t keep = 3;
  EarlyStoppingOptions early_stopping;
  Metric best = Metric::loss;  ///< selects the best checkpoint (early_stopping.metric overrides it)
  std::int64_t average = 1;    ///< number of checkpoints to average (train/run/average.h)
};

struct DecodeOptions {
  std::int64_t beam = 5;            ///< 1: greedy
  double length_penalty = 0.6;      ///< alpha in ((5 + n) / 6)^alpha
  std::int64_t max_length = 128;    ///< maximum number of tokens in an output
  std::int64_t min_length = 0;      ///< minimum number of tokens in an output
  double repetition_penalty = 1.0;  ///< penalty for tokens that the output contains; 1: none
  std::int64_t batch_sequences =
      256;  ///< maximum number of hypotheses decoded together: lines times beam
  DecodePrecision precision = DecodePrecision::float32;
  bool cached = true;        ///< false: each step runs the decoder on all tokens so far
  bool sample = false;       ///< sample tokens instead of searching
  double temperature = 1.0;  ///< divisor of the logits
  std::int64_t top_k = 0;    ///< number of most likely tokens to draw from; 0: all
  double top_p = 1.0;        ///< minimum total probability of the tokens to draw from
  BleuTokenizer bleu = BleuTokenizer::v13a;  ///< how outputs and references are split into words
};

/// A run of several processes (train/distributed).
struct DistributedOptions {
  double timeout = 300;  ///< seconds that a rank waits for another rank
};

/// The batch that `heed bench` generates if sequences > 0: random tokens, in sequences of the
/// lengths below.
struct BenchOptions {
  std::int64_t sequences = 0;  ///< 0: benchmark on batches of the config's data
  /// Number of tokens; not used for images and videos or by models without an encoder.
  std::int64_t source_length = 32;
  std::int64_t target_length = 32;  ///< number of tokens
  std::int64_t vocabulary = 8000;
};

}  // namespace heed
