#pragma once
/// What a request for products in bf16 (autograd/kernels/fast/gemm/bf16.h) gives on this machine.
#include <string>
#include <string_view>

namespace heed {

/// The speed of a product [512, 512] x [512, 512] on one thread, in GFLOP/s.
struct ProductRates {
  double float32 = 0, bf16 = 0;
};
/// Measures the rates, the best of three each, in about 20 ms. Requires that bf16 is available.
ProductRates product_rates();

/// A note for the user if the key requests bf16 and this machine does not support it, or multiplies
/// more slowly in it than in float32; otherwise empty.
std::string bf16_note(bool requested, std::string_view key);
/// The note about rates; empty if bf16 is as fast as float32 or faster.
std::string slow_bf16_note(const ProductRates& rates, std::string_view key);

}  // namespace heed
