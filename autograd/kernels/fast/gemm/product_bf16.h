#pragma once
/// Matrix products of operands rounded to bfloat16, computed with the instructions that some x86
/// processors have for them. The operands are rounded while they are packed, two numbers with
/// adjacent indices k to 32 bits.
/// Sources: Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter
/// 18 ("Programming with Intel AMX"), and volume 2, VDPBF16PS and TDPBF16PS, which define the order
/// of the sums; the order of loops: Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix
/// Multiplication", section 5 (block times panel).
#include <cstdint>

#include "autograd/kernels/fast/gemm/bf16.h"

HEED_BEGIN
namespace kernels {

/// Whether this processor and operating system have the unit, which is not Bf16Unit::fma. The first
/// call with Bf16Unit::tiles asks the operating system for permission to use them.
bool has_bf16_instructions(Bf16Unit unit);

/// gemm_bf16 (bf16.h) with such a unit. The bits of a value of C depend only on the unit, on row i of
/// A and on column j of B.
void multiply_bf16(Bf16Unit unit, Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, bool add, float* c, std::int64_t ldc);

}  // namespace kernels
HEED_END
