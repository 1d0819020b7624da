// Elementwise ops (arithmetic with broadcasting, functions of one value), reductions and cumsum.
#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace op_table_arithmetic {

using Inputs = std::vector<Tensor>;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// Shapes of rank 0 to 4 with odd sizes, sizes 1 and 0, and more values than fit in a vector
/// register.
const std::vector<Shape> shapes = {{},     {1},       {0},       {7},          {37},
                                   {3, 5}, {2, 0, 3}, {2, 3, 5}, {1, 1, 1, 1}, {2, 1, 3, 5}};

struct Pair {
  Shape a, b;
};
const std::vector<Pair> broadcasts = {
    {{}, {}},    // scalars
    {{1}, {}},   // different ranks
    {{7}, {7}},  // equal shapes
    {{3, 5}, {3, 5}},
    {{3, 5}, {5}},  // a row, combined with every row
    {{5}, {3, 5}},
    {{3, 5}, {3, 1}},  // a column, combined with every column
    {{3, 1}, {3, 5}},
    {{3, 5}, {}},  // one scalar
    {{}, {3, 5}},
    {{3, 1}, {1, 5}},  // a row and a column
    {{4, 1, 3}, {5, 1}},
    {{2, 3, 1, 5}, {3, 4, 1}},
    {{2, 3, 4, 5}, {1, 3, 1, 5}},  // broadcast along every other axis
    {{1, 3, 1, 5}, {2, 3, 4, 5}},
    {{2, 1, 1, 5}, {2, 3, 4, 5}},  // broadcast along two adjacent axes
    {{1, 1, 1}, {2, 3, 2}},
    {{0}, {1}},  // no values
    {{0, 3}, {3}},
    {{2, 1}, {2, 0}},
};

OpRow binary_row(const char* name, Binary f) {
  OpRow row{name, {}};
  for (const Pair& pair : broadcasts) {
    row.cases.push_back({fmt::format("{} {}", pair.a, pair.b),
                         {uniform(pair.a), off_zero(pair.b)},
                         [f](const Inputs& x) { return f(x[0], x[1]); }});
  }
  row.cases.push_back({"x x", {off_zero({3, 4})}, [f](const Inputs& x) { return f(x[0], x[0]); }});
  row.cases.push_back({"x with a row of x", {off_zero({3, 4})}, [f](const Inputs& x) {
                         return f(x[0], slice(x[0], 0, 1, 2));
                       }});
  return row;
}

OpRow unary_row(const char* name, Unary f, Tensor (*values)(const Shape&)) {
  OpRow row{name, {}};
  for (const Shape& shape : shapes) {
    row.cases.push_back({shape.str(), {values(shape)}, [f](const Inputs& x) { return f(x[0]); }});
  }
  return row;
}

Tensor wide(const Shape& shape) { return uniform(shape, -4, 4); }
Tensor positive(const Shape& shape) { return uniform(shape, real(0.3), 3); }

OpRow reduce_row(const char* name, Tensor (*f)(const Tensor&, int, bool), bool of_nothing) {
  OpRow row{name, {}};
  for (const Shape& shape : shapes) {
    for (const bool keep : {false, true}) {
      const char* suffix = keep ? " kept" : "";
      if (of_nothing || shape.size() > 0) {
        row.cases.push_back({fmt::format("{} all{}", shape, suffix),
                             {uniform(shape)},
                             [f, keep](const Inputs& x) { return f(x[0], all_axes, keep); }});
      }
      for (int axis = -shape.rank(); axis < shape.rank(); ++axis) {
        if (!of_nothing && shape[axis] == 0) continue;
        row.cases.push_back({fmt::format("{} axis {}{}", shape, axis, suffix),
                             {uniform(shape)},
                             [f, axis, keep](const Inputs& x) { return f(x[0], axis, keep); }});
      }
    }
  }
  return row;
}

OpRow where_row() {
  OpRow row{"where", {}};
  struct Case {
    Shape condition, a, b;
  };
  for (const Case& c : {Case{{}, {}, {}}, Case{{7}, {7}, {7}}, Case{{3, 5}, {5}, {3, 1}},
                        Case{{5}, {3, 5}, {}}, Case{{3, 1}, {}, {1, 5}}, Case{{0}, {0}, {1}}}) {
    Array condition = uniform(c.condition).value();
    for (real& x : condition.values()) x = x > 0 ? real(1) : real(0);
    row.cases.push_back({fmt::format("{} {} {}", c.condition, c.a, c.b),
                         {uniform(c.a), uniform(c.b)},
                         [condition](const Inputs& x) { return where(condition, x[0], x[1]); }});
  }
  row.cases.push_back({"x x", {uniform({4})}, [](const Inputs& x) {
                         return where(Array::of({1, 0, 0, 1}), x[0], x[0]);
                       }});
  return row;
}

OpRow pow_row() {
  OpRow row{"pow", {}};
  for (const real exponent : {real(0), real(1), real(2), real(2.5), real(-1.5)}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{2, 3, 5}}) {
      row.cases.push_back({fmt::format("{} ^ {}", shape, exponent),
                           {positive(shape)},
                           [exponent](const Inputs& x) { return pow(x[0], exponent); }});
    }
  }
  row.cases.push_back(
      {"a negative base", {off_zero({7})}, [](const Inputs& x) { return pow(x[0], 3); }});
  return row;
}

OpRow gated_row() {
  OpRow row{"gated", {}};
  for (const UnaryFunction f :
       {UnaryFunction::sigmoid, UnaryFunction::silu, UnaryFunction::gelu, UnaryFunction::tanh}) {
    for (const Shape& shape : {Shape{0}, Shape{2}, Shape{3, 14}, Shape{0, 4}, Shape{2, 3, 6}}) {
      row.cases.push_back({fmt::format("{} {}", name_of(f), shape),
                           {uniform(shape)},
                           [f](const Inputs& x) { return gated(f, x[0]); }});
    }
  }
  return row;
}

Tensor clamp_half(const Tensor& x) { return clamp(x, real(-0.5), real(0.75)); }

OpRow cumsum_row() {
  OpRow row{"cumsum", {}};
  for (const Shape& shape : shapes) {
    for (int axis = -shape.rank(); axis < shape.rank(); ++axis) {
      row.cases.push_back({fmt::format("{} axis {}", shape, axis),
                           {uniform(shape)},
                           [axis](const Inputs& x) { return cumsum(x[0], axis); }});
    }
  }
  return row;
}

}  // namespace op_table_arithmetic

std::vector<OpRow> arithmetic_rows() {
  using namespace op_table_arithmetic;
  OpRow scale_row{"scale", {}};
  for (const real factor : {real(-1.5), real(1), real(0)}) {
    for (const Shape& shape : shapes) {
      scale_row.cases.push_back({fmt::format("{} {}", shape, factor),
                                 {uniform(shape)},
                                 [factor](const Inputs& x) { return scale(x[0], factor); }});
    }
  }
  return {binary_row("add", add),
          binary_row("sub", sub),
          binary_row("mul", mul),
          binary_row("div", div),
          scale_row,
          unary_row("neg", neg, wide),
          unary_row("exp", exp, wide),
          unary_row("log", log, positive),
          unary_row("sqrt", sqrt, positive),
          unary_row("tanh", tanh, wide),
          unary_row("relu", relu, off_zero),
          unary_row("gelu", gelu, wide),
          unary_row("gelu_tanh", gelu_tanh, wide),
          unary_row("sigmoid", sigmoid, wide),
          unary_row("silu", silu, wide),
          reduce_row("sum", sum, true),
          reduce_row("mean", mean, false),
          reduce_row("max", max, false),
          reduce_row("min", min, false),
          reduce_row("log_sum_exp", log_sum_exp, false),
          cumsum_row(),
          binary_row("maximum", maximum),
          binary_row("minimum", minimum),
          where_row(),
          unary_row("softplus", softplus, wide),
          unary_row("abs", abs, off_zero),
          unary_row("sin", sin, wide),
          unary_row("cos", cos, wide),
          pow_row(),
          gated_row(),
          unary_row("clamp", clamp_half, wide)};
}

HEED_END
