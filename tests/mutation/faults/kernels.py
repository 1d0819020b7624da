"""Faults in autograd/kernels."""
from . import fault

fault("attention: the smaller of the sums of two tiles is omitted", "autograd/kernels/fast/attention.cpp",
      "sum += std::log1p(std::exp(low - high));",
      "sum += 0;",
      "kernels_f64:kernels_attention", "autograd_f64:long_attention")

fault("softmax: the gradient uses the sum of dy instead of ⟨dy, y⟩", "autograd/kernels/fast/softmax.cpp",
      "return hn::Mul(io.load(y + i), io.load(dy + i));",
      "return io.load(dy + i);",
      "kernels_f64:kernels_rows")

fault("cross-entropy: smoothing divides its mass among n - 1 classes", "autograd/kernels/fast/cross_entropy.cpp",
      "share = eps / static_cast<double>(n);",
      "share = eps / static_cast<double>(n - 1);",
      "kernels_f64:kernels_rows,kernels_accuracy")

fault("layer norm: dx lacks the mean of dy ⊙ gain", "autograd/kernels/fast/norm.cpp",
      "hn::Sub(gained(dy, gain, c, io), set_wide(mean.g));",
      "gained(dy, gain, c, io);",
      "kernels_f64:kernels_rows")

fault("relu: slope 1 at zero", "autograd/kernels/fast/simd/unary_functions-inl.h",
      "hn::IfThenZeroElse(hn::Le(y, zero()), dy)",
      "hn::IfThenZeroElse(hn::Lt(y, zero()), dy)",
      "autograd_f64:ops", "kernels_f64:kernels_elementwise")

fault("gemm: k = 0 leaves C unscaled", "autograd/kernels/fast/gemm/gemm.cpp",
      "if (k == 0) return scale(m, n, beta, c, ldc);",
      "if (k == 0) return;",
      "autograd_f64:op_table_suite,ops")

fault("packed weights: all numbers of rows share one layout", "autograd/kernels/fast/gemm/packed.cpp",
      "packed = &packed_[{rows, n}];",
      "packed = &packed_[{rows, 0}];",
      "kernels_f64:kernels_packed")

fault("adam: no bias correction of the first moment", "autograd/kernels/fast/update.cpp",
      "rate = constant(step.lr / step.c1);",
      "rate = constant(step.lr);",
      "kernels_f64:kernels_update")

fault("adamw: decay is added to the gradient", "autograd/kernels/fast/update.cpp",
      "const Vector gi = hn::Mul(io.load(g + i), clip);",
      "const Vector gi = hn::MulAdd(constant(step.decay), io.load(w + i), hn::Mul(io.load(g + i), clip));",
      "kernels_f64:kernels_update")

fault("adam: eps is added inside the square root", "autograd/kernels/fast/update.cpp",
      "const Vector size = hn::MulAdd(hn::Sqrt(vi), root2, eps);",
      "const Vector size = hn::Mul(hn::Sqrt(hn::Add(vi, eps)), root2);",
      "kernels_f64:kernels_update")

fault("products: a narrow last panel loses earlier sums", "autograd/kernels/fast/gemm/tiles-inl.h",
      "if (!whole) std::copy_n(c, it.width, padded);",
      "",
      "kernels_f64:kernels_packed")

fault("products: each chain of a value replaces the one before", "autograd/kernels/fast/gemm/product.cpp",
      "add || at.from > 0",
      "add",
      "kernels_f64:kernels_product")

fault("products: alpha does not scale what is added to C", "autograd/kernels/fast/gemm/tiles-inl.h",
      "left[r] = hn::MulAdd(alpha, left[r], hn::LoadU(Tag(), before));",
      "left[r] = hn::Add(left[r], hn::LoadU(Tag(), before));",
      "kernels_f32:kernels_product")

fault("products: blocks of rows after the first read the first", "autograd/kernels/fast/gemm/product.cpp",
      "a + (at.top + row) * lda + at.from",
      "a + row * lda + at.from",
      "kernels_f32:kernels_product")

fault("products: rows of A are packed for the first chain only", "autograd/kernels/fast/gemm/blocks.h",
      "if (left == 0 && row",
      "if (left == 0 && from == 0 && row",
      "kernels_f32:kernels_product")

fault("int8: scales are rounded down", "autograd/kernels/fast/gemm/packed.cpp",
      "(std::bit_cast<std::uint32_t>(scale) + dropped) & ~dropped",
      "std::bit_cast<std::uint32_t>(scale) & ~dropped",
      "kernels_f32:kernels_int8")

fault("int8: sums are not corrected for the offset of 128", "autograd/kernels/fast/gemm/packed.cpp",
      "= -raised * std::accumulate(q, q + k, 0);",
      "= 0;",
      "kernels_f32:kernels_int8")

fault("int8: a row whose maximum is 2^127 is accepted", "autograd/kernels/fast/gemm/packed.cpp",
      "if (magnitude_bits >= beyond)",
      "if (magnitude_bits > beyond)",
      "kernels_f32:kernels_int8")

fault("int8: all rows have the scale of the first row", "autograd/kernels/fast/gemm/packed.cpp",
      "real(scales[r] * static_cast<float>(*q++))",
      "real(scales[0] * static_cast<float>(*q++))",
      "kernels_f32:kernels_int8", "nn_f64:weights_in_files")

fault("bf16: a product in chains keeps only the last chain", "autograd/kernels/fast/gemm/product_bf16.cpp",
      "add || at.from > 0, stream});",
      "add, stream});",
      "kernels_f32:kernels_bf16")

fault("bf16: an odd number of rows of B has no last row", "autograd/kernels/fast/gemm/product_bf16.cpp",
      "2 * i < depth ? mask",
      "2 * i + 1 < depth ? mask",
      "kernels_f32:kernels_bf16")

fault("bf16: the second block of columns reads the packed rows of the first rows", "autograd/kernels/fast/gemm/product_bf16.cpp",
      "Unit::multiply(rows_of_a.data() + row * pairs(at),",
      "Unit::multiply(rows_of_a.data() + row % 1008 * pairs(at),",
      "kernels_f32:kernels_bf16")

fault("bf16: a streamed row of C has the left half twice", "autograd/kernels/fast/gemm/product_bf16.cpp",
      "if (stream && first + lanes <= columns) return _mm512_stream_ps(at, values);",
      "if (stream && first + lanes <= columns) return _mm512_stream_ps(at - first % 32, values);",
      "kernels_f32:kernels_bf16")

fault("bf16: B is not rounded where products are fused multiply-adds", "autograd/kernels/fast/gemm/product.cpp",
      "if (round) round_values(panel, at.depth * panel_width);",
      "",
      "kernels_f32:kernels_bf16")

fault("blas kernel: a slow kernel chosen by OpenBLAS is accepted", "autograd/kernels/fast/gemm/blas_kernel.cpp",
      "if (*vectors == processor) return {};",
      "if (*vectors <= processor) return {};",
      "kernels_f32:blas_kernel_suite")

fault("blas kernel: a kernel chosen by the user is replaced", "autograd/kernels/fast/gemm/blas_kernel.cpp",
      "if (kernel.is_requested()) {",
      "if (false) {",
      "kernels_f32:blas_kernel_suite")

fault("blocks of float8 moments share the random bits of their rounding", "autograd/kernels/fast/compact.cpp",
      "    Rounding at = rounding;\n"
      "    at.first += static_cast<std::uint32_t>(b);\n",
      "    const Rounding& at = rounding;\n",
      "optim_f64:moments")

fault("SGD applies the factor of gradient clipping to the weight decay too", "autograd/kernels/fast/update.cpp",
      """    const Vector step = hn::MulAdd(io.load(g + i), set(grad_scale), hn::Mul(set(decay), wi));
""",
      """    const Vector step = hn::Mul(set(grad_scale), hn::MulAdd(set(decay), wi, io.load(g + i)));
""",
      "optim_f64:optimizers")

fault("the score map hard gives weight 1 to every key with the largest score instead of to the first of them", "autograd/kernels/fast/score_map.h",
      """  real* const largest = std::max_element(weights, weights + n);
  std::fill(weights, weights + n, real(0));
  *largest = 1;
""",
      """  const real largest = *std::max_element(weights, weights + n);
  for (std::int64_t j = 0; j < n; ++j) weights[j] = weights[j] == largest ? real(1) : real(0);
""",
      "nn_f64:attention_layers")

fault("cross-entropy counts the first class of a fully masked row as a correct prediction", "autograd/kernels/plain.h",
      "  if (m == -infinity) result.correct = false;",
      "  if (m == infinity) result.correct = false;",
      "kernels_f64:kernels_rows")

fault("products with a short inner side are computed in bf16", "autograd/kernels/fast/gemm/gemm_bf16.cpp",
      "n >= min_extent && k >= min_extent &&",
      "n >= min_extent &&",
      "kernels_f32:kernels_bf16")
