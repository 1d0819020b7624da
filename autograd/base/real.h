#pragma once
/// The number type of a build. autograd (except base and io), nn and optim are compiled twice from
/// the same sources: with `real` = float for training and, if HEED_DOUBLE is defined, with `real` =
/// double for checking gradients. Everything that depends on `real` is in an inline namespace, f32
/// or f64, so one program can contain both builds, and mixing them is a link error instead of
/// memory corruption.

#ifdef HEED_DOUBLE
#define HEED_REAL f64
#else
#define HEED_REAL f32
#endif

// Opens and closes namespace heed::f32 or heed::f64.
#define HEED_BEGIN \
  namespace heed { \
  inline namespace HEED_REAL {
#define HEED_END \
  }              \
  }

HEED_BEGIN
#ifdef HEED_DOUBLE
using real = double;
#else
using real = float;
#endif
HEED_END
