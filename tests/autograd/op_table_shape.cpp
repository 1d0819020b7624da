// Ops that rearrange values, and matrix products.
#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace op_table_shape {

using Inputs = std::vector<Tensor>;

OpRow reshape_row() {
  OpRow row{"reshape", {}};
  const std::vector<std::pair<Shape, Shape>> cases = {
      {{}, {1, 1}},     {{1}, {}},        {{2, 3}, {6}},         {{6}, {1, 2, 3}},
      {{2, 3}, {2, 3}}, {{0, 3}, {5, 0}}, {{2, 3, 1, 5}, {6, 5}}};
  for (const auto& [from, to] : cases) {
    row.cases.push_back({fmt::format("{} {}", from, to),
                         {uniform(from)},
                         [to = to](const Inputs& x) { return reshape(x[0], to); }});
  }
  return row;
}

OpRow transpose_row() {
  OpRow row{"transpose", {}};
  for (const Shape& shape :
       {Shape{4}, Shape{3, 5}, Shape{1, 5}, Shape{5, 1}, Shape{17, 19}, Shape{0, 3}, Shape{2, 3, 5},
        Shape{2, 1, 5}, Shape{2, 0, 3}, Shape{2, 3, 4, 5}, Shape{2, 1, 3, 1}}) {
    for (int a = 0; a < shape.rank(); ++a) {
      for (int b = a; b < shape.rank(); ++b) {
        row.cases.push_back({fmt::format("{} {} {}", shape, a, b),
                             {uniform(shape)},
                             [a, b](const Inputs& x) { return transpose(x[0], a, b); }});
      }
    }
  }
  row.cases.push_back(
      {"last two axes", {uniform({2, 3, 5})}, [](const Inputs& x) { return transpose(x[0]); }});
  row.cases.push_back({"last and first axis", {uniform({2, 3, 5})}, [](const Inputs& x) {
                         return transpose(x[0], -1, 0);
                       }});
  row.cases.push_back({"x and its transpose", {uniform({3, 3})}, [](const Inputs& x) {
                         return mul(x[0], transpose(x[0]));
                       }});
  return row;
}

OpRow slice_row() {
  OpRow row{"slice", {}};
  struct Case {
    Shape shape;
    int axis;
    std::int64_t begin, end;
  };
  for (const Case& c :
       {Case{{7}, 0, 2, 5}, Case{{7}, 0, 0, 7}, Case{{7}, -1, 3, 3}, Case{{0}, 0, 0, 0},
        Case{{1}, 0, 0, 1}, Case{{3, 5}, 0, 1, 2}, Case{{3, 5}, 1, 1, 4}, Case{{1, 5}, 1, 1, 4},
        Case{{2, 3, 4}, 0, 1, 2}, Case{{2, 3, 4}, 1, 0, 2}, Case{{2, 3, 4}, -1, 3, 4},
        Case{{2, 0, 4}, 2, 1, 3}, Case{{2, 3, 4, 5}, 2, 1, 3}, Case{{2, 3, 4, 5}, 1, 2, 2}}) {
    row.cases.push_back({fmt::format("{} axis {} [{}, {})", c.shape, c.axis, c.begin, c.end),
                         {uniform(c.shape)},
                         [c](const Inputs& x) { return slice(x[0], c.axis, c.begin, c.end); }});
  }
  row.cases.push_back({"overlapping", {uniform({5, 2})}, [](const Inputs& x) {
                         return mul(slice(x[0], 0, 0, 3), slice(x[0], 0, 2, 5));
                       }});
  return row;
}

OpRow concat_row() {
  OpRow row{"concat", {}};
  const auto joined = [](int axis) { return [axis](const Inputs& x) { return concat(x, axis); }; };
  row.cases = {{"one part", {uniform({3, 2})}, joined(0)},
               {"vectors", {uniform({3}), uniform({1}), uniform({0})}, joined(0)},
               {"rows", {uniform({2, 3}), uniform({1, 3})}, joined(0)},
               {"columns", {uniform({2, 3}), uniform({2, 1}), uniform({2, 5})}, joined(-1)},
               {"middle axis", {uniform({2, 1, 3}), uniform({2, 4, 3})}, joined(1)},
               {"rank 4", {uniform({2, 3, 1, 2}), uniform({2, 3, 4, 2})}, joined(2)},
               {"without rows", {uniform({0, 3}), uniform({0, 3})}, joined(1)},
               {"x x",
                {uniform({2, 3})},
                [](const Inputs& x) {
                  return concat(Inputs{x[0], x[0]}, 1);
                }},
               {"x x x on axis 0", {uniform({2})}, [](const Inputs& x) {
                  return concat(Inputs{x[0], x[0], x[0]}, 0);
                }}};
  return row;
}

OpRow stack_row() {
  OpRow row{"stack", {}};
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{0}, Shape{2, 3}, Shape{2, 1, 3}}) {
    for (int axis = -shape.rank() - 1; axis <= shape.rank(); ++axis) {
      row.cases.push_back({fmt::format("{} axis {}", shape, axis),
                           {uniform(shape), uniform(shape), uniform(shape)},
                           [axis](const Inputs& x) { return stack(x, axis); }});
    }
  }
  row.cases.push_back({"one part", {uniform({3})}, [](const Inputs& x) { return stack(x); }});
  row.cases.push_back({"x x", {uniform({3})}, [](const Inputs& x) {
                         return stack({x[0], x[0]}, 1);
                       }});
  return row;
}

OpRow permute_row() {
  OpRow row{"permute", {}};
  struct Case {
    Shape shape;
    std::vector<int> axes;
  };
  for (const Case& c : {Case{{}, {}}, Case{{4}, {0}}, Case{{3, 5}, {0, 1}}, Case{{3, 5}, {1, 0}},
                        Case{{2, 3, 5}, {2, 0, 1}}, Case{{2, 3, 5}, {1, 2, 0}},
                        Case{{2, 3, 5}, {-1, 1, 0}}, Case{{2, 0, 5}, {2, 0, 1}},
                        Case{{2, 3, 4, 5}, {3, 1, 0, 2}}, Case{{2, 1, 3, 1}, {3, 2, 0, 1}}}) {
    row.cases.push_back({fmt::format("{} {}", c.shape, fmt::join(c.axes, " ")),
                         {uniform(c.shape)},
                         [axes = c.axes](const Inputs& x) { return permute(x[0], axes); }});
  }
  return row;
}

OpRow broadcast_row() {
  OpRow row{"broadcast_to", {}};
  struct Case {
    Shape from, to;
  };
  for (const Case& c :
       {Case{{}, {}}, Case{{}, {3}}, Case{{1}, {4}}, Case{{3}, {3}}, Case{{3}, {2, 3}},
        Case{{2, 1}, {2, 3}}, Case{{1, 3, 1}, {2, 3, 4}}, Case{{1}, {0}}}) {
    row.cases.push_back({fmt::format("{} {}", c.from, c.to),
                         {uniform(c.from)},
                         [to = c.to](const Inputs& x) { return broadcast_to(x[0], to); }});
  }
  return row;
}

OpRow einsum_row() {
  OpRow row{"einsum", {}};
  struct Case {
    const char* equation;
    std::vector<Shape> shapes;
  };
  for (const Case& c : std::vector<Case>{{"ij->ji", {{2, 3}}},
                                         {"ij->", {{2, 3}}},
                                         {"ijk->ik", {{2, 3, 4}}},
                                         {"i,i->", {{5}, {5}}},
                                         {"i,j->ij", {{2}, {3}}},
                                         {"ij,jk->ik", {{2, 3}, {3, 4}}},
                                         {"bij,bkj->bik", {{2, 3, 4}, {2, 5, 4}}},
                                         {"bhqd,bhkd->bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
                                         {"ij,kl->i", {{2, 3}, {4, 2}}},
                                         {"ij,jk,kl->li", {{2, 3}, {3, 2}, {2, 4}}},
                                         {"ij,jk,kl,li->", {{2, 3}, {3, 2}, {2, 4}, {4, 2}}},
                                         {"ij,ij->ij", {{2, 3}, {2, 3}}},
                                         {",i->i", {{}, {3}}},
                                         {"ij,jk->ik", {{2, 0}, {0, 3}}}}) {
    std::vector<Tensor> inputs;
    std::string name = c.equation;
    for (const Shape& shape : c.shapes) {
      inputs.push_back(uniform(shape));
      name += " " + shape.str();
    }
    row.cases.push_back({name, inputs, [c](const Inputs& x) { return einsum(c.equation, x); }});
  }
  row.cases.push_back({"x x", {uniform({3, 3})}, [](const Inputs& x) {
                         return einsum("ij,jk->ik", {x[0], x[0]});
                       }});
  return row;
}

OpRow matmul_row() {
  OpRow row{"matmul", {}};
  struct Case {
    Shape batch_a, batch_b;
    std::int64_t m, k, n;
  };
  for (const Case& c :
       {Case{{}, {}, 3, 5, 4}, Case{{}, {}, 1, 1, 1}, Case{{}, {}, 1, 7, 1}, Case{{}, {}, 5, 1, 3},
        Case{{}, {}, 0, 3, 2}, Case{{}, {}, 2, 0, 3}, Case{{}, {}, 2, 3, 0},
        Case{{3}, {3}, 2, 3, 4}, Case{{3}, {1}, 2, 0, 3}, Case{{3}, {}, 2, 3, 4},
        Case{{}, {3}, 2, 3, 4}, Case{{1}, {3}, 2, 3, 1}, Case{{0}, {1}, 2, 3, 4},
        Case{{2, 3}, {2, 3}, 2, 3, 1}, Case{{2, 1}, {3}, 3, 2, 2}, Case{{1, 3}, {2, 1}, 2, 2, 3}}) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        Shape a = c.batch_a, b = c.batch_b;
        a.push_back(trans_a ? c.k : c.m);
        a.push_back(trans_a ? c.m : c.k);
        b.push_back(trans_b ? c.n : c.k);
        b.push_back(trans_b ? c.k : c.n);
        row.cases.push_back(
            {fmt::format("{}{} {}{}", a, trans_a ? "T" : "", b, trans_b ? "T" : ""),
             {uniform(a), uniform(b)},
             [trans_a, trans_b](const Inputs& x) { return matmul(x[0], x[1], trans_a, trans_b); }});
      }
    }
  }
  row.cases.push_back(
      {"x x", {uniform({3, 3})}, [](const Inputs& x) { return matmul(x[0], x[0]); }});
  row.cases.push_back({"x xT", {uniform({2, 3, 4})}, [](const Inputs& x) {
                         return matmul(x[0], x[0], false, true);
                       }});
  row.cases.push_back(
      {"xT x", {uniform({3, 4})}, [](const Inputs& x) { return matmul(x[0], x[0], true, false); }});
  return row;
}

/// Cases of f(x, W, b) for y = x Wᵀ + b with `out` columns: several ranks of x, sizes 0 and 1, with
/// and without b. All values are in [low, high).
std::vector<OpCase> affine_cases(
    const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& f, std::int64_t out,
    real low, real high) {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{5}, Shape{1, 5}, Shape{3, 5}, Shape{2, 3, 5}, Shape{2, 1, 2, 1},
                             Shape{0, 5}, Shape{3, 0}}) {
    for (const bool with_bias : {true, false}) {
      cases.push_back({fmt::format("{}{}", shape, with_bias ? " + b" : ""),
                       {uniform(shape, low, high), uniform({out, shape[-1]}, low, high),
                        with_bias ? uniform({out}, low, high) : Tensor()},
                       [f](const Inputs& x) { return f(x[0], x[1], x[2]); }});
    }
  }
  cases.push_back({"x is the weight", {uniform({out, out}, low, high)}, [f](const Inputs& x) {
                     return f(x[0], x[0], Tensor());
                   }});
  return cases;
}

}  // namespace op_table_shape

std::vector<OpRow> shape_rows() {
  using namespace op_table_shape;
  return {reshape_row(), transpose_row(), slice_row(),    concat_row(),
          stack_row(),   permute_row(),   broadcast_row()};
}

std::vector<OpRow> matmul_rows() {
  using namespace op_table_shape;
  OpRow affine_row{"affine", affine_cases(affine, 3, -1, 1)};
  for (OpCase& c : affine_cases(affine, 1, -1, 1)) {
    c.name += " to 1";
    affine_row.cases.push_back(std::move(c));
  }
  OpRow rows_row{"affine_rows", {}};
  for (const auto& [begin, end] : {std::pair{0, 2}, {2, 5}, {0, 5}, {3, 3}}) {
    for (OpCase& c : affine_cases(
             [begin = begin, end = end](const Tensor&x, const Tensor&w, const Tensor&b) {
               return affine_rows(x, w, b, begin, end);
             },
             5, -1, 1)) {
      c.name += fmt::format(" rows [{}, {})", begin, end);
      rows_row.cases.push_back(std::move(c));
    }
  }
  rows_row.cases.push_back({"q and v of one matrix",
                            {uniform({3, 2}), uniform({6, 2}), uniform({6})},
                            [](const Inputs& x) {
                              return mul(affine_rows(x[0], x[1], x[2], 0, 2),
                                         affine_rows(x[0], x[1], x[2], 4, 6));
                            }});
  OpRow activation_row{"affine_activation", {}};
  for (std::size_t i = 0; i < unary_function_count; ++i) {
    const UnaryFunction f = static_cast<UnaryFunction>(i);
    const std::string_view name = name_of(f);
    const bool positive = f == UnaryFunction::log || f == UnaryFunction::sqrt;
    for (OpCase& c : affine_cases([f = f](const Tensor&x, const Tensor&w,
                                          const Tensor&b) { return affine_activation(f, x, w, b); },
                                  3, positive ? real(0.2) : real(-1), 1)) {
      const bool sum_of_nothing =
          positive && c.inputs[0].shape() == Shape{3, 0} && !c.inputs[2].defined();
      if (sum_of_nothing) continue;  // the result or its gradient would be infinite
      c.name = fmt::format("{} {}", name, c.name);
      activation_row.cases.push_back(std::move(c));
    }
    activation_row.cases.push_back(
        {fmt::format("{} with dropout", name),
         {uniform({5, 3}, real(0.3), 1), uniform({30, 3}, real(0.1), 1),
          uniform({30}, real(0.1), 1)},
         [f = f](const Inputs& x) {
           return affine_activation(f, x[0], x[1], x[2], real(0.3), {7, Stream::dropout, 1, 2});
         }});
  }
  return {matmul_row(), affine_row, rows_row, activation_row, einsum_row()};
}

HEED_END
