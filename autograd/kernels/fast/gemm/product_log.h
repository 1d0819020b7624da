#pragma once
/// Counts the FLOPs of matrix products as they are executed. Off by default; the cost is then one
/// pointer test per product.
///
/// A product of m x k and k x n has 2 m n k FLOPs. There are two counts:
///   executed  what gemm computes: attention skips entirely masked blocks, and recomputes some
///             scores instead of storing them
///   model     what the definition of the model requires: attention counts all query-key pairs,
///             masked or not, however it is computed. Papers and other programs report this count.
#include <cstdint>
#include <vector>

#include "autograd/base/scoped_value.h"
#include "autograd/kernels/gemm.h"

HEED_BEGIN
namespace kernels {

/// A product as gemm executes it: C = alpha op(A) op(B) + beta C.
struct Product {
  Trans trans_a, trans_b;
  std::int64_t m, n, k;
  real alpha;
  const real* a;
  std::int64_t lda;
  const real* b;
  std::int64_t ldb;
  real beta;
  real* c;
  std::int64_t ldc;

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct ProductFlops {
  double executed = 0, model = 0;
};

/// While an instance is alive, the products of this thread are added to `flops` and, if requested,
/// listed in the order of their execution. If several are alive, only the newest one counts.
class ProductLog {
 public:
  explicit ProductLog(ProductFlops& flops, std::vector<Product>* products = nullptr)
      : flops_(flops), products_(products), scope_(active, this) {}

  void add(const Product& product) {
    flops_.executed += product.flops();
    if (declared_ == 0) flops_.model += product.flops();
    if (products_ != nullptr) products_->push_back(product);
  }

  double executed() const { return flops_.executed; }

  constinit static inline thread_local ProductLog* active = nullptr;

 private:
  friend class DeclaredFlops;
  ProductFlops& flops_;
  std::vector<Product>* products_;
  ScopedValue<ProductLog*> scope_;
  int declared_ = 0;  ///< number of unfinished computations with declared model FLOPs
};

/// Declares a computation whose products differ from those of its definition: while an instance is
/// alive, the products count only as executed, and the computation's model FLOPs are `flops()`.
/// `flops` is called in the constructor, only if there is a log and only for the outermost
/// instance.
class DeclaredFlops {
 public:
  template <class Flops>
  explicit DeclaredFlops(const Flops& flops) : log_(ProductLog::active) {
    if (log_ == nullptr) return;
    if (log_->declared_++ == 0) log_->flops_.model += flops();
  }
  ~DeclaredFlops() {
    if (log_ != nullptr) --log_->declared_;
  }
  DeclaredFlops(const DeclaredFlops&) = delete;
  DeclaredFlops& operator=(const DeclaredFlops&) = delete;

 private:
  ProductLog* log_;
};

using CountedAsWhole [[deprecated("use DeclaredFlops")]] = DeclaredFlops;  // kept for one release

}  // namespace kernels
HEED_END
