#include <cblas.h>

#include <array>
#include <ostream>

#include "autograd/kernels/fast/gemm/product.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_product)
using kernels::Trans;
namespace plain = kernels::plain;

namespace {

/// C = alpha op(A) op(B) + beta C. `gap`: the number of values between the rows of each matrix.
struct Case {
  Trans trans_a, trans_b;
  std::int64_t m, n, k;
  real alpha = 1, beta = 0;
  std::int64_t gap = 0;

  std::int64_t lda() const { return (trans_a == Trans::no ? k : m) + gap; }
  std::int64_t ldb() const { return (trans_b == Trans::no ? n : k) + gap; }
  std::int64_t ldc() const { return n + gap; }
  /// The sizes without the gap after the last row, which a product may not read.
  std::int64_t a_size() const { return lda() * (trans_a == Trans::no ? m : k) - gap; }
  std::int64_t b_size() const { return ldb() * (trans_b == Trans::no ? k : n) - gap; }
  std::int64_t c_size() const { return ldc() * m - gap; }
};

std::ostream& operator<<(std::ostream& out, const Case& s) {
  return out << s.m << " x " << s.n << " x " << s.k << (s.trans_a == Trans::yes ? ", Aᵀ" : "")
             << (s.trans_b == Trans::yes ? ", Bᵀ" : "") << ", alpha " << s.alpha << ", beta "
             << s.beta << ", gap " << s.gap;
}

/// C after product(…, c) with the operands of the case.
template <class Product>
std::vector<real> result(const Case& s, const Product& product) {
  Guarded a(normal_values(s.a_size(), 1, 1)), b(normal_values(s.b_size(), 1, 2)),
      c(normal_values(s.c_size(), 1, 3));
  product(s.trans_a, s.trans_b, s.m, s.n, s.k, s.alpha, a.data(), s.lda(), b.data(), s.ldb(),
          s.beta, c.data(), s.ldc());
  return c.values();
}

constexpr Trans both[] = {Trans::no, Trans::yes};

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_many_sizes_equal_the_scalar_reference_bitwise) {
  std::vector<Case> all;
  for (const Trans ta : both) {
    for (const Trans tb : both) {
      for (const std::int64_t m : {1, 5, 6, 7, 12, 13, 25}) {
        for (const std::int64_t n : {1, 8, 15, 16, 17, 31, 32, 33, 65}) {
          for (const std::int64_t k : {1, 3, 16, 17, 66}) all.push_back({ta, tb, m, n, k});
        }
      }
      // More than one block of rows, of columns and of chains; odd remainders.
      all.push_back({ta, tb, 1071, 40, 33});
      all.push_back({ta, tb, 1061, 263, 515});
      all.push_back({ta, tb, 30, 300, 1030, real(0.7), 1, 3});
      all.push_back({ta, tb, 265, 257, 513, real(-1.3), real(0.5), 1});
    }
  }
  std::vector<std::vector<real>> expected;
  for (const Case& s : all) expected.push_back(result(s, plain::multiply));
  for_each_target([&](const std::string& name) {
    BOOST_CHECK_EQUAL(kernels::has_product(64, 256, 256), name != "plain");
    if (name == "plain") return;
    for (std::size_t i = 0; i < all.size(); ++i) {
      BOOST_TEST_CONTEXT(all[i]) check_same(result(all[i], kernels::multiply), expected[i]);
    }
  });
}

BOOST_AUTO_TEST_CASE(the_scalar_reference_is_the_product) {
  for (const Trans ta : both) {
    for (const Trans tb : both) {
      const Case s{ta, tb, 9, 11, 1100, real(0.7), real(-0.5), 2};
      const std::vector<real> c = normal_values(s.c_size(), 1, 3),
                              a = normal_values(s.a_size(), 1, 1),
                              b = normal_values(s.b_size(), 1, 2),
                              found = result(s, plain::multiply);
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          long double sum = 0;
          for (std::int64_t p = 0; p < s.k; ++p) {
            sum += static_cast<long double>(a[static_cast<std::size_t>(
                       ta == Trans::no ? i * s.lda() + p : p * s.lda() + i)]) *
                   b[static_cast<std::size_t>(tb == Trans::no ? p * s.ldb() + j : j * s.ldb() + p)];
          }
          const auto at = static_cast<std::size_t>(i * s.ldc() + j);
          const double expected = static_cast<double>(static_cast<long double>(s.alpha) * sum +
                                                      static_cast<long double>(s.beta) * c[at]);
          BOOST_TEST(std::abs(double{found[at]} - expected) < 1100 * double{Limits::epsilon()});
        }
      }
      for (std::int64_t i = 0; i + 1 < s.m; ++i) {
        for (std::int64_t j = s.n; j < s.ldc(); ++j) {  // between the rows of C
          const auto at = static_cast<std::size_t>(i * s.ldc() + j);
          BOOST_TEST(found[at] == c[at]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(gemm_computes_large_products_itself_and_small_ones_with_blas) {
  const auto blas = [](Trans ta, Trans tb, std::int64_t m, std::int64_t n, std::int64_t k,
                       real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
                       real beta, real* c, std::int64_t ldc) {
    const auto flag = [](Trans t) { return t == Trans::yes ? CblasTrans : CblasNoTrans; };
    const auto size = [](std::int64_t i) { return static_cast<blasint>(i); };
#ifdef HEED_DOUBLE
    const auto product = cblas_dgemm;
#else
    const auto product = cblas_sgemm;
#endif
    product(CblasRowMajor, flag(ta), flag(tb), size(m), size(n), size(k), alpha, a, size(lda), b,
            size(ldb), beta, c, size(ldc));
  };
  for (const Trans ta : both) {
    for (const Trans tb : both) {
      for (const Case& s :
           {Case{ta, tb, 64, 128, 128}, Case{ta, tb, 4, 512, 515, real(0.7), 1, 3},
            Case{ta, tb, 64, 128, 127}, Case{ta, tb, 128, 127, 128}, Case{ta, tb, 3, 1024, 1024}}) {
        const bool own = kernels::has_product(s.m, s.n, s.k);
        BOOST_TEST_CONTEXT(s) {
          const std::vector<real> found = result(s, kernels::gemm);
          check_same(found, own ? result(s, plain::multiply) : result(s, blas));
        }
      }
    }
  }
  if (!kernels::has_product(64, 128, 128)) return;  // a processor without a product of heed's own
  BOOST_TEST(kernels::has_product(4, 512, 515));
  BOOST_TEST(!kernels::has_product(64, 128, 127));   // too small
  BOOST_TEST(!kernels::has_product(128, 127, 128));  // too few columns
  BOOST_TEST(!kernels::has_product(3, 1024, 1024));  // too few rows
}

BOOST_AUTO_TEST_CASE(a_row_of_c_has_the_same_bits_in_a_product_of_fewer_rows_or_columns) {
  if (!kernels::has_product(64, 128, 128)) return;
  const std::int64_t m = 300, n = 500, k = 700;
  const std::vector<real> a = normal_values(m * k, 1, 1), b = normal_values(n * k, 1, 2);
  const auto product = [&](std::int64_t top, std::int64_t rows, std::int64_t columns) {
    std::vector<real> c(static_cast<std::size_t>(rows * columns));
    kernels::gemm(Trans::no, Trans::yes, rows, columns, k, 1, a.data() + top * k, k, b.data(), k, 0,
                  c.data(), columns);
    return c;
  };
  const std::vector<real> whole = product(0, m, n);
  for (const auto& [top, rows, columns] :
       std::vector<std::array<std::int64_t, 3>>{{17, 13, 500}, {290, 10, 200}, {0, 299, 129}}) {
    const std::vector<real> part = product(top, rows, columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto of_whole = whole.begin() + (top + i) * n, of_part = part.begin() + i * columns;
      check_same({of_part, of_part + columns}, {of_whole, of_whole + columns});
    }
  }
}

BOOST_AUTO_TEST_CASE(
    nan_and_infinity_affect_only_their_row_and_column_and_c_is_not_read_with_beta_0) {
  for_each_target([](const std::string& name) {
    if (name == "plain") return;
    const std::int64_t m = 14, n = 37, k = 600;
    for (const real special : {not_a_number, inf, -inf, Limits::max()}) {
      std::vector<real> a = normal_values(m * k, 1, 1), b = normal_values(n * k, 1, 2),
                        c(static_cast<std::size_t>(m * n), not_a_number), expected = c;
      a[static_cast<std::size_t>(13 * k + 599)] = special;
      b[static_cast<std::size_t>(36 * k + 7)] = special;
      kernels::multiply(Trans::no, Trans::yes, m, n, k, 1, a.data(), k, b.data(), k, 0, c.data(),
                        n);
      plain::multiply(Trans::no, Trans::yes, m, n, k, 1, a.data(), k, b.data(), k, 0,
                      expected.data(), n);
      check_same(c, expected);
      BOOST_TEST(std::isfinite(c[0]));
      if (special == Limits::max()) continue;  // whose products may be finite
      BOOST_TEST(!std::isfinite(c[static_cast<std::size_t>(13 * n)]));
      BOOST_TEST(!std::isfinite(c[36]));
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
