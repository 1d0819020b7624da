#include <atomic>
#include <barrier>
#include <bit>
#include <thread>

#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/packed.h"
#include "autograd/kernels/gemm.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_packed)
using kernels::PackedScope;
using kernels::PackedType;
using kernels::PackedWeights;
using kernels::Trans;
namespace plain = kernels::plain;

namespace {

struct Sizes {
  std::int64_t m, n, k;
};

std::vector<real> twin(const real* a, const real* b, const Sizes& s) {
  std::vector<real> c(static_cast<std::size_t>(s.m * s.n));
  plain::multiply(Trans::no, Trans::yes, s.m, s.n, s.k, 1, a, s.k, b, s.k, 0, c.data(), s.n);
  return c;
}

Array matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return {Shape{rows, cols}, normal_values(rows * cols, 1, seed)};
}

/// C = A Bᵀ, computed by gemm. B has n rows.
std::vector<real> product(const Array& a, const real* b, std::int64_t n) {
  std::vector<real> c(static_cast<std::size_t>(a.rows() * n));
  kernels::gemm(Trans::no, Trans::yes, a.rows(), n, a.cols(), 1, a.data(), a.cols(), b, a.cols(), 0,
                c.data(), n);
  return c;
}

/// The values as bf16 weights contain them: rounded, except in a float64 build.
std::vector<real> as_bf16(std::vector<real> values) {
#ifndef HEED_DOUBLE
  std::vector<std::uint16_t> upper(values.size());
  plain::to_bf16(values.data(), upper.data(), std::ssize(values));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<float>(std::uint32_t{upper[i]} << 16);
#endif
  return values;
}

bool has_layout() { return kernels::packed_size(1, 1) > 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(packed_products_of_many_sizes_equal_the_scalar_reference_bitwise) {
  std::vector<Sizes> all{{505, 70, 3}, {1010, 33, 2}, {13, 65, 600}, {5, 3, 1025}, {260, 33, 300}};
  for (const std::int64_t m : {1, 2, 5, 6, 7, 11, 12, 13, 25}) {
    for (const std::int64_t n : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65}) {
      for (const std::int64_t k : {1, 2, 15, 16, 17, 255, 256, 257}) all.push_back({m, n, k});
    }
  }
  for_each_target([&](const std::string& name) {
    BOOST_CHECK_EQUAL(has_layout(), name != "plain");
    if (!has_layout()) return;
    for (const Sizes& s : all) {
      Guarded a(normal_values(s.m * s.k, 1, 1)), b(normal_values(s.n * s.k, 1, 2)),
          panels(std::vector<real>(static_cast<std::size_t>(kernels::packed_size(s.n, s.k)))),
          c(std::vector<real>(static_cast<std::size_t>(s.m * s.n), not_a_number));
      kernels::pack(b.data(), s.n, s.k, panels.data());
      kernels::multiply_packed(a.data(), panels.data(), s.m, s.n, s.k, c.data());
      BOOST_TEST_CONTEXT(s.m << " x " << s.n << " x " << s.k)
      check_same(c.values(), twin(a.data(), b.data(), s));
    }
  });
}

BOOST_AUTO_TEST_CASE(products_with_bf16_weights_equal_the_scalar_reference_of_rounded_weights) {
  for_each_target([](const std::string&) {
    if (!has_layout()) return;
    for (const Sizes& s :
         std::vector<Sizes>{{1, 33, 17}, {2, 16, 300}, {13, 65, 600}, {1, 8, 1025}}) {
      const std::vector<real> a = normal_values(s.m * s.k, 1, 1),
                              b = normal_values(s.n * s.k, 1, 2);
      Guarded c(std::vector<real>(static_cast<std::size_t>(s.m * s.n), not_a_number));
      kernels::PackedMatrix(b.data(), s.n, s.k, PackedType::bf16).multiply(a.data(), s.m, c.data());
      BOOST_TEST_CONTEXT(s.m << " x " << s.n << " x " << s.k)
      check_same(c.values(), twin(a.data(), as_bf16(b).data(), s));
    }
  });
}

BOOST_AUTO_TEST_CASE(threads_of_a_team_share_a_product_without_changing_its_bits) {
  if (!has_layout()) return;
  Team team(4);
  std::atomic<int> jobs = 0;
  team.interrupt_when([&] { return ++jobs < 0; });  // counts the jobs and interrupts none
  for (const PackedType type : {PackedType::real, PackedType::bf16, PackedType::int8}) {
    if (type == PackedType::int8 && sizeof(real) == 8) continue;  // the scalar reference
    // Threads share an int8 product block by block. The first block of 300 rows (132 rows with
    // AVX2) is large enough for two threads on every processor.
    for (const Sizes& s : std::vector<Sizes>{{1, 701, 800}, {30, 97, 1000}, {300, 70, 90}}) {
      const Array a = matrix(s.m, s.k, 1), b = matrix(s.n, s.k, 2);
      PackedWeights weights(type);
      weights.add(b);
      const auto multiply = [&](Team* sharing) {
        const PackedScope scope(weights, sharing);
        return product(a, b.data(), s.n);
      };
      const std::vector<real> alone = multiply(nullptr);
      jobs = 0;
      check_same(multiply(&team), alone);
      BOOST_TEST(jobs > 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_in_an_operand_affect_only_their_row_and_column) {
  for_each_target([](const std::string&) {
    if (!has_layout()) return;
    const Sizes s{14, 37, 300};
    for (const real special : {not_a_number, inf, -inf, Limits::max()}) {
      std::vector<real> a = normal_values(s.m * s.k, 1, 1), b = normal_values(s.n * s.k, 1, 2),
                        panels(static_cast<std::size_t>(kernels::packed_size(s.n, s.k))),
                        c(static_cast<std::size_t>(s.m * s.n));
      a[static_cast<std::size_t>(13 * s.k + 299)] = special;
      b[static_cast<std::size_t>(36 * s.k + 7)] = special;
      kernels::pack(b.data(), s.n, s.k, panels.data());
      kernels::multiply_packed(a.data(), panels.data(), s.m, s.n, s.k, c.data());
      check_same(c, twin(a.data(), b.data(), s));
      BOOST_TEST(std::isfinite(c[0]));
    }
  });
}

BOOST_AUTO_TEST_CASE(find_returns_a_packed_matrix_only_for_rows_of_added_weights) {
  if (!has_layout()) return;
  const Array first = matrix(40, 16, 1), second = matrix(5, 8, 2), other = matrix(40, 16, 3);
  PackedWeights weights;
  weights.add(first);
  weights.add(second);
  BOOST_TEST(weights.find(first.data(), 40, 16) != nullptr);
  BOOST_TEST(weights.find(first.row(30), 10, 16) != nullptr);
  BOOST_TEST(weights.find(second.row(4), 1, 8) != nullptr);
  BOOST_TEST(weights.find(first.data(), 40, 16) == weights.find(first.data(), 40, 16));
  BOOST_TEST(weights.find(first.data(), 39, 16) != weights.find(first.data(), 40, 16));
  BOOST_TEST(weights.find(first.data(), 41, 16) == nullptr);  // more rows than the matrix has
  // More rows than the matrix has from row 30 on.
  BOOST_TEST(weights.find(first.row(30), 11, 16) == nullptr);
  BOOST_TEST(weights.find(first.data(), 40, 8) == nullptr);       // another row length
  BOOST_TEST(weights.find(first.data() + 1, 10, 16) == nullptr);  // begins inside a row
  BOOST_TEST(weights.find(other.data(), 40, 16) == nullptr);
  BOOST_TEST(PackedWeights().find(first.data(), 40, 16) == nullptr);
}

BOOST_AUTO_TEST_CASE(gemm_uses_packed_weights_within_a_packed_scope) {
  if (!has_layout()) return;
  const Array a = matrix(9, 700, 1), b = matrix(50, 700, 2), free = matrix(50, 700, 3);
  const std::vector<real> before = product(a, b.data(), 50), of_free = product(a, free.data(), 50);
  PackedWeights weights, none;
  weights.add(b);
  {
    const PackedScope scope(weights);
    const std::vector<real> chains = twin(a.data(), b.data(), {9, 50, 700});
    BOOST_TEST((before != chains));  // so the next checks show which code ran
    check_same(product(a, b.data(), 50), chains);
    check_same(product(a, b.row(20), 30), twin(a.data(), b.row(20), {9, 30, 700}));
    check_same(product(a, free.data(), 50), of_free);
    BOOST_TEST(kernels::find_packed(b.data(), 50, 700) != nullptr);
    {
      const PackedScope inner(none);
      BOOST_TEST(kernels::find_packed(b.data(), 50, 700) == nullptr);
    }
    BOOST_TEST(kernels::find_packed(b.data(), 50, 700) != nullptr);
  }
  BOOST_TEST(kernels::find_packed(b.data(), 50, 700) == nullptr);
  check_same(product(a, b.data(), 50), before);
}

BOOST_AUTO_TEST_CASE(products_that_cannot_use_the_packed_weights_are_unchanged) {
  // `a` is large enough for the product that reads it with a leading dimension of 24.
  const Array a = matrix(8, 24, 1), b = matrix(20, 20, 2);
  PackedWeights weights;
  weights.add(b);
  const auto all = [&] {
    constexpr std::int64_t room = 6 * 40;
    std::vector<real> c(7 * room, 1);
    real* at = c.data() - room;
    const auto next = [&](Trans ta, Trans tb, std::int64_t n, real alpha, std::int64_t lda,
                          std::int64_t ldb, real beta, std::int64_t ldc) {
      kernels::gemm(ta, tb, 6, n, 20, alpha, a.data(), lda, b.data(), ldb, beta, at += room, ldc);
    };
    next(Trans::no, Trans::no, 20, 1, 20, 20, 0, 20);
    next(Trans::no, Trans::yes, 20, 1, 20, 20, 1, 20);
    next(Trans::no, Trans::yes, 20, 2, 20, 20, 0, 20);
    next(Trans::yes, Trans::yes, 20, 1, 6, 20, 0, 20);
    next(Trans::no, Trans::yes, 20, 1, 24, 20, 0, 20);  // A is part of wider rows
    next(Trans::no, Trans::yes, 10, 1, 20, 40, 0, 20);  // every second row of B
    next(Trans::no, Trans::yes, 20, 1, 20, 20, 0, 40);  // C is part of wider rows
    return c;
  };
  const std::vector<real> before = all();
  const PackedScope scope(weights);
  check_same(all(), before);
}

BOOST_AUTO_TEST_CASE(products_of_threads_that_share_packed_weights_are_correct) {
  if (!has_layout()) return;
  const Array a = matrix(3, 64, 1), b = matrix(300, 64, 2);
  PackedWeights weights;
  weights.add(b);
  constexpr std::int64_t parts = 20;  // parts of B, which all threads use at once
  std::barrier begin(8);
  std::vector<std::vector<real>> found(8);
  std::vector<std::thread> threads;
  for (std::vector<real>& one : found) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      const PackedScope scope(weights);
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::vector<real> c = product(a, b.row(i * 15), 15);
        one.insert(one.end(), c.begin(), c.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<real> expected;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::vector<real> c = twin(a.data(), b.row(i * 15), {3, 15, 64});
    expected.insert(expected.end(), c.begin(), c.end());
  }
  for (const std::vector<real>& one : found) check_same(one, expected);
}

BOOST_AUTO_TEST_SUITE_END()
