#pragma once
/// Plots that require only a config, and fixed drawings of the course.
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/views/draw/svg.h"

namespace heed {

/// The drawings for one of these names. Throws Error(usage), which lists the names, for any other.
///   positions    the sinusoidal encodings, their inner products and wavelengths; the decay of
///                scores with rotary positions; the biases of ALiBi; the buckets of T5
///   schedule     the learning rate over the steps, for the config's schedule and for all schedules
///   softmax      weights and entropy as functions of the temperature
///   masks        the keys that each query reads, with the patterns full, window and bigbird
///   activations  values and derivatives; gated activations f(a) · b with a = b = x
///   gradcheck    the error of the central difference and of five points over the step
///   scores       two keys and a query in the plane, and the weights as a vector changes
///   loss         targets with and without label smoothing, and p − q
///   tiles        maximum, sum and output of online softmax after each tile
///   beam         the tree of a beam search; the probability of its result over the width
/// `length`: number of positions in the plots `positions` and `masks`.
std::vector<Drawing> plots_of(std::string_view name, const Config& config, std::int64_t length);

/// The names of all plots, in the order above.
std::vector<std::string> plot_names();

}  // namespace heed
