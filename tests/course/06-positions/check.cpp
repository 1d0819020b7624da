// The check of chapter 6: the sinusoidal encoding, its shift matrix, and rotary in both directions.
#include <numbers>

#include "autograd/ops/more/attention/rotary.h"
#include "check.h"
#include "exercise.h"
#include "nn/reference/transformer.h"

using namespace heed;
using namespace heed::course;

namespace {

double theta(double i, std::int64_t d, double base = 10000) {
  return std::pow(base, -2 * i / static_cast<double>(d));
}

/// The array [rows, d] with entries f(p, c).
template <class F>
Array filled(std::int64_t rows, std::int64_t d, const F& f) {
  Array y({rows, d});
  for (std::int64_t p = 0; p < rows; ++p)
    for (std::int64_t c = 0; c < d; ++c) y.row(p)[c] = f(p, c);
  return y;
}

// ---- the encoding -------------------------------------------------------------------------------

void frequencies(Draw& draw) {
  const std::int64_t d = draw.extent(8, 4, 8) * 2;
  for (std::int64_t i = 0; i < d / 2; ++i) {
    const double value = chapter6::frequency(i, d), x = static_cast<double>(i), right = theta(x, d);
    std::string cause;
    if (i > 0) {
      const double base = std::pow(value, -static_cast<double>(d) / (2 * x));
      if (std::abs(base - std::round(base)) < 1e-6)
        cause = fmt::format(": the base is {:.0f} instead of 10000", base);
    }
    if (close(value, 1, exact)) cause = ": 2i/d is computed as a quotient of integers, which is 0";
    if (close(value, 1 / right, exact))
      cause = ": this is 10000^(2i/d), the divisor of the position instead of its reciprocal";
    if (close(value, theta(x / 2, d), exact))
      cause = ": the exponent is −i/d; i numbers pairs, so it is −2i/d";
    if (close(value, theta(2 * x, d), exact))
      cause = ": the exponent is −4i/d; i numbers pairs, so it is −2i/d";
    if (close(value, 2 * std::numbers::pi / right, exact)) cause = ": this is the wavelength";
    if (std::abs(value / right - 1) < 1e-5)
      cause = ": this was rounded to float; compute in double";
    require(
        close(value, right, 1e-14) && std::abs(value / right - 1) < 1e-9,
        fmt::format("frequency({}, {}) is {:.12g}, expected {:.12g}{}", i, d, value, right, cause));
  }
}

/// The encodings of known mistakes.
std::vector<Mistake> wrong_encodings(std::int64_t rows, std::int64_t d) {
  const auto of = [&](const auto& angle) {
    return filled(rows, d, [&](std::int64_t p, std::int64_t c) {
      const double a = angle(static_cast<double>(p), static_cast<double>(c));
      return c % 2 == 0 ? std::sin(a) : std::cos(a);
    });
  };
  const double half = static_cast<double>(d / 2);
  return {
      {"the sines fill the first half of a row and the cosines the second; here they alternate",
       filled(rows, d,
              [&](std::int64_t p, std::int64_t c) {
                const double x = static_cast<double>(c), i = x < half ? x : x - half;
                const double a = static_cast<double>(p) * theta(i, d);
                return x < half ? std::sin(a) : std::cos(a);
              })},
      {"sine and cosine are exchanged: even columns have the sine",
       filled(rows, d,
              [&](std::int64_t p, std::int64_t c) {
                const double a = static_cast<double>(p) * theta(static_cast<double>(c / 2), d);
                return c % 2 == 0 ? std::cos(a) : std::sin(a);
              })},
      {"sine and cosine of a pair have different frequencies: i is c / 2 without its fraction",
       of([&](double p, double c) { return p * theta(c / 2, d); })},
      {"the column is used as the number of its pair: column c belongs to pair c / 2",
       of([&](double p, double c) { return p * theta(c, d); })},
      {"the positions begin with 1; the first row has position 0",
       of([&](double p, double c) { return (p + 1) * theta(std::floor(c / 2), d); })},
      {"the position is divided by θ_i instead of multiplied by it",
       of([&](double p, double c) { return p / theta(std::floor(c / 2), d); })},
      {"the angle is in turns; sin and cos expect p θ_i in radians", of([&](double p, double c) {
         return 2 * std::numbers::pi * p * theta(std::floor(c / 2), d);
       })},
      {"every column is a sine: odd columns have the cosine",
       filled(rows, d, [&](std::int64_t p, std::int64_t c) {
         return std::sin(static_cast<double>(p) * theta(static_cast<double>(c / 2), d));
       })}};
}

void encoding(Draw& draw) {
  const std::int64_t rows = draw.extent(7, 4, 9), d = 2 * draw.extent(4, 3, 7);
  require_same(fmt::format("positional_encoding({}, {})", rows, d),
               chapter6::positional_encoding(rows, d), reference::positional_encoding(rows, d),
               wrong_encodings(rows, d));
}

void encoding_of_odd_width(Draw& draw) {
  const std::int64_t rows = draw.extent(6, 4, 9), d = 2 * draw.extent(2, 1, 4) + 1;
  const Array pe = chapter6::positional_encoding(rows, d);
  std::vector<Mistake> mistakes = wrong_encodings(rows, d);
  mistakes.push_back({"the last column is missing: an odd d ends with the sine of pair (d − 1) / 2",
                      filled(rows, d, [&](std::int64_t p, std::int64_t c) {
                        return c + 1 == d ? 0 : reference::positional_encoding(rows, d).row(p)[c];
                      })});
  require_same(fmt::format("positional_encoding({}, {}), of odd width,", rows, d), pe,
               reference::positional_encoding(rows, d), mistakes);
}

// ---- the shift ----------------------------------------------------------------------------------

/// A matrix with the block (a, b; c, e) of pair i on its diagonal.
template <class F>
Array of_blocks(std::int64_t d, const F& block) {
  Array m = Array::zeros({d, d});
  for (std::int64_t i = 0; i < d / 2; ++i) {
    const std::array<double, 4> b = block(static_cast<double>(i));
    m.row(2 * i)[2 * i] = b[0], m.row(2 * i)[2 * i + 1] = b[1];
    m.row(2 * i + 1)[2 * i] = b[2], m.row(2 * i + 1)[2 * i + 1] = b[3];
  }
  return m;
}

void shift(Draw& draw) {
  const std::int64_t k = draw.extent(3, 2, 40), d = 2 * draw.extent(4, 3, 6);
  const auto turn = [&](double sign, const auto& angle) {
    return of_blocks(d, [&](double i) {
      const double c = std::cos(angle(i)), s = sign * std::sin(angle(i));
      return std::array{c, s, -s, c};
    });
  };
  const double shift_of = static_cast<double>(k);
  const auto right = [&](double i) { return shift_of * theta(i, d); };
  require_same(
      fmt::format("shift_matrix({}, {})", k, d), chapter6::shift_matrix(k, d), turn(1, right),
      {{"this is its transpose, M_−k, which shifts backward: sin comes first in PE, so the sign of "
        "the sine differs from that of rotary",
        turn(-1, right)},
       {"every pair turns by k instead of k θ_i", turn(1, [&](double) { return shift_of; })},
       {"every pair turns by θ_i instead of k θ_i", turn(1, [&](double i) { return theta(i, d); })},
       {"both sines have the same sign, so this is no rotation",
        of_blocks(d,
                  [&](double i) {
                    const double c = std::cos(right(i)), s = std::sin(right(i));
                    return std::array{c, s, s, c};
                  })},
       {"it contains the cosines alone: the sine of p + k needs the cosine of p, too",
        of_blocks(d,
                  [&](double i) {
                    return std::array{std::cos(right(i)), 0.0, 0.0, std::cos(right(i))};
                  })},
       {"the pairs are columns i and i + d/2; those of PE are 2i and 2i + 1",
        filled(d, d, [&](std::int64_t a, std::int64_t b) {
          const std::int64_t half = d / 2;
          const double angle = right(static_cast<double>(a % half));
          if (a == b) return std::cos(angle);
          if (a % half != b % half) return 0.0;
          return a < b ? std::sin(angle) : -std::sin(angle);
        })}});
}

void shifted_encodings(Draw& draw) {
  const std::int64_t rows = 60, d = 2 * draw.extent(5, 2, 8);
  const Array pe = reference::positional_encoding(rows, d);
  for (const std::int64_t k :
       {std::int64_t{0}, std::int64_t{1}, draw.extent(-7, -9, -2), draw.extent(25, 2, 29)}) {
    const Array m = chapter6::shift_matrix(k, d);
    for (const std::int64_t p : {std::int64_t{9}, draw.extent(30, 10, 30)})
      require_same(
          fmt::format("shift_matrix({}, {}) PE({})", k, d, p),
          matmul(pe.sliced(p, p + 1), m, false, true).value(), pe.sliced(p + k, p + k + 1),
          {{"the sign of k has no effect",
            pe.sliced(std::max(p - k, std::int64_t{0}), std::max(p - k, std::int64_t{0}) + 1)},
           {"this is the encoding of the position itself", pe.sliced(p, p + 1)}});
  }
}

void shifts_compose(Draw& draw) {
  const std::int64_t d = 2 * draw.extent(3, 2, 6), j = draw.extent(4, 1, 9),
                     k = draw.extent(11, 1, 30);
  const Array both = matmul(chapter6::shift_matrix(j, d), chapter6::shift_matrix(k, d)).value();
  require_same(fmt::format("M_{} M_{}, a shift after a shift,", j, k), both,
               chapter6::shift_matrix(j + k, d));
  require_same(fmt::format("M_−{}, the shift backward,", k), chapter6::shift_matrix(-k, d),
               transpose(chapter6::shift_matrix(k, d)).value());
}

void inner_products(Draw& draw) {
  const std::int64_t d = 2 * draw.extent(6, 2, 9);
  const Array pe = reference::positional_encoding(50, d);
  const Array products = matmul(pe, pe, false, true).value();
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, draw.extent(20, 2, 30)}) {
    const double value = chapter6::inner_product(k, d), right = products.row(4)[4 + k];
    std::string cause;
    if (close(value, 2 * right / static_cast<double>(d), exact))
      cause =
          ": this is the mean over the pairs, i.e. divided by d/2; the inner product is the sum";
    if (close(value, 2 * right, exact)) cause = ": a pair counts once, since sin² + cos² = 1";
    require(close(value, right, exact),
            fmt::format("inner_product({}, {}) is {:.12g}, but ⟨PE(4), PE({})⟩ is {:.12g}{}", k, d,
                        value, 4 + k, right, cause));
  }
  require_close(fmt::format("inner_product(-3, {}), for a shift backward,", d),
                chapter6::inner_product(-3, d), products.row(4)[1]);
}

// ---- rotary -------------------------------------------------------------------------------------

Array reference_rotary(const Array& x, std::int64_t first,
                       RotaryPairs pairs = RotaryPairs::adjacent) {
  std::vector<std::int32_t> positions;
  for (std::int64_t r = 0; r < x.rows(); ++r)
    positions.push_back(static_cast<std::int32_t>(first + r));
  return heed::rotary(x, positions, {.size = x.cols(), .columns = x.cols(), .pairs = pairs})
      .value();
}

/// x with the pairs (a, b) of each row replaced by those of f(a, b, angle).
template <class Angle, class F>
Array with_pairs(const Array& x, const Angle& angle, const F& f) {
  Array y(x.shape());
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t i = 0; i < x.cols() / 2; ++i) {
      const std::array<double, 2> pair = f(x.row(r)[2 * i], x.row(r)[2 * i + 1],
                                           angle(static_cast<double>(r), static_cast<double>(i)));
      y.row(r)[2 * i] = pair[0], y.row(r)[2 * i + 1] = pair[1];
    }
  }
  return y;
}

/// The rotations of known mistakes; `sign` is −1 for a gradient.
std::vector<Mistake> wrong_rotations(const Array& x, std::int64_t first, double sign) {
  const auto turn = [](double a, double b, double t) {
    return std::array{a * std::cos(t) - b * std::sin(t), a * std::sin(t) + b * std::cos(t)};
  };
  const std::int64_t d = x.cols();
  const double from = static_cast<double>(first);
  const auto right = [&](double r, double i) { return sign * (from + r) * theta(i, d); };
  std::vector<Mistake> known{
      {sign > 0 ? "the pairs turn by −p θ_i instead of p θ_i"
                : "backward turns by p θ_i like forward; the transpose of a rotation turns back",
       with_pairs(
           x, [&](double r, double i) { return -right(r, i); }, turn)},
      {"every pair turns by p instead of p θ_i",
       with_pairs(
           x, [&](double r, double) { return sign * (from + r); }, turn)},
      {"the second of a pair is computed from the new first: save both before you write",
       with_pairs(x, right,
                  [&](double a, double b, double t) {
                    const double y = turn(a, b, t)[0];
                    return std::array{y, y * std::sin(t) + b * std::cos(t)};
                  })},
      {"the cosine and the sine are exchanged", with_pairs(x, right,
                                                           [](double a, double b, double t) {
                                                             return std::array{
                                                                 a * std::sin(t) - b * std::cos(t),
                                                                 a * std::cos(t) + b * std::sin(t)};
                                                           })},
      {"both sines have the same sign, so this is no rotation",
       with_pairs(x, right,
                  [](double a, double b, double t) {
                    return std::array{a * std::cos(t) + b * std::sin(t),
                                      a * std::sin(t) + b * std::cos(t)};
                  })},
      {"each column is multiplied by its cosine alone",
       with_pairs(x, right,
                  [](double a, double b, double t) {
                    return std::array{a * std::cos(t), b * std::cos(t)};
                  })},
      {"the rows are not rotated: row r has position first + r", x},
      {"this is zero: nothing is written or added", Array::zeros(x.shape())}};
  if (first != 0) {
    known.push_back({"every row has the position of the first",
                     with_pairs(
                         x, [&](double, double i) { return sign * from * theta(i, d); }, turn)});
    known.push_back({"the first row has position 0, although `first` is another",
                     with_pairs(
                         x, [&](double r, double i) { return sign * r * theta(i, d); }, turn)});
  }
  if (sign > 0) {
    known.push_back(
        {"the pairs are columns i and i + d/2 (as in GPT-NeoX); here they are 2i and 2i + 1",
         reference_rotary(x, first, RotaryPairs::halves)});
    Array pe = reference::positional_encoding(first + x.rows(), d);
    pe = pe.sliced(first, first + x.rows());
    known.push_back({"the encoding is added; rotary turns the row", add(x, pe).value()});
    known.push_back(
        {"the row is multiplied by the encoding; rotary turns the row", mul(x, pe).value()});
  }
  return known;
}

void rotations(Draw& draw) {
  const Array x = draw.normal({draw.extent(5, 3, 7), 2 * draw.extent(4, 3, 6)});
  for (const std::int64_t first : {std::int64_t{0}, draw.extent(11, 2, 50)})
    require_same(fmt::format("rotary(x, {})", first), chapter6::rotary(x, first).value(),
                 reference_rotary(x, first), wrong_rotations(x, first, 1));
}

void cotangents(Draw& draw) {
  const Array x = draw.normal({draw.extent(4, 3, 5), 2 * draw.extent(3, 2, 4)});
  const Array dy = draw.normal(x.shape());
  const std::int64_t first = draw.extent(5, 2, 50);
  const Tensor variable = Tensor::variable(x.clone());
  const Array dx = backward(chapter6::rotary(variable, first), dy)[variable];
  Array right = Array::zeros(x.shape());  // the transpose, by the rotation of each unit vector
  for (std::int64_t c = 0; c < x.cols(); ++c) {
    const Array unit = filled(x.rows(), x.cols(),
                              [&](std::int64_t, std::int64_t j) { return j == c ? 1.0 : 0.0; });
    const Array column = reference_rotary(unit, first);
    for (std::int64_t r = 0; r < x.rows(); ++r)
      for (std::int64_t j = 0; j < x.cols(); ++j)
        right.row(r)[c] += column.row(r)[j] * dy.row(r)[j];
  }
  require_same(fmt::format("the gradient of rotary(x, {})", first), dx, right,
               wrong_rotations(dy, first, -1));
}

void gradients(Draw& draw) {
  const std::int64_t first = draw.extent(3, 1, 9);
  require_gradients(
      {"x"}, [&](const Tensor& x) { return chapter6::rotary(x, first); },
      draw.normal({draw.extent(4, 2, 5), 2 * draw.extent(2, 2, 4)}));
}

void relative_scores(Draw& draw) {
  const std::int64_t n = draw.extent(5, 3, 7), d = 2 * draw.extent(4, 2, 6),
                     far = draw.extent(90, 20, 300);
  const Array q = draw.normal({n, d}), k = draw.normal({n, d});
  const auto scores = [&](std::int64_t first) {
    return matmul(chapter6::rotary(q, first), chapter6::rotary(k, first), false, true).value();
  };
  require_same(
      fmt::format("the scores of rows that begin at position {}, compared with position 0,", far),
      scores(far), scores(0), {}, 1e-10);
}

Array reversed(const Array& x) {
  return filled(x.rows(), x.cols(),
                [&](std::int64_t r, std::int64_t c) { return x.row(x.rows() - 1 - r)[c]; });
}

void order(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 7), d = 8;
  const Array x = draw.normal({n, d}), pe = chapter6::positional_encoding(n, d);
  const auto attended = [&](const Array& rows, bool encoded) {
    const Tensor r = encoded ? add(rows, pe) : Tensor(rows);
    return attention(r, r, r).output.value();
  };
  require(close(attended(reversed(x), false), reversed(attended(x, false)), 1e-10),
          "attention without positions is not equivariant");
  require(!close(attended(reversed(x), true), reversed(attended(x, true)), 1e-3),
          "with your encoding added, attention still does not see the order of the rows");
}

void extents(Draw&) {
  require_same("positional_encoding(1, 2)", chapter6::positional_encoding(1, 2), Array({{0, 1}}));
  require_same("positional_encoding(1, 1)", chapter6::positional_encoding(1, 1), Array({{0}}));
  require_same("positional_encoding(0, 4)", chapter6::positional_encoding(0, 4), Array({0, 4}));
  require_same("shift_matrix(0, 2)", chapter6::shift_matrix(0, 2), Array({{1, 0}, {0, 1}}));
  require_same("rotary of no rows", chapter6::rotary(Array({0, 4})).value(), Array({0, 4}));
  require_same("rotary of rows of width 0", chapter6::rotary(Array({3, 0})).value(), Array({3, 0}));
  require_same("rotary of the row at position 0", chapter6::rotary(Array({{2, 3}})).value(),
               Array({{2, 3}}));
}

void in_time(Draw& draw) {
  const Array x = draw.normal({400, 64});
  require_within("the encoding and the rotation of 400 rows of width 64", 0.3, [&] {
    chapter6::positional_encoding(400, 64);
    chapter6::rotary(x);
  });
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "frequencies", frequencies},
    {"values", "encoding", encoding},
    {"values", "encoding of odd width", encoding_of_odd_width},
    {"values", "shift matrix", shift},
    {"values", "inner products of encodings", inner_products},
    {"values", "rotary", rotations},
    {"gradients", "rotary, against the transpose", cotangents},
    {"gradients", "rotary", gradients},
    {"properties", "the shift matrix shifts every position", shifted_encodings},
    {"properties", "shifts compose", shifts_compose},
    {"properties", "scores depend on the distance alone", relative_scores},
    {"properties", "attention sees the order", order},
    {"properties", "extents 0 and 1", extents},
    {"budgets", "400 positions", in_time},
})
