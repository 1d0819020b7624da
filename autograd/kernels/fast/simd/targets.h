#pragma once
/// The instruction sets for which the kernels are compiled; include this file before
/// hwy/foreach_target.h and hwy/highway.h. Each kernel is built for AVX-512 and AVX2 with FMA on
/// x86 (those of gemm/packed.cpp also for AVX-512 with VNNI) and for NEON on Arm; the processor
/// determines at run time which of them is used. Older processors run the reference implementations
/// (`plain::`).
#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
