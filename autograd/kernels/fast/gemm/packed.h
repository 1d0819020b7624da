#pragma once
/// Products with weights that are constant over many calls, as in decoding. The weights are packed
/// once, in the order in which the product reads them; gemm otherwise packs them at each call. This
/// doubles the memory of the weights. In bf16 they need only half more, quantised to int8 (int8.h) a
/// quarter.
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "autograd/base/scoped_value.h"
#include "autograd/base/team.h"
#include "autograd/kernels/fast/gemm/int8.h"
#include "autograd/kernels/fast/gemm/product.h"
#include "autograd/memory/array.h"

HEED_BEGIN
namespace kernels {

/// The type of packed weights. With bf16, only the weights are rounded; A and the sums are real. A
/// float64 build packs real in place of bf16.
enum class PackedType { real, bf16, int8 };

/// B [n, k], packed in one of the types.
struct PackedMatrix {
  std::int64_t n = 0, k = 0;
  Array panels;                                                    ///< result of pack()
  std::vector<std::uint16_t, BlockAllocator<std::uint16_t>> bf16;  ///< the same layout
  Int8Weights int8;

  PackedMatrix() = default;
  PackedMatrix(const real* b, std::int64_t n, std::int64_t k, PackedType type);
  /// C = A Bᵀ: A is [m, k], C [m, n], both row-major without gaps. Uses the team of the PackedScope.
  void multiply(const real* a, std::int64_t m, real* c) const;
};

/// Matrices that products may use in packed layout; each (or the rows of it that a product reads)
/// is packed on first use. Their values must not change while this object exists. Once all matrices
/// have been added, threads may share an instance.
class PackedWeights {
 public:
  /// With PackedType::int8, matrices with rows of more than max_int8_row values remain real.
  explicit PackedWeights(PackedType type = PackedType::real) : type_(type) {}
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
  PackedType type_;
  std::map<const real*, Array> matrices_;  // the key is the start address
  std::mutex mutex_;                       // guards packed_
  std::map<std::pair<const real*, std::int64_t>, Packed> packed_;
};

/// While an instance is alive, gemm on this thread uses the packed weights for C = A Bᵀ if they
/// contain B. On processors without vectorised fused multiply-add, products use BLAS unless weights
/// are in int8. If `team` is not null, its threads share each product that is large enough; the
/// team must be idle otherwise. The number of threads does not change the bits.
class PackedScope {
 public:
  explicit PackedScope(PackedWeights& weights, Team* team = nullptr);

 private:
  ScopedValue<PackedWeights*> scope_;
  ScopedValue<Team*> team_;
};

/// The packed layout of B [n, k] that gemm uses on this thread, or nullptr.
const PackedMatrix* find_packed(const real* b, std::int64_t n, std::int64_t k);

/// C = A Bᵀ: A is [m, k] and C [m, n], both row-major without gaps; `panels` contains B [n, k],
/// packed; k > 0. The bits are those of multiply (product.h). `team`: as in PackedScope.
void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c, Team* team = nullptr);
}  // namespace kernels
HEED_END
