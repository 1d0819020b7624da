#pragma once
/// Helpers of the kernel tests: difficult values, errors in units in the last place, and a loop
/// over the instruction sets of this machine, including those for which the kernels are the scalar
/// references (`kernels::plain`).
#include <hwy/highway.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/base/real.h"

HEED_BEGIN
namespace testing {

using Limits = std::numeric_limits<real>;
constexpr bool in_float = sizeof(real) == 4;
constexpr real inf = Limits::infinity();
constexpr real not_a_number = Limits::quiet_NaN();

/// Runs body(name) once for each instruction set of this machine, which the kernels then use. The
/// name is "plain" if they are the scalar references. `further` is an additional instruction set,
/// for which only some kernels are built.
template <class Body>
void for_each_target(const Body& body, std::int64_t further = 0) {
  struct Restore {
    ~Restore() { choose(0); }
    static void choose(std::int64_t targets) {
      hwy::SetSupportedTargetsForTest(targets);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
  } restore;
  const std::int64_t plain = HWY_SCALAR | HWY_EMU128;
  const std::int64_t machine = hwy::SupportedTargets();
  for (const std::int64_t target : std::initializer_list<std::int64_t>{further, HWY_AVX3, HWY_AVX2,
                                                                       HWY_SSE4, HWY_NEON, plain}) {
    // If every processor that the build supports has vector instructions, the scalar references are
    // not built as kernels.
    constexpr bool always_vectors = HWY_ARCH_ARM_A64 || HWY_STATIC_TARGET <= HWY_AVX2;
    const bool built = target == plain ? !always_vectors : (machine & target) != 0;
    if (!built) continue;
    Restore::choose(target);
    const bool vectors = target != plain && target != HWY_SSE4;  // as HEED_SIMD in lanes-inl.h
    const std::string name = vectors ? hwy::TargetName(target) : "plain";
    BOOST_TEST_CONTEXT("instruction set " << name) { body(name); }
  }
}

/// |a − b| in units in the last place of b; 0 if both are NaN or the same infinity, otherwise 1e30
/// if either is NaN or infinite.
inline double ulps(real a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e30;
  const auto nearest = static_cast<real>(b);
  if (std::isinf(a) || std::isinf(nearest)) return a == nearest ? 0 : 1e30;
  const real above = std::nextafter(std::abs(nearest), inf);
  const long double unit = std::isinf(above)
                               ? std::abs(nearest) - std::nextafter(std::abs(nearest), real(0))
                               : above - std::abs(nearest);
  return static_cast<double>(std::abs(a - b) / unit);
}

/// Whether a and b differ by at most tolerance · max(scale, |b|), plus a slack for denormals. NaN
/// and infinities must match.
inline bool close(real a, real b, double tolerance, double scale = 0) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  const double size = std::max(scale, std::abs(double{b}));
  // In double, the scalar references multiply denormal values, which have few digits, by up to 800.
  const double slack = (in_float ? 2 : 1000) * double{Limits::denorm_min()};
  return std::abs(double{a} - double{b}) <= tolerance * size + slack;
}

/// Equality of bits (−0 differs from 0), except that any two NaNs are equal.
inline bool same(real a, real b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

/// The first n values of the normal sequence of `seed`, times `size`; cached, because drawing them takes
/// longer than most kernels.
inline std::vector<real> normal_values(std::int64_t n, double size, std::uint64_t seed) {
  struct Sequence {
    Random random;
    std::vector<double> values = {};
  };
  static std::map<std::uint64_t, Sequence> sequences;
  Sequence& drawn =
      sequences.try_emplace(seed, Sequence{Random(RandomKey{.seed = seed})}).first->second;
  while (std::ssize(drawn.values) < n) drawn.values.push_back(drawn.random.normal());
  std::vector<real> x(static_cast<std::size_t>(n));
  std::transform(drawn.values.begin(), drawn.values.begin() + n, x.begin(),
                 [size](double value) { return static_cast<real>(size * value); });
  return x;
}

/// Difficult values: zeros, denormals, the ends of the range, infinities, NaN, and the points where
/// exponentials and the tails of activations overflow or underflow.
inline std::vector<real> awkward_values() {
  std::vector<real> x = {0,
                         not_a_number,
                         inf,
                         Limits::denorm_min(),
                         Limits::min(),
                         Limits::max(),
                         real(1e-40),
                         real(1e38),
                         1,
                         real(1e-3),
                         real(0.3466),
                         real(0.34658),
                         real(5.9),
                         real(9.0),
                         real(13.2),
                         real(14.1),
                         real(14.5),
                         20,
                         40,
                         41,
                         86,
                         real(87.3),
                         real(88.7),
                         real(88.73),
                         89,
                         90,
                         103,
                         real(103.97),
                         104,
                         120,
                         121,
                         200,
                         708,
                         real(709.8),
                         710,
                         745,
                         real(745.2),
                         746,
                         800,
                         801,
                         1e4,
                         real(1e20)};
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) x.push_back(-x[i]);
  return x;
}

/// A copy of x that ends `shift` values before an inaccessible page. With shift 0, any access
/// beyond the end crashes, vector loads included. The destructor checks that the values on both
/// sides of the copy are unchanged.
class Guarded {
 public:
  explicit Guarded(const std::vector<real>& x, std::int64_t shift = 0)
      : size_(x.size()), after_(static_cast<std::size_t>(shift)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (before_ + size_ + after_) * sizeof(real);
    mapped_ = (bytes + page - 1) / page * page + page;
    void* const begin =
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(begin != MAP_FAILED);
    begin_ = static_cast<real*>(begin);
    end_ = begin_ + (mapped_ - page) / sizeof(real);
    BOOST_REQUIRE_EQUAL(::mprotect(end_, page, PROT_NONE), 0);
    std::fill(begin_, end_, guard);
    std::copy(x.begin(), x.end(), data());
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() {
    BOOST_CHECK(std::all_of(begin_, data(), [](real v) { return v == guard; }));
    BOOST_CHECK(std::all_of(data() + size_, end_, [](real v) { return v == guard; }));
    ::munmap(begin_, mapped_);
  }
  real* data() const { return end_ - after_ - size_; }
  real operator[](std::int64_t i) const { return data()[i]; }
  std::vector<real> values() const { return {data(), data() + size_}; }

 private:
  static constexpr real guard = real(12345.5);
  static constexpr std::size_t before_ = 64;
  std::size_t size_, after_, mapped_;
  real *begin_, *end_;
};

inline void check_close(const std::vector<real>& fast, const std::vector<real>& plain,
                        double tolerance, double scale = 0) {
  BOOST_REQUIRE_EQUAL(fast.size(), plain.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    BOOST_CHECK_MESSAGE(close(fast[i], plain[i], tolerance, scale),
                        "value " << i << ": " << fast[i] << ", scalar reference: " << plain[i]);
  }
}
inline void check_same(const std::vector<real>& a, const std::vector<real>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    BOOST_CHECK_MESSAGE(same(a[i], b[i]), "value " << i << ": " << a[i] << ", expected " << b[i]);
  }
}

/// All lengths up to twice the widest vector plus one, then typical row lengths.
inline std::vector<std::int64_t> lengths() {
  std::vector<std::int64_t> n;
  for (std::int64_t i = 0; i <= 33; ++i) n.push_back(i);
  for (const std::int64_t i : {63, 64, 65, 127, 129, 512, 1000, 1025, 5003}) n.push_back(i);
  return n;
}

}  // namespace testing
HEED_END
