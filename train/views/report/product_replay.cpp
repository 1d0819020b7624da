#include "train/views/report/product_replay.h"

#include <algorithm>
#include <map>
#include <vector>

#include "autograd/memory/array.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

HEED_BEGIN

using kernels::Product;
using kernels::Trans;

namespace {

/// The addresses [begin, end).
struct Stretch {
  std::uintptr_t begin = 0, end = 0;
};

/// The addresses of a matrix whose rows have `cols` values and begin `distance` values apart.
Stretch stretch(const real* data, std::int64_t rows, std::int64_t cols, std::int64_t distance) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + sizeof(real) * static_cast<std::size_t>((rows - 1) * distance + cols)};
}
Stretch of_a(const Product& p) {
  return p.trans_a == Trans::no ? stretch(p.a, p.m, p.k, p.lda) : stretch(p.a, p.k, p.m, p.lda);
}
Stretch of_b(const Product& p) {
  return p.trans_b == Trans::no ? stretch(p.b, p.k, p.n, p.ldb) : stretch(p.b, p.n, p.k, p.ldb);
}
Stretch of_c(const Product& p) { return stretch(p.c, p.m, p.n, p.ldc); }

/// Maps address ranges into one array. Overlapping ranges also overlap in the array, and each range
/// keeps its alignment relative to cache lines.
class Places {
 public:
  explicit Places(std::vector<Stretch> used) {
    std::sort(used.begin(), used.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    for (std::size_t i = 0, next = 0; i < used.size(); i = next) {
      std::uintptr_t end = used[i].end;
      for (next = i + 1; next < used.size() && used[next].begin < end; ++next)
        end = std::max(end, used[next].end);
      bytes_ = (bytes_ + line - 1) / line * line + used[i].begin % line;
      offsets_[used[i].begin] = bytes_;
      bytes_ += end - used[i].begin;
    }
  }
  /// The offset in the array, in values, of an address within a range.
  std::int64_t offset(std::uintptr_t address) const {
    const auto& [begin, offset] = *std::prev(offsets_.upper_bound(address));
    return static_cast<std::int64_t>((offset + address - begin) / sizeof(real));
  }
  std::int64_t values() const { return static_cast<std::int64_t>(bytes_ / sizeof(real)); }

 private:
  static constexpr std::uintptr_t line = 64;
  /// The offset in bytes of each merged range, by first address.
  std::map<std::uintptr_t, std::uintptr_t> offsets_;
  std::uintptr_t bytes_ = 0;
};

}  // namespace

ProductReplay::ProductReplay(const std::vector<Product>& products,
                             std::span<const NamedTensor> weights) {
  std::map<std::uintptr_t, std::uintptr_t> weight_ends;  // end of each weight, by first address
  for (const NamedTensor& w : weights) {
    const Array& values = w.tensor.value();
    if (values.size() == 0) continue;
    const Stretch s = stretch(values.data(), 1, values.size(), values.size());
    weight_ends[s.begin] = s.end;
  }
  const auto is_weight = [&](const Stretch& s) {
    const auto after = weight_ends.upper_bound(s.begin);
    return after != weight_ends.begin() && s.end <= std::prev(after)->second;
  };
  std::vector<Stretch> used;
  for (const Product& p : products) {
    for (const Stretch& s : {of_a(p), of_b(p), of_c(p)}) {
      if (!is_weight(s)) used.push_back(s);
    }
  }
  const Places places(std::move(used));
  values_ = places.values();
  const auto operand = [&](const real* data, const Stretch& s) {
    return is_weight(s) ? Operand{data, 0} : Operand{nullptr, places.offset(s.begin)};
  };
  for (const Product& p : products)
    steps_.push_back({p, operand(p.a, of_a(p)), operand(p.b, of_b(p)), operand(p.c, of_c(p))});
}

void ProductReplay::run() const {
  Array memory({values_});
#ifdef __SSE2__
  // Products of arbitrary values may contain many subnormal numbers, which Intel processors multiply
  // about a hundred times more slowly. The loop treats them as zero.
  constexpr unsigned flush_results = 0x8000, flush_operands = 0x0040;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | flush_results | flush_operands);
#endif
  const auto at = [&](const Operand& o) {
    return o.weight != nullptr ? o.weight : memory.data() + o.offset;
  };
  for (const auto& [p, a, b, c] : steps_) {
    kernels::gemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, at(a), p.lda, at(b), p.ldb, p.beta,
                  memory.data() + c.offset, p.ldc);
  }
#ifdef __SSE2__
  _mm_setcsr(before);
#endif
}

HEED_END
