#pragma once
#include "nn/layers/mixer.h"

HEED_BEGIN

/// Checks the mixer of these options on a few random sequences, with random weights:
/// - rows keep their shape and are finite;
/// - a sequence does not depend on other sequences of the batch;
/// - with AttentionScope::past, a row does not depend on later rows, so that a decoder never reads
///   the tokens it predicts;
/// - with AttentionScope::past, decoding step by step returns the same rows as whole sequences.
/// Throws Error(failed), naming the mixer.
void check_mixer(const ModelOptions& options, AttentionScope scope);
/// The same, unless the mixer is built in.
void check_registered_mixer(const ModelOptions& options, AttentionScope scope);

HEED_END
