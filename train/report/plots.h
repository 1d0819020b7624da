#pragma once
/// Pictures that need no run: what a config's positions, schedule, masks and activations look like.
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/draw/svg.h"

namespace heed {

/// One drawing or more for each of these names; throws Error(usage), listing them, for another.
///   positions    PE, its inner products and wavelengths; how scores of rotary positions decay; the
///                biases of ALiBi; the buckets of T5; the distances of Shaw et al.
///   schedule     the learning rate over the steps, and with the other schedules
///   softmax      weights and entropy over the temperature
///   masks        which keys each query reads, for each pattern
///   activations  values and derivatives
/// `length`: positions to draw.
std::vector<Drawing> plots_of(std::string_view name, const Config& config, std::int64_t length);

/// The names, in the order of the help.
const std::vector<std::string>& plot_names();

}  // namespace heed
