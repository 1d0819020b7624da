#pragma once
#include "nn/layers/mixer.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// Checks the mixer of these options on a few random sequences, with random weights:
/// - no two of its parameters have the same name;
/// - the output has the shape of the input and is finite;
/// - a sequence does not depend on other sequences of the batch;
/// - with AttentionScope::past, a row does not depend on later rows, so that a decoder never reads
///   the tokens that it predicts;
/// - with AttentionScope::past, decoding step by step returns the same rows as a pass over whole
///   sequences.
/// Throws Error(failed), naming the mixer, if a check fails.
void check_mixer(const ModelOptions& options, AttentionScope scope);
/// Calls check_mixer, unless the mixer is built in.
void check_registered_mixer(const ModelOptions& options, AttentionScope scope);

HEED_END
