#pragma once
#include "nn/layers/mixer.h"

HEED_BEGIN

/// Checks the mixer of these options on a few random sequences, with random weights:
/// - rows keep their shape and are finite;
/// - a sequence does not depend on the other sequences of a batch;
/// - with AttentionScope::past, a row does not depend on later ones, so that a decoder never reads the tokens it
///   predicts;
/// - with AttentionScope::past, decoding step by step gives the same rows as whole sequences.
/// Throws Error(failed), naming the mixer.
void check_mixer(const ModelOptions& options, AttentionScope scope);
/// The same, unless the mixer is built in.
void check_registered_mixer(const ModelOptions& options, AttentionScope scope);

HEED_END
