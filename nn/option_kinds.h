#pragma once
/// The choices of a model's options, apart from the options themselves: what includes only this is not compiled again
/// when an option is added.
#include "autograd/base/enum_names.h"

namespace heed {

struct AttentionChoice;  // nn/options.h
struct FrontEndOptions;  // nn/options.h
struct ModelOptions;     // nn/options.h

enum class Activation : int;    // nn/layers/activations.h
enum class MixerKind : int;     // nn/layers/mixer.h
enum class PositionKind : int;  // nn/layers/positions.h
enum class PatternKind : int;   // nn/layers/patterns.h

/// A stack of blocks that reads whole sequences, or pictures window by window (nn/models/swin.h).
enum class ModelKind { transformer, swin };
constexpr auto names_of(ModelKind) { return enum_names<ModelKind>("transformer", "swin"); }

/// Before a sublayer (inside the residual), after the sum, or nowhere.
enum class NormPlace { pre, post, none };
constexpr auto names_of(NormPlace) { return enum_names<NormPlace>("pre", "post", "none"); }

/// The sublayers of a block one after the other, or all from the same input, added up.
enum class BlockForm { serial, parallel };
constexpr auto names_of(BlockForm) { return enum_names<BlockForm>("serial", "parallel"); }

/// batch: over the rows of a batch, so in encoders only: a causal decoder would see the future.
enum class NormKind { layer, rms, batch };
constexpr auto names_of(NormKind) { return enum_names<NormKind>("layer", "rms", "batch"); }

/// none: uninitialised, for weights that will be read from a file (not available in configs).
enum class InitKind { xavier, normal, none };
constexpr auto names_of(InitKind) { return enum_names<InitKind, 1>("xavier", "normal"); }

/// The row that stands for a sequence: its first one, or the mean of all.
enum class Pool { first, mean };
constexpr auto names_of(Pool) { return enum_names<Pool>("first", "mean"); }

/// What turns rows of features into rows of the model (nn/models/front_end.h): a matrix, or
/// convolutions that also halve the number of rows along each side.
enum class FrontEndKind { linear, conv };
constexpr auto names_of(FrontEndKind) { return enum_names<FrontEndKind>("linear", "conv"); }

}  // namespace heed
