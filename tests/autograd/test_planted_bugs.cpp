// Mistakes planted in ops and layers, most of them in a backward: the checker must detect and name
// each one. docs/GRADCHECK.md shows a table of the mistakes with the messages of these runs.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "autograd/gradcheck.h"
#include "autograd/tape/many.h"
#include "tests/autograd/doc_table.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/planted.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(planted_bugs_suite)

namespace {

using Values = std::vector<Array>;

/// An op with any number of inputs, defined by two functions. `backward` adds the gradient of input
/// i to dx[i].
struct Custom {
  struct Functions {
    std::function<Array(std::span<const Array>)> forward;
    std::function<void(const Values& x, const Array& y, const Array& dy, std::span<const Grad> dx)>
        backward;
  };
  std::shared_ptr<const Functions> functions;
  Values x;
  Array y;
  Array forward(std::span<const Array> inputs) {
    x.assign(inputs.begin(), inputs.end());
    y = functions->forward(inputs);
    return y;
  }
  void backward(const Array& dy, std::span<const Grad> dx) const {
    functions->backward(x, y, dy, dx);
  }
};

template <class Forward, class Backward>
auto custom(Forward forward, Backward backward) {
  const auto functions =
      std::make_shared<const Custom::Functions>(Custom::Functions{forward, backward});
  return [functions](const auto&... inputs) {
    const std::vector<Tensor> list{inputs...};
    return apply(Custom{functions, {}, {}}, std::span<const Tensor>(list));
  };
}

Array value(const Tensor& x) { return x.value(); }

/// x² with the given backward.
template <class Backward>
auto square(Backward backward) {
  return custom([](std::span<const Array> x) { return value(mul(x[0], x[0])); }, backward);
}
/// The correct gradient of x²: 2 x dy.
Array right(const Values& x, const Array& dy) { return value(scale(mul(x[0], dy), 2)); }

/// Divides the rows of x by sqrt(mean x² + eps); backward computes the root with the given
/// function.
template <class Root>
auto rms(Root root) {
  constexpr real eps = real(1e-3);
  const auto true_root = [](const Array& x) {
    return value(sqrt(add(mean(mul(x, x), -1, true), Array::scalar(eps))));
  };
  return custom([=](std::span<const Array> x) { return value(div(x[0], true_root(x[0]))); },
                [=](const Values& x, const Array&, const Array& dy, std::span<const Grad> dx) {
                  const Array r = root(x[0], eps);
                  const Tensor unit = div(x[0], r);
                  const Tensor along = mul(unit, mean(mul(dy, unit), -1, true));
                  dx[0].add(value(div(sub(dy, along), r)));
                });
}

const std::vector<std::int64_t> ids{3, 0, 3, 1};
/// y[i] = x[ids[i]] with the given backward.
template <class Backward>
auto lookup(Backward backward) {
  return custom(
      [](std::span<const Array> x) {
        Array y({static_cast<std::int64_t>(ids.size()), x[0].cols()});
        for (std::size_t i = 0; i < ids.size(); ++i) {
          if (ids[i] >= x[0].rows())
            fail("[lookup] id {} is out of range for {} rows", ids[i], x[0].rows());
          std::copy_n(x[0].row(ids[i]), y.cols(), y.row(static_cast<std::int64_t>(i)));
        }
        return y;
      },
      backward);
}

struct Gate {
  Tensor weight = Tensor::variable(normal({3, 3}, 4)), bias = Tensor::variable(normal({3}, 5));
  Tensor operator()(const Tensor& x) const { return mul(sigmoid(affine(x, weight, bias)), x); }
  std::vector<NamedTensor> parameters() const { return {{"weight", weight}}; }
};

/// An embedding whose table is also the output matrix, where the second use has no node.
struct Tied {
  Tensor table = Tensor::variable(normal({5, 3}, 6));
  Tensor operator()(const Tensor& x) const {
    const std::vector<std::int32_t> tokens{3, 0, 3};
    return affine(add(tanh(embedding(table, tokens)), x), table.value());
  }
  std::vector<NamedTensor> parameters() const { return {{"table", table}}; }
};

struct Bug {
  std::string kind;
  std::string name;  ///< text that the report must contain
  std::function<GradcheckResult()> check;
};

Array x33() { return normal({3, 4}, 1); }

std::vector<Bug> bugs() {
  std::vector<Bug> all;
  const auto add = [&](std::string kind, std::string name, auto f, auto... inputs) {
    all.push_back({std::move(kind), std::move(name), [=] { return gradcheck(f, inputs...); }});
  };
  using D = const Array&;
  using V = const Values&;
  using G = std::span<const Grad>;
  const auto unary = [](auto f, auto df) {
    return custom([=](std::span<const Array> x) { return f(x[0]); },
                  [=](V x, D y, D dy, G dx) { dx[0].add(df(x[0], y, dy)); });
  };

  add("a flipped sign", "sign: the analytic gradient is -1 times",
      square([](V x, D, D dy, G dx) { dx[0].add(value(neg(right(x, dy)))); }), x33());
  add("the constant factor 2 of x² forgotten",
      "missing or wrong factor: analytic / numeric = 0.5 throughout",
      square([](V x, D, D dy, G dx) { dx[0].add(value(mul(x[0], dy))); }), x33());
  add("a slightly wrong factor, 1.005",
      "missing or wrong factor: analytic / numeric = 1.005 throughout",
      square([](V x, D, D dy, G dx) { dx[0].add(value(scale(right(x, dy), real(1.005)))); }),
      x33());
  add("a factor of 1.000002", "analytic / numeric = 1.000002 throughout",
      square([](V x, D, D dy, G dx) { dx[0].add(value(scale(right(x, dy), real(1.000002)))); }),
      x33());
  add("the mean's 1/n forgotten", "= 4 throughout (4; or 4, the extent of the tensor's axis 1",
      unary([](D x) { return value(mean(x, 1)); },
            [](D x, D, D dy) {
              return generate(x.shape(), [&](auto i) { return dy.data()[i / 4]; });
            }),
      x33());
  add("attention's 1/√d forgotten", "sqrt(5), the square root of the extent",
      unary([](D x) { return value(scale(x, 1 / std::sqrt(real(5)))); },
            [](D, D, D dy) { return dy; }),
      normal({3, 5}));
  add("dropout's 1/(1−p) forgotten", "dropout with p = 0.1 were missing",
      unary([](D x) { return value(scale(x, real(1 / 0.9))); }, [](D, D, D dy) { return dy; }),
      x33());
  add("dW transposed", "transposed: the analytic gradient is the transpose of the numeric gradient",
      custom([](std::span<const Array> x) { return value(matmul(x[0], x[1])); },
             [](V x, D, D dy, G dx) {
               dx[0].add(value(matmul(dy, x[1], false, true)));
               dx[1].add(value(matmul(dy, x[0], true)));
             }),
      normal({5, 3}, 1), normal({3, 3}, 2));
  const auto add_bias = [](auto db) {
    return custom([](std::span<const Array> x) { return value(heed::add(x[0], x[1])); },
                  [db](V, D, D dy, G dx) {
                    dx[0].add(dy);
                    dx[1].add(db(dy));
                  });
  };
  add("a bias's gradient from one row only",
      "broadcast not summed: only the contribution of output index 0",
      add_bias([](D dy) { return dy.sliced(0, 1).reshaped({3}).clone(); }), normal({4, 3}),
      normal({3}));
  add("a bias's gradient without the last row",
      "incomplete sum: the contribution of output index 3 along axis 0",
      add_bias([](D dy) { return value(sum(dy.sliced(0, 3), 0)); }), normal({4, 3}), normal({3}));
  add("a sum where nothing was broadcast",
      "summed over axis 0, although every entry has a separate gradient",
      square([](V x, D, D dy, G dx) {
        dx[0].add(value(heed::add(Array::zeros(x[0].shape()), sum(right(x, dy), 0, true))));
      }),
      x33());
  add("softmax without −y⟨dy, y⟩", "a multiple of the output y, like softmax's",
      unary([](D x) { return value(softmax(x)); }, [](D, D y, D dy) { return value(mul(y, dy)); }),
      x33());
  add("log-softmax without its sum", "like log-softmax's -exp(y) sum(dy)",
      unary([](D x) { return value(log_softmax(x)); }, [](D, D, D dy) { return dy.clone(); }),
      x33());
  add("a norm without −mean(dy)",
      "the difference is constant along axis 1, like the -mean(dy) of a norm",
      unary([](D x) { return value(sub(x, mean(x, -1, true))); },
            [](D, D, D dy) { return dy.clone(); }),
      x33());
  add("a norm without its projection",
      "missing term: the difference is, along axis 1, a multiple of",
      unary([](D x) { return value(div(x, sqrt(sum(mul(x, x), -1, true)))); },
            [](D x, D, D dy) { return value(div(dy, sqrt(sum(mul(x, x), -1, true)))); }),
      x33());
  add("a different epsilon in backward",
      "a statistic of the line (a norm, its epsilon, a count) differs from forward's",
      unary(
          [](D x) {
            return value(div(x, heed::add(sum(mul(x, x), -1, true), Array::scalar(real(0.01)))));
          },
          [](D x, D, D dy) {
            // Uses the correct sum, so that only the epsilon is wrong.
            const Array s = value(heed::add(sum(mul(x, x), -1, true), Array::scalar(real(0.01))));
            const Array wrong =
                value(heed::add(sum(mul(x, x), -1, true), Array::scalar(real(0.1))));
            const Tensor full =
                sub(div(dy, s), mul(scale(x, 2), div(sum(mul(dy, x), -1, true), mul(s, s))));
            return value(mul(full, div(s, wrong)));
          }),
      x33());
  add("an epsilon forgotten in backward", "a statistic of the line (a norm, its epsilon, a count)",
      rms([](D x, real) { return value(sqrt(mean(mul(x, x), -1, true))); }), x33());
  add("only one term of a product's derivative", "missing term of the product rule",
      unary([](D x) { return value(silu(x)); },
            [](D x, D, D dy) { return value(mul(dy, sigmoid(x))); }),
      x33());
  add("another input forgotten as a factor", "entry by entry, a product with input 2 is missing",
      custom([](std::span<const Array> x) { return value(mul(mul(x[0], x[1]), x[2])); },
             [](V x, D, D dy, G dx) {
               dx[0].add(value(mul(dy, x[1])));
               dx[1].add(value(mul(dy, mul(x[0], x[2]))));
               dx[2].add(value(mul(dy, mul(x[0], x[1]))));
             }),
      normal({3, 4}, 1), normal({3, 4}, 2), normal({3, 4}, 3));
  add("the gradients of two inputs exchanged", "exchanged: the gradient of input 1 has",
      custom([](std::span<const Array> x) { return value(mul(x[0], x[1])); },
             [](V x, D, D dy, G dx) {
               dx[0].add(value(mul(dy, x[0])));
               dx[1].add(value(mul(dy, x[1])));
             }),
      normal({3, 4}, 1), normal({3, 4}, 2));
  add("an empty backward", "a backward on the path adds nothing", square([](V, D, D, G) {}), x33());
  add(
      "a value detached from its tensor", "the tape does not lead from f's result to this tensor",
      [](const Tensor& x, const Tensor& w) { return mul(x, w.value()); }, x33(), normal({3, 4}, 2));
  add("only the first row computed", "at indices 1 to 2 of axis 0, and only there: zero gradient",
      square([](V x, D, D dy, G dx) {
        const Array full = right(x, dy);
        dx[0].add(generate(x[0].shape(), [&](auto i) { return i < 4 ? full.data()[i] : 0; }));
      }),
      x33());
  add("a scatter that misses rows", "at indices 0, 3 of axis 0, and only there: zero gradient",
      lookup([](V x, D, D dy, G dx) {
        if (!dx[0]) return;
        Array& sum = dx[0].sum();
        for (std::int64_t j = 0; j < x[0].cols(); ++j) sum.row(1)[j] += dy.row(3)[j];
      }),
      normal({5, 3}));
  add("a scatter that overwrites where ids repeat", "overwrites the gradient of input 0",
      lookup([](V x, D, D dy, G dx) {
        if (!dx[0]) return;
        for (std::size_t i = 0; i < ids.size(); ++i)
          std::copy_n(dy.row(static_cast<std::int64_t>(i)), x[0].cols(), dx[0].sum().row(ids[i]));
      }),
      normal({5, 3}));
  add("a scatter that overwrites a separate array where ids repeat",
      "at index 3 of axis 0, and only there: broadcast not summed: only the contribution of output "
      "index 2",
      lookup([](V x, D, D dy, G dx) {
        Array table = Array::zeros(x[0].shape());
        for (std::size_t i = 0; i < ids.size(); ++i)
          std::copy_n(dy.row(static_cast<std::int64_t>(i)), x[0].cols(), table.row(ids[i]));
        dx[0].add(table);
      }),
      normal({5, 3}));
  add("values shifted by one place", "shifted: correct values, offset by 1 along axis 1",
      square([](V x, D, D dy, G dx) {
        const Array full = right(x, dy);
        dx[0].add(
            generate(x[0].shape(), [&](auto i) { return full.data()[i / 4 * 4 + (i + 3) % 4]; }));
      }),
      x33());
  add("values in reverse order", "permuted: correct values in the wrong places",
      square([](V x, D, D dy, G dx) {
        const Array full = right(x, dy);
        dx[0].add(generate(x[0].shape(), [&](auto i) { return full.data()[11 - i]; }));
      }),
      x33());
  add("float32 inside backward", "float32 inside backward?", square([](V x, D, D dy, G dx) {
        const Array full = right(x, dy);
        dx[0].add(generate(x[0].shape(), [&](auto i) {
          return static_cast<double>(static_cast<float>(full.data()[i] * 1.3)) / 1.3 *
                 (1 + 2e-5 * static_cast<double>(i % 3));
        }));
      }),
      x33());
  add("float32 inside forward", "f itself is rounded, as if part of it were computed in float32",
      unary(
          [](D x) {
            return generate(x.shape(), [&](auto i) {
              return static_cast<double>(std::exp(static_cast<float>(x.data()[i])));
            });
          },
          [](D, D y, D dy) { return value(mul(y, dy)); }),
      x33());
  add("`sum() =` instead of `+=`", "overwrites the gradient of input 0",
      square([](V x, D, D dy, G dx) {
        if (dx[0]) dx[0].sum() = right(x, dy);
      }),
      x33());
  add("dy changed in place", "the backward of Custom changes dy", square([](V x, D, D dy, G dx) {
        Array g = dy;
        for (std::int64_t i = 0; i < g.size(); ++i) g.data()[i] *= 2 * x[0].data()[i];
        dx[0].add(g);
      }),
      x33());
  add("a gradient added to values that were never written",
      "computes it from values that were never written", square([](V x, D, D dy, G dx) {
        Array g(x[0].shape());
        for (std::int64_t i = 0; i < g.size(); ++i)
          g.data()[i] += 2 * x[0].data()[i] * dy.data()[i];
        dx[0].add(g);
      }),
      x33());
  add("a result left unwritten by forward",
      "the forward of Custom leaves its result at [2, 3] unwritten",
      custom(
          [](std::span<const Array> x) {
            Array y(x[0].shape());
            for (std::int64_t i = 0; i + 1 < y.size(); ++i) y.data()[i] = x[0].data()[i];
            return y;
          },
          [](V, D, D dy, G dx) { dx[0].add(dy.clone()); }),
      x33());
  add("a saved value overwritten by backward",
      "when it runs again (by 1.1 of its largest value): it probably changes values that forward saved",
      square([](V x, D y, D dy, G dx) {
        const Array full = right(x, dy);
        Array kept = y;
        const bool used = kept.data()[0] == -1;
        kept.data()[0] = -1;
        dx[0].add(used ? dy.clone() : full);
      }),
      x33());
  add("`if (dx)` forgotten",
      "fails if input 0 is a constant: input 0 is a constant and has no gradient",
      custom([](std::span<const Array> x) { return value(mul(x[0], x[1])); },
             [](V x, D, D dy, G dx) {
               const Array da = value(mul(dy, x[1]));
               for (std::int64_t i = 0; i < da.size(); ++i) dx[0].sum().data()[i] += da.data()[i];
               dx[1].add(value(mul(dy, x[0])));
             }),
      normal({3, 4}, 1), normal({3, 4}, 2));
  add("a gradient of the wrong shape",
      "[backward of Custom] expected a gradient of shape [3, 4] for input 0, got shape [3]",
      square([](V, D, D, G dx) { dx[0].add(Array::zeros({3})); }), x33());
  add("a parameter left out of parameters()",
      "f depends on 1 variable that is not among those checked: input 2 of Affine, of shape [3]",
      Gate{}, normal({2, 3}));
  add("a gradient lost if both parameters are constants",
      "computes a different gradient of input 0 if input 0 is the only variable",
      custom([](std::span<const Array> x) { return value(affine(x[0], x[1], x[2])); },
             [](V x, D, D dy, G dx) {
               if (!dx[1] && !dx[2]) return;
               dx[0].add(value(matmul(dy, x[1])));
               dx[1].add(value(matmul(dy, x[0], true)));
               dx[2].add(value(sum(dy, 0)));
             }),
      normal({2, 4}, 1), normal({3, 4}, 2), normal({3}, 3));
  add("a tied weight with one use taken by value",
      "f also uses the values of this tensor without its node", Tied{}, normal({3, 3}));
  add(
      "softmax without −y⟨dy, y⟩, between other ops",
      "wrong op: the backward of Custom: the gradient of input 0 [3, 4] is wrong: missing "
      "term: the difference is, along axis 1, a multiple of the output y",
      [unary](const Tensor& x, const Tensor& w) {
        const auto shares = unary([](D z) { return value(softmax(z)); },
                                  [](D, D y, D dy) { return value(mul(y, dy)); });
        return matmul(shares(affine(tanh(x), w)), w);
      },
      normal({3, 5}, 1), normal({4, 5}, 2));
  add("an input changed in place by backward", "backward changes the values of input 0",
      square([](V x, D, D dy, G dx) {
        const Array full = right(x, dy);
        Array shared = x[0];
        shared.data()[0] = 5;
        dx[0].add(full);
      }),
      x33());
  add("relu's mask computed from dy", "zero gradient",
      unary([](D x) { return value(relu(x)); },
            [](D x, D, D dy) {
              return generate(x.shape(), [&](auto i) {
                return dy.data()[i] > 0 && x.data()[i] > 0 ? dy.data()[i] : 0;
              });
            }),
      x33());
  add("1 − x² for tanh instead of 1 − y²", "WRONG",
      unary([](D x) { return value(tanh(x)); },
            [](D x, D, D dy) { return value(mul(dy, sub(Array::scalar(1), mul(x, x)))); }),
      x33());
  add("a gradient that is wrong for a single row", "with inputs of shapes [1, 4]",
      unary([](D x) { return value(sum(x, 0)); },
            [](D x, D, D dy) {
              const auto rows = x.rows();
              return generate(x.shape(),
                              [&](auto i) { return dy.data()[i % 4] * (rows > 1 ? 1 : 0); });
            }),
      x33());
  add("a gradient that is right for a single row only", "with inputs of shapes [2, 4]",
      unary([](D x) { return value(sum(x, 0)); },
            [](D x, D, D dy) {
              return generate(x.shape(), [&](auto i) { return i < 4 ? dy.data()[i] : 0; });
            }),
      normal({1, 4}));
  add("a gradient that is right for matrices only", "with inputs of shapes [2, 3, 4]",
      unary([](D x) { return value(tanh(x)); },
            [](D x, D y, D dy) {
              return generate(x.shape(), [&](auto i) {
                const real slope = 1 - y.data()[i] * y.data()[i];
                return i < x.shape()[0] * x.cols() ? slope * dy.data()[i] : 0;
              });
            }),
      x33());
  add("a division by an extent of 0",
      "with inputs of shapes [0, 4], f ends the program by SIGFPE: does it divide an integer by an "
      "extent?",
      unary(
          [](D x) {
            // x86 raises this signal if an integer is divided by 0; other processors do not.
            if (x.rows() == 0) std::raise(SIGFPE);
            return value(scale(x, static_cast<real>(12 / std::max<std::int64_t>(x.rows(), 1))));
          },
          [](D x, D, D dy) { return value(scale(dy, static_cast<real>(12 / x.rows()))); }),
      x33());
  const auto first = std::make_shared<Array>(), last = std::make_shared<Array>();
  add("values kept from the first forward",
      "with the values of all variables changed by up to 10 %, the gradient of input 0 is wrong",
      unary(
          [first](D x) {
            if (!first->defined()) *first = x.clone();
            return value(mul(x, x));
          },
          [first](D, D, D dy) { return right({*first}, dy); }),
      x33());
  add("values overwritten by the next forward",
      "if f runs at other values between its forward and its backward",
      unary(
          [last](D x) {
            *last = x;
            return value(mul(x, x));
          },
          [last](D, D, D dy) { return right({*last}, dy); }),
      x33());
  const auto calls = std::make_shared<int>(0);
  add("a backward with noise of 1e-7", "it is not deterministic (random numbers, or a sum in",
      square([calls](V x, D, D dy, G dx) {
        dx[0].add(value(scale(right(x, dy), real(1 + 1e-7 * std::sin(++*calls)))));
      }),
      x33());
  add(
      "no values to check", "nothing was checked", [](const Tensor& x) { return mul(x, x); },
      Array(Shape{0, 3}));
  return all;
}

/// The message that names the mistake: the problem of the whole check, the wrong op or, if there is
/// neither, the likely cause for the first tensor that fails.
std::string message(const GradcheckResult& result) {
  if (!result.problem.empty()) return result.problem;
  if (!result.wrong_op.empty()) return result.wrong_op;
  for (const ParameterCheck& c : result.parameters) {
    if (!passes(c.status)) return c.cause.empty() ? "(the worst entries only)" : c.cause;
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_planted_bug_is_detected_and_named) {
  for (const Bug& bug : bugs()) {
    BOOST_TEST_CONTEXT(bug.kind) {
      GradcheckResult result;
      BOOST_REQUIRE_NO_THROW(result = bug.check());
      EXPECT_WRONG(result, bug.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradcheck_documentation_shows_the_message_of_every_planted_bug) {
  std::vector<Mistake> rows;
  for (const Bug& bug : bugs()) rows.push_back({bug.kind, message(bug.check())});
  check_doc_table("GRADCHECK.md", "## What it reports", rows);
}

BOOST_AUTO_TEST_SUITE_END()
