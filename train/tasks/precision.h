#pragma once
/// Notes for the user about products in bf16 (autograd/kernels/fast/gemm/bf16.h) on this machine.
#include <string>
#include <string_view>

#include "train/config/config.h"

namespace heed {

/// The rate of a product of two 512 x 512 matrices on one thread, in GFLOP/s.
struct ProductRates {
  double float32 = 0, bf16 = 0;
};
/// Measures the rates, each as the best of three, in about 20 ms. Requires that bf16 is available.
ProductRates product_rates();

/// A note if the key requests bf16 and this machine does not support it; otherwise empty.
std::string bf16_note(bool requested, std::string_view key);
/// A note if products in bf16 are slower than in float32; otherwise empty.
std::string slow_bf16_note(const ProductRates& rates);
/// The note, if any, about train.precision. With bf16, measures the rates of products.
std::string training_precision_note(Precision precision);

}  // namespace heed
