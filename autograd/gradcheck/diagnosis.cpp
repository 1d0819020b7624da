#include "autograd/gradcheck/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "autograd/ops/basic.h"

HEED_BEGIN

namespace {

using Values = std::vector<double>;
// Maximum relative deviation of the numbers from a pattern.
constexpr double fit = sizeof(real) == 8 ? 1e-5 : 2e-2;

double largest(const Values& v) {
  double m = 0;
  for (const double a : v) m = std::max(m, std::abs(a));
  return m;
}

/// Whether the candidate explains the target: no entry differs by more than `fit` times the
/// target's largest magnitude. False for a target of zeros and for different sizes.
bool same(const Values& candidate, const Values& target) {
  const double allowed = fit * largest(target);
  if (allowed == 0 || candidate.size() != target.size()) return false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!(std::abs(candidate[i] - target[i]) <= allowed)) return false;
  }
  return true;
}

double dot(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Values scaled(double c, Values v) {
  for (double& a : v) a *= c;
  return v;
}

Values minus(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

/// A view of an array along one of its axes: entry j of line l has the flat index at(l, j).
struct Axis {
  Axis(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
    lines = extent == 0 ? 0 : shape.size() / extent;
  }
  std::int64_t at(std::int64_t line, std::int64_t j) const {
    return (line / stride) * stride * extent + line % stride + j * stride;
  }
  std::int64_t extent, stride = 1, lines = 0;
};

// ---- single causes: each returns a sentence, or nothing if it does not apply -----------------

std::optional<std::string> nothing_arrives(const Evidence& e) {
  if (largest(e.analytic) != 0 || largest(e.numeric) == 0) return {};
  if (!e.output_has_graph) {
    return "zero gradient: f's result carries no gradient at all (values taken out of their "
           "tensors, or NoGrad inside f)";
  }
  if (!e.connected) {
    return "zero gradient: the tape does not lead from f's result to this tensor (its value was "
           "used without its node)";
  }
  return "zero gradient: the analytic gradient is 0 everywhere; a backward on the path adds "
         "nothing";
}

std::optional<std::string> no_influence(const Evidence& e) {
  if (largest(e.numeric) != 0) return {};
  return "f's result does not change with this tensor, yet the analytic gradient is not 0";
}

std::optional<std::string> sign(const Values& a, const Values& n) {
  if (!same(scaled(-1, a), n)) return {};
  return "sign: the analytic gradient is -1 times the numeric one";
}

/// The names of up to three common ratios close to r = analytic / numeric, as in " (2; or …)".
/// Returns "" if there are none.
std::string name_of_ratio(double r, const Evidence& e) {
  struct Guess {
    double value;
    std::string name;
  };
  std::vector<Guess> guesses{{2, "2"},         {0.5, "1/2"}, {3, "3"},
                             {1.0 / 3, "1/3"}, {4, "4"},     {0.25, "1/4"}};
  const auto extents_of = [&](const Shape& shape, const std::string& what) {
    const auto add = [&](std::int64_t count, const std::string& name) {
      if (count < 2) return;
      const auto n = static_cast<double>(count);
      guesses.push_back({n, fmt::format("{}, {}", count, name)});
      guesses.push_back({1 / n, fmt::format("1/{}, one over {}", count, name)});
      guesses.push_back(
          {std::sqrt(n), fmt::format("sqrt({}), the square root of {}", count, name)});
      guesses.push_back({1 / std::sqrt(n),
                         fmt::format("1/sqrt({}), one over the square root of {}", count, name)});
    };
    for (int i = 0; i < shape.rank(); ++i)
      add(shape[i], fmt::format("the extent of {}'s axis {}", what, i));
    if (shape.rank() > 1) add(shape.size(), fmt::format("the number of {}'s values", what));
  };
  extents_of(e.shape, "the tensor");
  extents_of(e.output_shape, "the output");
  for (const double p : {0.05, 0.1, 0.2, 0.25, 0.3, 0.4}) {
    guesses.push_back(
        {1 - p, fmt::format("1 - {0}, as if 1/(1 - p) of a dropout with p = {0} were missing", p)});
    guesses.push_back(
        {1 / (1 - p), fmt::format("1/(1 - {0}), as if a dropout with p = {0} scaled twice", p)});
  }
  std::string names;
  int found = 0;
  for (const Guess& guess : guesses) {
    if (std::abs(std::abs(r) - guess.value) > fit * guess.value || found == 3) continue;
    names += (found++ == 0 ? " (" : "; or ") + std::string(r < 0 ? "-" : "") + guess.name;
  }
  if (std::abs(r - 0.5) < fit) {
    names +=
        "; or only one use of a tensor used twice is counted: add contributions instead of "
        "overwriting them";
  }
  return names.empty() ? names : names + ")";
}

/// The ratio, with at least three digits of its distance from 1: "1.5", "1.0005", "1.00000203".
std::string ratio_text(double r) {
  const double off = std::abs(r - 1);
  const int digits = off < 1e-9 || off >= 1e-3 ? 6 : 4 + static_cast<int>(-std::log10(off));
  return fmt::format("{:.{}g}", r, digits);
}

std::optional<std::string> factor(const Values& a, const Values& n, const Evidence& e) {
  const double nn = dot(n, n);
  if (nn == 0) return {};
  const double r = dot(a, n) / nn;
  if (r == 0 || !std::isfinite(r)) return {};
  // The tolerance is smaller than the deviation that the factor explains: a factor may be 1.0005.
  const Values rest = minus(scaled(1 / r, a), n);
  if (largest(rest) > std::min(fit, 0.01 * std::abs(1 / r - 1)) * largest(n)) return {};
  if (n.size() == 1) {
    const std::string name = name_of_ratio(r, e);
    if (name.empty()) return {};
    return fmt::format("possibly a factor: analytic / numeric = {}{}", ratio_text(r), name);
  }
  return fmt::format("missing or wrong factor: analytic / numeric = {} throughout{}", ratio_text(r),
                     name_of_ratio(r, e));
}

/// Whether every line of the analytic gradient along an axis is a multiple of the numeric one plus
/// a multiple of x. This happens if backward computes a statistic of the line, such as the standard
/// deviation in a norm, differently from forward.
bool multiples_of_each_line(const Evidence& e, const Axis& axis) {
  Values rest(e.numeric.size());
  for (std::int64_t line = 0; line < axis.lines; ++line) {
    double nn = 0, nx = 0, xx = 0, an = 0, ax = 0;
    for (std::int64_t j = 0; j < axis.extent; ++j) {
      const std::size_t i = axis.at(line, j);
      nn += e.numeric[i] * e.numeric[i];
      nx += e.numeric[i] * e.x[i];
      xx += e.x[i] * e.x[i];
      an += e.analytic[i] * e.numeric[i];
      ax += e.analytic[i] * e.x[i];
    }
    const double det = nn * xx - nx * nx;
    if (!(det > 1e-9 * nn * xx)) return false;
    const double of_n = (an * xx - ax * nx) / det, of_x = (ax * nn - an * nx) / det;
    for (std::int64_t j = 0; j < axis.extent; ++j) {
      const std::size_t i = axis.at(line, j);
      rest[i] = e.analytic[i] - of_n * e.numeric[i] - of_x * e.x[i];
    }
  }
  return largest(rest) <=
         std::min(fit * largest(e.numeric), 0.01 * largest(minus(e.analytic, e.numeric)));
}

std::optional<std::string> statistic_of_each_line(const Evidence& e) {
  for (int k = e.shape.rank() - 1; k >= 0; --k) {
    const Axis axis(e.shape, k);
    if (axis.extent < 4 || axis.lines < 2 || !multiples_of_each_line(e, axis)) continue;
    return fmt::format(
        "each line along axis {} has a different factor: a statistic of the line (a norm, its "
        "epsilon, a count) differs from forward's",
        k);
  }
  return {};
}

/// The values of `other`, repeated to the size of `shape`; none if its shape differs from the last
/// extents of `shape`.
std::optional<Values> repeated_to(const Shape& shape, const OtherTensor& other) {
  const int skipped = shape.rank() - other.shape.rank();
  if (skipped < 0 || other.values.empty()) return {};
  for (int k = 0; k < other.shape.rank(); ++k) {
    if (shape[k + skipped] != other.shape[k]) return {};
  }
  Values repeated(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < repeated.size(); ++i)
    repeated[i] = other.values[i % other.values.size()];
  return repeated;
}

Values times(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

/// Detects that, entry by entry, the gradient lacks a factor that f uses, or has one too many.
std::optional<std::string> factor_of_each_entry(const Evidence& e) {
  std::vector<OtherTensor> factors{{"x itself", e.shape, e.x, {}}};
  if (e.output_shape == e.shape) {
    factors.push_back({"the output y", e.shape, e.y, {}});
    factors.push_back({"the cotangent dy", e.shape, e.cotangent, {}});
  }
  factors.insert(factors.end(), e.other_tensors.begin(), e.other_tensors.end());
  for (const OtherTensor& factor : factors) {
    const std::optional<Values> values = repeated_to(e.shape, factor);
    if (!values || largest(*values) == 0) continue;
    const auto explained = [&](const Values& a, const Values& n) {
      return same(a, n) || same(scaled(2, a), n) || same(scaled(0.5, a), n) ||
             same(scaled(-1, a), n);
    };
    if (explained(times(e.analytic, *values), e.numeric))
      return fmt::format("missing factor: entry by entry, a product with {} is missing",
                         factor.name);
    if (explained(e.analytic, times(e.numeric, *values)))
      return fmt::format("superfluous factor: entry by entry, the gradient is multiplied by {}",
                         factor.name);
  }
  return {};
}

/// Detects, for y = x g(x), that the gradient is only the term dy g(x) = dy y / x of the product
/// rule, or lacks this term.
std::optional<std::string> product_rule(const Evidence& e) {
  if (e.shape != e.output_shape) return {};
  Values outer(e.x.size());
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (e.x[i] == 0) return {};
    outer[i] = e.cotangent[i] * e.y[i] / e.x[i];
  }
  if (same(outer, e.analytic)) {
    return "missing term of the product rule: the analytic gradient is dy y / x, as if only one of "
           "two factors depended on x";
  }
  if (same(minus(e.numeric, outer), e.analytic)) {
    return "missing term of the product rule: the gradient lacks the term dy y / x, which "
           "y = x g(x) requires";
  }
  return {};
}

/// Detects that the gradient of another tensor has the values that this gradient should have.
std::optional<std::string> exchanged(const Evidence& e) {
  for (const OtherTensor& other : e.other_tensors) {
    if (other.shape == e.shape && same(other.gradient, e.numeric))
      return fmt::format(
          "exchanged: the gradient of {} has the values that this gradient should have",
          other.name);
  }
  return {};
}

std::optional<std::string> transposed(const Evidence& e) {
  const Shape& s = e.shape;
  for (int p = s.rank() - 2; p >= 0; --p) {
    for (int q = s.rank() - 1; q > p; --q) {
      if (s[p] < 2 || s[q] < 2) continue;
      // The values of the gradient are those of an array with axes p and q exchanged.
      Array swapped(s.with(p, s[q]).with(q, s[p]));
      std::ranges::copy(e.analytic, swapped.data());
      const Array back = transpose(swapped, p, q).value();
      if (!same({back.data(), back.data() + back.size()}, e.numeric)) continue;
      return s.rank() == 2
                 ? std::string(
                       "transposed: the analytic gradient is the transpose of the numeric gradient")
                 : fmt::format("transposed: axes {} and {} of the analytic gradient are swapped", p,
                               q);
    }
  }
  return {};
}

/// The chosen entries of v.
Values only(const Values& v, const std::vector<bool>& chosen) {
  Values part;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (chosen[i]) part.push_back(v[i]);
  }
  return part;
}

/// Compares the gradient with partial sums over the outputs, which result from a backward that does
/// not sum over a broadcast axis, overwrites instead of adding, or skips a row.
std::optional<std::string> part_of_the_outputs(const Evidence& e) {
  const Shape& out = e.output_shape;
  if (e.shape.size() > 4096 || e.shape.size() * out.size() > 4'000'000 || !e.column) return {};
  std::vector<Values> columns;
  for (std::int64_t i = 0; i < e.shape.size(); ++i) columns.push_back(e.column(i));
  const Values difference = minus(e.numeric, e.analytic);
  const auto explains = [&](const Values& target,
                            const char* sentence) -> std::optional<std::string> {
    for (int k = 0; k < out.rank(); ++k) {
      const Axis axis(out, k);
      for (std::int64_t j = 0; j < axis.extent && axis.extent > 1; ++j) {
        Values part(columns.size());
        for (std::size_t i = 0; i < columns.size(); ++i) {
          for (std::int64_t line = 0; line < axis.lines; ++line)
            part[i] += columns[i][axis.at(line, j)];
        }
        if (same(only(part, e.wrong), only(target, e.wrong)))
          return fmt::format(fmt::runtime(sentence), j, k, axis.extent);
      }
    }
    return {};
  };
  const auto only_one = explains(
      e.analytic,
      "broadcast not summed: only the contribution of output index {} along axis {} (extent {}) is "
      "present; sum over that axis, and add instead of overwriting");
  return only_one
             ? only_one
             : explains(
                   difference,
                   "incomplete sum: the contribution of output index {} along axis {} (extent {}) "
                   "is missing");
}

std::optional<std::string> summed_too_much(const Evidence& e) {
  for (int k = 0; k < e.shape.rank(); ++k) {
    const Axis axis(e.shape, k);
    if (axis.extent < 2) continue;
    Values sums(e.numeric.size());
    for (std::int64_t line = 0; line < axis.lines; ++line) {
      double sum = 0;
      for (std::int64_t j = 0; j < axis.extent; ++j) sum += e.numeric[axis.at(line, j)];
      for (std::int64_t j = 0; j < axis.extent; ++j) sums[axis.at(line, j)] = sum;
    }
    if (same(sums, e.analytic))
      return fmt::format("summed over axis {}, although every entry has a separate gradient", k);
    if (same(scaled(1 / static_cast<double>(axis.extent), sums), e.analytic)) {
      return fmt::format("averaged over axis {}, although every entry has a separate gradient", k);
    }
  }
  return {};
}

/// Whether, in each line along the axis, the difference is a multiple of the basis.
bool multiple_along(const Axis& axis, const Values& difference, const Values& basis) {
  Values explained(difference.size());
  for (std::int64_t line = 0; line < axis.lines; ++line) {
    double bd = 0, bb = 0;
    for (std::int64_t j = 0; j < axis.extent; ++j) {
      const std::size_t i = axis.at(line, j);
      bd += basis[i] * difference[i];
      bb += basis[i] * basis[i];
    }
    for (std::int64_t j = 0; j < axis.extent && bb > 0; ++j) {
      const std::size_t i = axis.at(line, j);
      explained[i] = bd / bb * basis[i];
    }
  }
  return same(explained, difference);
}

std::optional<std::string> missing_term(const Evidence& e) {
  const Values difference = minus(e.analytic, e.numeric);
  struct Term {
    Values basis;
    const char* what;
  };
  std::vector<Term> terms{
      {Values(difference.size(), 1), " constant along axis {}, like the -mean(dy) of a norm"}};
  if (e.shape == e.output_shape) {
    Values exp_y(e.y);
    for (double& v : exp_y) v = std::exp(v);
    terms.push_back(
        {e.y, ", along axis {}, a multiple of the output y, like softmax's -y <dy, y>"});
    terms.push_back(
        {exp_y, ", along axis {}, a multiple of exp(y), like log-softmax's -exp(y) sum(dy)"});
  }
  terms.push_back({e.x, ", along axis {}, a multiple of x, like the -x <dy, x> of a norm"});
  for (int k = e.shape.rank() - 1; k >= 0; --k) {
    const Axis axis(e.shape, k);
    for (const Term& term : terms) {
      if (axis.extent > 1 && multiple_along(axis, difference, term.basis))
        return "missing term: the difference is" + fmt::format(fmt::runtime(term.what), k);
    }
  }
  return {};
}

std::optional<std::string> rearranged(const Evidence& e) {
  for (int k = 0; k < e.shape.rank(); ++k) {
    const Axis axis(e.shape, k);
    for (std::int64_t shift = 1; shift < axis.extent; ++shift) {
      Values rolled(e.numeric.size());
      for (std::int64_t line = 0; line < axis.lines; ++line) {
        for (std::int64_t j = 0; j < axis.extent; ++j) {
          rolled[axis.at(line, (j + shift) % axis.extent)] = e.numeric[axis.at(line, j)];
        }
      }
      if (same(rolled, e.analytic))
        return fmt::format("shifted: correct values, offset by {} along axis {}", shift, k);
    }
  }
  Values a(e.analytic), n(e.numeric);
  std::sort(a.begin(), a.end());
  std::sort(n.begin(), n.end());
  if (a.size() > 2 && same(a, n)) return "permuted: correct values in the wrong places";
  return {};
}

std::optional<std::string> precision(const Values& a, const Values& n) {
  const double worst = largest(minus(a, n));
  if (worst > 1e-3 * largest(n)) return {};
  return fmt::format(
      "precision: correct to about {:.0f} digits; a constant (an epsilon?) that differs from "
      "forward's, an approximate derivative, or float32 inside backward?",
      -std::log10(worst / largest(n)));
}

/// "at indices 1, 4, 5 of axis 0, and only there: ", if the wrong entries are exactly those at some
/// indices of one axis, else "at the wrong entries: ".
std::string place(const Evidence& e) {
  for (int k = 0; k < e.shape.rank(); ++k) {
    const Axis axis(e.shape, k);
    std::vector<std::int64_t> bad(axis.extent), where;
    for (std::size_t i = 0; i < e.indices.size(); ++i) {
      if (e.wrong[i]) ++bad[e.indices[i] / axis.stride % axis.extent];
    }
    bool partly = false;
    for (std::int64_t j = 0; j < axis.extent; ++j) {
      if (bad[j] > 0) where.push_back(j);
      partly = partly || (bad[j] > 0 && bad[j] < axis.lines);
    }
    const auto count = static_cast<std::int64_t>(where.size());
    if (partly || count == 0 || count == axis.extent) continue;
    if (count == 1) return fmt::format("at index {} of axis {}, and only there: ", where[0], k);
    if (where.back() - where.front() + 1 == count) {
      return fmt::format("at indices {} to {} of axis {}, and only there: ", where.front(),
                         where.back(), k);
    }
    if (count > 6) where.resize(6);
    return fmt::format("at indices {}{} of axis {}, and only there: ", fmt::join(where, ", "),
                       count > 6 ? ", …" : "", k);
  }
  return "at the wrong entries: ";
}

}  // namespace

std::string index_in(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.rank());
  for (int k = shape.rank() - 1; k >= 0; --k) {
    index[k] = flat % shape[k];
    flat /= shape[k];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string diagnose(const Evidence& e) {
  if (const auto cause = nothing_arrives(e)) return *cause;
  if (const auto cause = no_influence(e)) return *cause;
  if (const auto cause = sign(e.analytic, e.numeric)) return *cause;
  if (const auto cause = factor(e.analytic, e.numeric, e)) return *cause;
  // Some entries may be correct, while the rest shows a pattern.
  const Values a = only(e.analytic, e.wrong), n = only(e.numeric, e.wrong);
  const bool partly = a.size() < e.analytic.size() && !a.empty();
  const std::string where = e.complete() ? place(e) : std::string("at the wrong entries: ");
  if (partly && largest(a) == 0) return where + "zero gradient";
  if (e.complete()) {
    if (const auto cause = exchanged(e)) return *cause;
    if (!partly) {
      if (const auto cause = missing_term(e)) return *cause;
      if (const auto cause = statistic_of_each_line(e)) return *cause;
    }
  }
  if (const auto cause = precision(e.analytic, e.numeric)) return *cause;
  if (e.complete()) {
    for (const auto& look :
         {transposed, summed_too_much, factor_of_each_entry, missing_term, product_rule}) {
      if (const auto cause = look(e)) return *cause;
    }
    if (const auto cause = part_of_the_outputs(e)) return partly ? where + *cause : *cause;
    if (const auto cause = rearranged(e)) return *cause;
  }
  if (!partly) return {};
  if (const auto cause = sign(a, n)) return where + *cause;
  if (const auto cause = factor(a, n, e)) return where + *cause;
  return e.complete() && where != "at the wrong entries: " ? where + "the rest is correct"
                                                           : std::string();
}

HEED_END
