#pragma once
/// The shape of a model, as plain values. Read from the YAML section `model`; used by both builds.
#include <cstdint>

#include "autograd/kernels/maps.h"

namespace heed {

using Activation = Map;  ///< one of the first activation_count

enum class PositionKind : int;  // nn/layers/positions.h
enum class PatternKind : int;   // nn/layers/patterns.h

enum class NormPlace { pre, post };  ///< before a sublayer (inside the residual) or after the sum
constexpr auto names_of(NormPlace) { return enum_names<NormPlace>("pre", "post"); }

enum class NormKind { layer, rms };
constexpr auto names_of(NormKind) { return enum_names<NormKind>("layer", "rms"); }

/// none: uninitialised, for weights that will be read from a file (not available in configs).
enum class InitKind { xavier, normal, none };
constexpr auto names_of(InitKind) { return enum_names<InitKind, 1>("xavier", "normal"); }

/// Probability that a value is dropped while training (Srivastava et al. 2014), by place. One
/// number sets all.
struct DropoutRates {
  double residual = 0.1;    ///< embeddings, and a sublayer's output before the sum
  double attention = 0.1;   ///< attention weights
  double activation = 0.1;  ///< values between the two feed-forward layers

  DropoutRates() = default;
  DropoutRates(double all) : residual(all), attention(all), activation(all) {}
};

/// Which keys self-attention reads.
struct AttentionReach {
  PatternKind pattern{};  ///< the first: full
  /// Pattern window: the number of keys that a token reads: its own and those before it; in an
  /// encoder, also as many after it as before.
  std::int64_t window = 128;
};

struct ModelOptions {
  std::int64_t d_model = 256;
  std::int64_t heads = 4;  ///< must divide d_model
  std::int64_t d_ff = 1024;
  std::int64_t encoder_layers = 3;  ///< a language model has none
  std::int64_t decoder_layers = 3;
  DropoutRates dropout;
  Activation activation = Activation::relu;
  PositionKind positions{};  ///< the first: sinusoidal
  AttentionReach attention;
  NormPlace norm = NormPlace::pre;
  bool final_norm = true;  ///< a norm after the last layer of a stack
  NormKind norm_kind = NormKind::layer;
  double norm_eps = 1e-5;
  bool tie_embeddings = true;    ///< source, target and output share one matrix if possible
  bool scale_embeddings = true;  ///< multiply embeddings by sqrt(d_model)
  InitKind init = InitKind::xavier;
  double init_std = 0.02;             ///< only for InitKind::normal
  std::int64_t context = 256;         ///< language model: window length, in tokens
  std::int64_t max_positions = 1024;  ///< rows of a learned position table
};

}  // namespace heed
