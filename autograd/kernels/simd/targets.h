#pragma once
/// The instruction sets that the kernels are compiled for; include it before anything of Highway.
/// Each kernel is built for the sets below and selected at start by processor: AVX-512 and AVX2
/// with FMA on x86, NEON on Arm. Older processors run the plain twins.
#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
