#pragma once
/// Products with weights that are constant over many calls, as in decoding. The weights are packed
/// once, in the order in which the product reads them, whereas BLAS packs them at each call. This
/// doubles the memory of the weights. Quantised to int8 (int8.h), they need only a quarter more.
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "autograd/base/scoped_value.h"
#include "autograd/kernels/fast/gemm/int8.h"
#include "autograd/memory/array.h"

HEED_BEGIN
namespace kernels {

/// B [n, k], packed.
struct PackedMatrix {
  std::int64_t n = 0, k = 0;
  Array panels;      ///< result of pack(); undefined if B is in int8
  Int8Weights int8;  ///< B in int8; empty if B is in panels

  PackedMatrix() = default;
  PackedMatrix(const real* b, std::int64_t n, std::int64_t k, bool as_int8);
  /// C = A Bᵀ: A is [m, k], C [m, n], both row-major without gaps.
  void multiply(const real* a, std::int64_t m, real* c) const;
};

/// Matrices that products may use in packed layout; each (or the rows of it that a product reads)
/// is packed on first use. Their values must not change while this object exists. Once all matrices
/// have been added, threads may share an instance.
class PackedWeights {
 public:
  /// If `int8`, matrices with rows of up to max_int8_row values are quantised.
  explicit PackedWeights(bool int8 = false) : int8_(int8) {}
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  void add(const Array& matrix);  ///< [rows, cols]
  /// The packed layout of the n rows of k values that start at `rows`, or nullptr if no added
  /// matrix contains them. Also nullptr if they are not quantised and this processor has no packed
  /// layout.
  const PackedMatrix* find(const real* rows, std::int64_t n, std::int64_t k);

 private:
  struct Packed {
    std::once_flag once;
    PackedMatrix matrix;
  };
  bool int8_;
  std::map<const real*, Array> matrices_;  // the key is the start address
  std::mutex mutex_;                       // guards packed_
  std::map<std::pair<const real*, std::int64_t>, Packed> packed_;
};

/// While an instance is alive, gemm on this thread uses the packed weights for C = A Bᵀ if they
/// contain B. On processors without vectorised fused multiply-add, products use BLAS unless weights
/// are in int8.
class PackedScope {
 public:
  explicit PackedScope(PackedWeights& weights);

 private:
  ScopedValue<PackedWeights*> scope_;
};

/// The packed layout of B [n, k] that gemm uses on this thread, or nullptr.
const PackedMatrix* find_packed(const real* b, std::int64_t n, std::int64_t k);

/// The number of values in the packed layout of [n, k], including zeros that fill the last panel,
/// or 0 if this processor has no packed layout.
std::int64_t packed_size(std::int64_t n, std::int64_t k);
/// B as consecutive panels of w rows, where w depends on the vector width: panel p contains, for
/// each of the k columns of B, that column's values in rows [p w, (p + 1) w).
void pack(const real* b, std::int64_t n, std::int64_t k, real* panels);
/// C = A Bᵀ: A is [m, k] and C [m, n], both row-major without gaps; `panels` contains B [n, k],
/// packed; k > 0. Each value of C is one chain of fused multiply-adds in the order of k,
/// independent of m and the vector width.
void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c);
namespace plain {
void multiply(const real* a, const real* b, std::int64_t m, std::int64_t n, std::int64_t k,
              real* c);
}

}  // namespace kernels
HEED_END
