// Ops on rows (softmax, norms, selection by index), embedding and dropout.
#include <limits>

#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace op_table_rows {

using Inputs = std::vector<Tensor>;
using Ids = std::vector<std::int32_t>;
constexpr real inf = std::numeric_limits<real>::infinity();

const std::vector<Shape> shapes = {{},     {1},    {0},    {7},       {37},        {3, 5},
                                   {3, 1}, {0, 3}, {3, 0}, {2, 3, 5}, {2, 1, 3, 4}};

struct Mask {
  const char* name;
  Shape x;
  Array values;
};
std::vector<Mask> masks() {
  return {
      {"causal", {4, 4}, causal_mask(4)},
      {"causal, for a batch", {2, 2, 3, 3}, causal_mask(3)},
      {"one row", {3, 4}, Array({4}, std::vector<real>{0, -inf, real(0.5), -1})},
      {"one column", {2, 3}, Array({2, 1}, std::vector<real>{0, -inf})},
      {"hides a whole row", {3, 2}, Array({3, 2}, std::vector<real>{0, 1, -inf, -inf, -inf, 0})},
      {"hides everything", {2, 3}, Array::scalar(-inf)},
      {"finite", {2, 5}, uniform({2, 5}).value()}};
}

OpRow softmax_row(const char* name, Tensor (*f)(const Tensor&, const Array&)) {
  OpRow row{name, {}};
  for (const Shape& shape : shapes) {
    row.cases.push_back(
        {shape.str(), {uniform(shape, -2, 2)}, [f](const Inputs& x) { return f(x[0], Array()); }});
  }
  for (const Mask& mask : masks()) {
    row.cases.push_back({fmt::format("mask {}", mask.name),
                         {uniform(mask.x, -2, 2)},
                         [f, values = mask.values](const Inputs& x) { return f(x[0], values); },
                         true});
  }
  row.cases.push_back(
      {"x f(x)", {uniform({2, 3})}, [f](const Inputs& x) { return mul(x[0], f(x[0], Array())); }});
  return row;
}

std::vector<OpRow> norm_rows() {
  // Finite differences need small curvature. In rows of one or two values, a large eps ensures it.
  constexpr real eps = real(0.1);
  OpRow layer{"layer_norm", {}}, rms{"rms_norm", {}};
  for (const Shape& shape : shapes) {
    const Shape width{shape.cols()};
    for (const bool with_gain : {true, false}) {
      for (const bool with_bias : {true, false}) {
        layer.cases.push_back(
            {fmt::format("{}{}{}", shape, with_gain ? " gain" : "", with_bias ? " bias" : ""),
             {uniform(shape, -2, 2), with_gain ? off_zero(width) : Tensor(),
              with_bias ? uniform(width) : Tensor()},
             [](const Inputs& x) { return layer_norm(x[0], x[1], x[2], eps); }});
      }
      rms.cases.push_back({fmt::format("{}{}", shape, with_gain ? " gain" : ""),
                           {uniform(shape, -2, 2), with_gain ? off_zero(width) : Tensor()},
                           [](const Inputs& x) { return rms_norm(x[0], x[1], eps); }});
    }
  }
  layer.cases.push_back({"default eps",
                         {uniform({3, 9}, 1, 4), uniform({9}), uniform({9})},
                         [](const Inputs& x) { return layer_norm(x[0], x[1], x[2]); }});
  rms.cases.push_back({"default eps", {uniform({3, 9}, 1, 4), uniform({9})}, [](const Inputs& x) {
                         return rms_norm(x[0], x[1]);
                       }});
  layer.cases.push_back({"gain is bias", {uniform({3, 9}), uniform({9})}, [](const Inputs& x) {
                           return layer_norm(x[0], x[1], x[1], eps);
                         }});
  layer.cases.push_back({"x is gain and bias", {uniform({9})}, [](const Inputs& x) {
                           return layer_norm(x[0], x[0], x[0], eps);
                         }});
  rms.cases.push_back(
      {"x is gain", {uniform({9})}, [](const Inputs& x) { return rms_norm(x[0], x[0], eps); }});
  OpRow batch{"batch_norm", {}};
  for (const Shape& shape : {Shape{1, 3}, {4, 1}, {0, 3}, {5, 4}}) {
    const Shape width{shape.cols()};
    batch.cases.push_back({shape.str(),
                           {uniform(shape, -2, 2), off_zero(width), uniform(width)},
                           [](const Inputs& x) { return batch_norm(x[0], x[1], x[2], eps); }});
    batch.cases.push_back(
        {fmt::format("{} with given statistics", shape),
         {uniform(shape, -2, 2), off_zero(width), uniform(width)},
         [moments = BatchMoments{uniform(width).value(), Array::full(width, 2), 0}](
             const Inputs& x) { return batch_norm(x[0], x[1], x[2], moments, eps); }});
  }
  return {layer, rms, batch};
}

OpRow embedding_row() {
  OpRow row{"embedding", {}};
  for (const real factor : {real(1), real(-2.5)}) {
    for (const Ids& ids : {Ids{3, 0, 3, 4, 3}, Ids{2}, Ids{}}) {
      for (const Shape& table : {Shape{5, 7}, Shape{5, 1}, Shape{5, 0}}) {
        row.cases.push_back(
            {fmt::format("{} [{}] x {}", table, fmt::join(ids, " "), factor),
             {uniform(table)},
             [ids, factor](const Inputs& x) { return embedding(x[0], ids, factor); }});
      }
    }
  }
  row.cases.push_back({"tied to the output", {uniform({5, 3})}, [](const Inputs& x) {
                         return affine(embedding(x[0], Ids{1, 4, 1}), x[0]);
                       }});
  return row;
}

std::vector<OpRow> index_rows() {
  OpRow select{"index_select", {}}, scatter{"scatter_add", {}}, gathered{"gather", {}};
  for (const Shape& entry : {Shape{}, Shape{1}, Shape{7}, Shape{0}, Shape{2, 3}}) {
    const auto with_rows = [&](std::int64_t n) {
      Shape shape{n};
      for (const std::int64_t extent : entry.extents()) shape.push_back(extent);
      return shape;
    };
    for (const Ids& ids : {Ids{3, 0, 3, 4, 3}, Ids{2}, Ids{}}) {
      const std::string name = fmt::format("{} [{}]", entry, fmt::join(ids, " "));
      select.cases.push_back({name, {uniform(with_rows(5))}, [ids](const Inputs& x) {
                                return index_select(x[0], ids);
                              }});
      scatter.cases.push_back({name,
                               {uniform(with_rows(static_cast<std::int64_t>(ids.size())))},
                               [ids](const Inputs& x) { return scatter_add(x[0], ids, 5); }});
    }
  }
  select.cases.push_back({"x times rows selected from x", {uniform({4, 2})}, [](const Inputs& x) {
                            return mul(x[0], index_select(x[0], Ids{3, 3, 0, 1}));
                          }});
  struct Case {
    Shape x;
    Ids ids;
  };
  for (const Case& c : {Case{{5}, {4, 0, 4}}, Case{{5}, {}}, Case{{3, 4}, {0, 1, 3, 3, 2, 2}},
                        Case{{2, 1, 3}, {2, 0}}, Case{{3, 1}, {0, 0, 0}}, Case{{0, 4}, {}}}) {
    gathered.cases.push_back({fmt::format("{} [{}]", c.x, fmt::join(c.ids, " ")),
                              {uniform(c.x)},
                              [ids = c.ids](const Inputs& x) { return gather(x[0], ids); }});
  }
  return {select, scatter, gathered};
}

std::vector<OpRow> dropout_rows() {
  OpRow plain{"dropout", {}}, fused{"dropout_add", {}};
  const RandomKey key{.seed = 3, .stream = Stream::dropout, .index = 5, .part = 1};
  for (const real p : {real(0), real(0.1), real(0.9)}) {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{1}, Shape{37}, Shape{300}, Shape{2, 3, 5}}) {
      const std::string name = fmt::format("{} p = {}", shape, p);
      plain.cases.push_back(
          {name, {uniform(shape)}, [p, key](const Inputs& x) { return dropout(x[0], p, key); }});
      fused.cases.push_back({name, {uniform(shape), uniform(shape)}, [p, key](const Inputs& x) {
                               return dropout_add(x[0], x[1], p, key);
                             }});
    }
    fused.cases.push_back({fmt::format("x x p = {}", p), {uniform({9})}, [p, key](const Inputs& x) {
                             return dropout_add(x[0], x[0], p, key);
                           }});
  }
  return {plain, fused};
}

}  // namespace op_table_rows

std::vector<OpRow> row_op_rows() {
  using namespace op_table_rows;
  std::vector<OpRow> rows{softmax_row("softmax", softmax), softmax_row("log_softmax", log_softmax),
                          embedding_row()};
  for (OpRow& row : index_rows()) rows.push_back(std::move(row));
  for (OpRow& row : norm_rows()) rows.push_back(std::move(row));
  for (OpRow& row : dropout_rows()) rows.push_back(std::move(row));
  return rows;
}

HEED_END
