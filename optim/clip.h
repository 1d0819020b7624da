#pragma once
#include <cmath>

namespace heed {

/// The factor that limits the global norm of the gradients to max_norm (Pascanu et al. 2013, with
/// PyTorch's 1e-6 in the denominator): min(1, max_norm / (norm + 1e-6)). max_norm = 0 means no
/// clipping. Returns 1 for a NaN or infinite norm, from which no factor can be computed; the caller
/// must detect such a norm.
inline double clip_factor(double norm, double max_norm) {
  if (max_norm <= 0 || !std::isfinite(norm)) return 1.0;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

}  // namespace heed
