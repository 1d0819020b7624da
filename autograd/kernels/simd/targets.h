#pragma once
/// The instruction sets for which the kernels are compiled; include this file before any Highway
/// header. Each kernel is built for AVX-512 and AVX2 with FMA on x86 and for NEON on Arm, and
/// selected at run time according to the processor. Older processors run the reference
/// implementations (`plain::`).
#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
