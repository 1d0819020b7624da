#pragma once
/// The enumerations of model options, separate from options.h so that code that includes only this
/// header need not be recompiled for a new option.
#include "autograd/base/enum_names.h"

namespace heed {

struct AttentionChoice;  // nn/options.h
struct FrontEndOptions;  // nn/options.h
struct ModelOptions;     // nn/options.h

enum class Activation : int;    // nn/layers/activations.h
enum class MixerKind : int;     // nn/layers/mixer.h
enum class PositionKind : int;  // nn/layers/positions.h
enum class PatternKind : int;   // nn/layers/patterns.h

/// transformer: a stack of blocks that reads whole sequences. swin: an encoder that reads images
/// window by window (nn/models/swin.h).
enum class ModelKind { transformer, swin };
constexpr auto names_of(ModelKind) { return enum_names<ModelKind>("transformer", "swin"); }

/// The place of the norm: before a sublayer (inside the residual branch), after the residual sum,
/// or no norm.
enum class NormPlace { pre, post, none };
constexpr auto names_of(NormPlace) { return enum_names<NormPlace>("pre", "post", "none"); }

/// How the sublayers of a block are connected: in sequence, or in parallel, where all read the same
/// input and their outputs are summed.
enum class BlockForm { serial, parallel };
constexpr auto names_of(BlockForm) { return enum_names<BlockForm>("serial", "parallel"); }

/// batch: statistics over all rows of a batch; encoders only, because in a causal model a row would
/// depend on later rows.
enum class NormKind { layer, rms, batch };
constexpr auto names_of(NormKind) { return enum_names<NormKind>("layer", "rms", "batch"); }

/// none: uninitialised, for weights that are then loaded from a file (not available in configs).
enum class InitKind { xavier, normal, none };
constexpr auto names_of(InitKind) { return enum_names<InitKind, 1>("xavier", "normal"); }

/// Whether the projection to the vocabulary has a bias. auto: if it has a matrix of its own and the
/// linear layers have biases.
enum class OutputBias { automatic, no, yes };
constexpr auto names_of(OutputBias) { return enum_names<OutputBias>("auto", "false", "true"); }

/// The row that represents a sequence: the first row, or the mean of all rows.
enum class Pool { first, mean };
constexpr auto names_of(Pool) { return enum_names<Pool>("first", "mean"); }

/// The layer from feature rows to rows of the model (nn/models/front_end.h): a linear projection,
/// or convolutions, each of which also halves the number of rows (for images, along each side).
enum class FrontEndKind { linear, conv };
constexpr auto names_of(FrontEndKind) { return enum_names<FrontEndKind>("linear", "conv"); }

}  // namespace heed
