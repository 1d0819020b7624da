#pragma once
/// A reader and evaluator of ONNX graphs, written from the specifications of protobuf and of operator set 17
/// (onnx.ai). It shares no code with the export.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace heed::test {

/// A message of protobuf by the numbers of its fields, read independently of OnnxFile: integers as they
/// are, everything else as bytes.
struct Message {
  std::multimap<std::uint64_t, std::string> texts;
  std::multimap<std::uint64_t, std::uint64_t> integers;

  explicit Message(const std::string& bytes) {
    std::size_t at = 0;
    const auto varint = [&] {
      std::uint64_t value = 0;
      int shift = 0;
      while (static_cast<unsigned char>(bytes.at(at)) >= 128) {
        value += std::uint64_t{static_cast<unsigned char>(bytes[at++])} % 128 << shift;
        shift += 7;
      }
      return value + (std::uint64_t{static_cast<unsigned char>(bytes[at++])} << shift);
    };
    while (at < bytes.size()) {
      const std::uint64_t key = varint();
      if (key % 8 == 0) {
        integers.emplace(key / 8, varint());
      } else {
        const std::uint64_t size = key % 8 == 2 ? varint() : 4;
        BOOST_REQUIRE(at + size <= bytes.size());
        texts.emplace(key / 8, bytes.substr(at, size));
        at += size;
      }
    }
  }
  std::vector<std::string> all(std::uint64_t field) const {
    std::vector<std::string> found;
    for (auto [i, end] = texts.equal_range(field); i != end; ++i) found.push_back(i->second);
    return found;
  }
  std::vector<std::uint64_t> numbers(std::uint64_t field) const {
    std::vector<std::uint64_t> found;
    for (auto [i, end] = integers.equal_range(field); i != end; ++i) found.push_back(i->second);
    return found;
  }
  std::string text(std::uint64_t field) const { return all(field).at(0); }
};

using OnnxShape = std::vector<std::int64_t>;

/// An array of any type. Its elements are stored as double.
struct OnnxArray {
  OnnxShape shape;
  std::vector<double> values;

  static OnnxArray of(OnnxShape shape) {
    OnnxArray all{std::move(shape), {}};
    all.values.resize(static_cast<std::size_t>(all.count()));
    return all;
  }
  std::int64_t count() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t rank() const { return std::ssize(shape); }
  std::int64_t integer(std::int64_t i = 0) const {
    return static_cast<std::int64_t>(values.at(static_cast<std::size_t>(i)));
  }
  std::vector<std::int64_t> integers() const { return {values.begin(), values.end()}; }
  /// The position of the element at `index`. The index may have additional leading axes, and axes of
  /// extent 1 are broadcast.
  std::size_t place(const OnnxShape& index) const {
    std::int64_t at = 0;
    const std::size_t more = index.size() - shape.size();
    for (std::size_t i = 0; i < shape.size(); ++i)
      at = at * shape[i] + (shape[i] == 1 ? 0 : index[more + i]);
    return static_cast<std::size_t>(at);
  }
  double& at(const OnnxShape& index) { return values.at(place(index)); }
  double at(const OnnxShape& index) const { return values.at(place(index)); }
};

using OnnxArrays = std::map<std::string, OnnxArray>;

/// Calls f(index) for each element of an array of this shape, in order.
template <class F>
void for_each_index(const OnnxShape& shape, F f) {
  OnnxShape index(shape.size(), 0);
  for (std::int64_t left = OnnxArray{shape, {}}.count(); left > 0; --left) {
    f(std::as_const(index));
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

class OnnxNode {
 public:
  OnnxNode(const Message& node, OnnxArrays& known) : node_(node), known_(known) {
    for (const std::string& bytes : node.all(5)) {
      const Message attribute(bytes);
      attributes_.emplace(attribute.text(1), attribute);
    }
  }

  void run() {
    const std::string op = node_.text(4);
    const std::vector<std::string> outputs = node_.all(2);
    const Results results = results_of(op, outputs.size());
    BOOST_REQUIRE(results.size() == outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) known_[outputs[i]] = results[i];
  }

 private:
  using Results = std::vector<OnnxArray>;

  std::size_t inputs() const { return node_.all(1).size(); }
  const OnnxArray& in(std::size_t i) const { return known_.at(node_.all(1).at(i)); }
  std::int64_t attribute(const std::string& name, std::int64_t otherwise) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? otherwise
                                      : static_cast<std::int64_t>(found->second.numbers(3).at(0));
  }
  std::vector<std::int64_t> list(const std::string& name) const {
    const std::vector<std::uint64_t> all = attributes_.at(name).numbers(8);
    return {all.begin(), all.end()};
  }
  double epsilon() const {
    const auto found = attributes_.find("epsilon");
    float value = 1e-5F;
    if (found != attributes_.end()) std::memcpy(&value, found->second.text(2).data(), 4);
    return double{value};
  }
  static std::int64_t axis_of(std::int64_t axis, std::int64_t rank) {
    return axis < 0 ? axis + rank : axis;
  }

  template <class F>
  static OnnxArray each(const OnnxArray& x, F f) {
    OnnxArray y = x;
    for (double& value : y.values) value = f(value);
    return y;
  }
  static OnnxShape common(const OnnxShape& a, const OnnxShape& b) {
    OnnxShape shape(std::max(a.size(), b.size()), 1);
    for (const OnnxShape* one : {&a, &b}) {
      for (std::size_t i = 0; i < one->size(); ++i) {
        std::int64_t& extent = shape[shape.size() - one->size() + i];
        BOOST_REQUIRE((extent == 1 || (*one)[i] == 1 || extent == (*one)[i]));
        if (extent == 1) extent = (*one)[i];
      }
    }
    return shape;
  }
  template <class F>
  static OnnxArray each(const OnnxArray& a, const OnnxArray& b, F f) {
    OnnxArray y{common(a.shape, b.shape), {}};
    for_each_index(y.shape, [&](const OnnxShape& i) { y.values.push_back(f(a.at(i), b.at(i))); });
    return y;
  }

  /// Replaces the values along an axis by reduce(values).
  template <class Reduce>
  OnnxArray reduced(const OnnxArray& x, std::int64_t axis, Reduce reduce) const {
    axis = axis_of(axis, x.rank());
    OnnxShape shape = x.shape;
    shape[static_cast<std::size_t>(axis)] = 1;
    OnnxArray y{shape, {}};
    for_each_index(shape, [&](OnnxShape i) {
      std::vector<double> values;
      for (std::int64_t k = 0; k < x.shape[static_cast<std::size_t>(axis)]; ++k) {
        i[static_cast<std::size_t>(axis)] = k;
        values.push_back(x.at(i));
      }
      y.values.push_back(reduce(values));
    });
    if (attribute("keepdims", 1) == 0) y.shape.erase(y.shape.begin() + axis);
    return y;
  }

  static double total(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  }

  /// Applies f, which changes a row in place, to each row (the last axis).
  template <class F>
  static OnnxArray rowwise(const OnnxArray& x, F f) {
    OnnxArray y = x;
    const std::ptrdiff_t width = x.shape.back();
    for (auto row = y.values.begin(); row != y.values.end(); row += width) {
      std::vector<double> values(row, row + width);
      f(values);
      std::ranges::copy(values, row);
    }
    return y;
  }

  static OnnxArray matmul(const OnnxArray& a, const OnnxArray& b) {
    const std::int64_t m = a.shape.end()[-2], n = b.shape.back(), inner = a.shape.back();
    BOOST_REQUIRE(inner == b.shape.end()[-2]);
    OnnxArray y{common({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2}),
                {}};
    y.shape.insert(y.shape.end(), {m, n});
    for_each_index(y.shape, [&](const OnnxShape& i) {
      OnnxShape left = i, right = i;
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        left.back() = right.end()[-2] = k;
        sum += a.at(left) * b.at(right);
      }
      y.values.push_back(sum);
    });
    return y;
  }

  static OnnxArray gathered(const OnnxArray& table, const OnnxArray& ids, std::int64_t axis) {
    OnnxArray y{{table.shape.begin(), table.shape.begin() + axis}, {}};
    y.shape.insert(y.shape.end(), ids.shape.begin(), ids.shape.end());
    y.shape.insert(y.shape.end(), table.shape.begin() + axis + 1, table.shape.end());
    for_each_index(y.shape, [&](const OnnxShape& i) {
      const auto begin = i.begin() + axis, end = begin + ids.rank();
      OnnxShape from(i.begin(), begin);
      from.push_back(static_cast<std::int64_t>(ids.at(OnnxShape(begin, end))));
      from.insert(from.end(), end, i.end());
      y.values.push_back(table.at(from));
    });
    return y;
  }

  static OnnxArray part(const OnnxArray& x, std::int64_t axis, std::int64_t first, std::int64_t end,
                        std::int64_t step = 1) {
    OnnxArray y{x.shape, {}};
    std::int64_t& extent = y.shape[static_cast<std::size_t>(axis)];
    extent = std::max<std::int64_t>((std::min(end, extent) - first + step - 1) / step, 0);
    for_each_index(y.shape, [&](OnnxShape i) {
      std::int64_t& at = i[static_cast<std::size_t>(axis)];
      at = first + at * step;
      y.values.push_back(x.at(i));
    });
    return y;
  }

  OnnxArray joined(std::int64_t axis) const {
    OnnxArray y = in(0);
    axis = axis_of(axis, y.rank());
    std::int64_t& extent = y.shape[static_cast<std::size_t>(axis)];
    extent = 0;
    for (std::size_t k = 0; k < inputs(); ++k)
      extent += in(k).shape.at(static_cast<std::size_t>(axis));
    y.values.clear();
    for_each_index(y.shape, [&](OnnxShape i) {
      std::int64_t& at = i[static_cast<std::size_t>(axis)];
      std::size_t k = 0;
      for (; at >= in(k).shape[static_cast<std::size_t>(axis)]; ++k)
        at -= in(k).shape[static_cast<std::size_t>(axis)];
      y.values.push_back(in(k).at(i));
    });
    return y;
  }

  OnnxArray reshaped() const {
    OnnxArray y = in(0);
    y.shape = in(1).integers();
    std::int64_t known = 1;
    for (std::size_t i = 0; i < y.shape.size(); ++i) {
      if (y.shape[i] == 0) y.shape[i] = in(0).shape.at(i);
      known *= y.shape[i] < 0 ? 1 : y.shape[i];
    }
    for (std::int64_t& extent : y.shape)
      if (extent < 0) extent = known == 0 ? 0 : in(0).count() / known;
    BOOST_REQUIRE(y.count() == in(0).count());
    return y;
  }

  OnnxArray convolved() const {
    const OnnxArray &x = in(0), &kernel = in(1), &bias = in(2);
    const std::vector<std::int64_t> pads = list("pads"), strides = list("strides");
    OnnxArray y{{x.shape[0], kernel.shape[0]}, {}};
    for (std::size_t axis = 0; axis < strides.size(); ++axis)
      y.shape.push_back(
          (x.shape[2 + axis] + pads[axis] + pads[strides.size() + axis] - kernel.shape[2 + axis]) /
              strides[axis] +
          1);
    const OnnxShape window(kernel.shape.begin() + 1, kernel.shape.end());
    for_each_index(y.shape, [&](const OnnxShape& i) {
      double sum = bias.at({i[1]});
      for_each_index(window, [&](const OnnxShape& k) {
        OnnxShape from{i[0], k[0]}, weight{i[1]};
        weight.insert(weight.end(), k.begin(), k.end());
        bool inside = true;
        for (std::size_t axis = 0; axis < strides.size(); ++axis) {
          from.push_back(i[2 + axis] * strides[axis] + k[1 + axis] - pads[axis]);
          inside = inside && from.back() >= 0 && from.back() < x.shape[2 + axis];
        }
        if (inside) sum += x.at(from) * kernel.at(weight);
      });
      y.values.push_back(sum);
    });
    return y;
  }

  Results branch() const;

  /// Elementwise operators; operands of different shapes are broadcast.
  std::optional<Results> elementwise(const std::string& op) const {
    const auto pairs = [&](auto f) { return std::vector{each(in(0), in(1), f)}; };
    const auto single = [&](auto f) { return std::vector{each(in(0), f)}; };
    if (op == "Add") return pairs([](double a, double b) { return a + b; });
    if (op == "Sub") return pairs([](double a, double b) { return a - b; });
    if (op == "Mul") return pairs([](double a, double b) { return a * b; });
    if (op == "Div") return pairs([](double a, double b) { return a / b; });
    if (op == "Min") return pairs([](double a, double b) { return std::min(a, b); });
    if (op == "Equal") return pairs([](double a, double b) { return a == b ? 1.0 : 0; });
    if (op == "Less") return pairs([](double a, double b) { return a < b ? 1.0 : 0; });
    if (op == "Greater") return pairs([](double a, double b) { return a > b ? 1.0 : 0; });
    if (op == "GreaterOrEqual") return pairs([](double a, double b) { return a >= b ? 1.0 : 0; });
    if (op == "And") return pairs([](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0; });
    if (op == "Identity") return single([](double x) { return x; });
    if (op == "Relu") return single([](double x) { return std::max(x, 0.0); });
    if (op == "Tanh") return single([](double x) { return std::tanh(x); });
    if (op == "Sigmoid") return single([](double x) { return 1 / (1 + std::exp(-x)); });
    if (op == "Erf") return single([](double x) { return std::erf(x); });
    if (op == "Exp") return single([](double x) { return std::exp(x); });
    if (op == "Sqrt") return single([](double x) { return std::sqrt(x); });
    if (op == "Abs") return single([](double x) { return std::abs(x); });
    if (op == "Cast") {
      const bool boolean = attribute("to", 0) == 9;
      return single([=](double x) { return boolean && x != 0 ? 1.0 : x; });
    }
    if (op == "Clip") {
      const double low = in(1).values.at(0), high = in(2).values.at(0);
      return single([=](double x) { return std::clamp(x, low, high); });
    }
    if (op == "Where") {
      OnnxArray y{common(in(0).shape, common(in(1).shape, in(2).shape)), {}};
      for_each_index(y.shape, [&](const OnnxShape& i) {
        y.values.push_back(in(0).at(i) != 0 ? in(1).at(i) : in(2).at(i));
      });
      return Results{y};
    }
    if (op == "Expand")
      return Results{
          each(in(0), OnnxArray::of(in(1).integers()), [](double a, double) { return a; })};
    return std::nullopt;
  }

  /// Products and operators that index elements.
  std::optional<Results> products(const std::string& op) const {
    if (op == "MatMul") return Results{matmul(in(0), in(1))};
    if (op == "Gemm") {
      BOOST_REQUIRE(attribute("transB", 0) == 1);
      const OnnxArray &x = in(0), &w = in(1);
      BOOST_REQUIRE(x.shape.at(1) == w.shape.at(1));
      OnnxArray y{{x.shape[0], w.shape[0]}, {}};
      for_each_index(y.shape, [&](const OnnxShape& i) {
        double sum = inputs() > 2 ? in(2).at({i[1]}) : 0;
        for (std::int64_t k = 0; k < x.shape[1]; ++k) sum += x.at({i[0], k}) * w.at({i[1], k});
        y.values.push_back(sum);
      });
      return Results{y};
    }
    if (op == "Gather") return Results{gathered(in(0), in(1), attribute("axis", 0))};
    if (op == "GatherElements") {
      OnnxArray y{in(1).shape, {}};
      for_each_index(y.shape, [&](OnnxShape i) {
        i[static_cast<std::size_t>(attribute("axis", 0))] =
            static_cast<std::int64_t>(in(1).at(std::as_const(i)));
        y.values.push_back(in(0).at(i));
      });
      return Results{y};
    }
    if (op == "ScatterElements") {
      OnnxArray y = in(0);
      for_each_index(in(1).shape, [&](const OnnxShape& i) {
        OnnxShape to = i;
        to[static_cast<std::size_t>(attribute("axis", 0))] = static_cast<std::int64_t>(in(1).at(i));
        y.at(to) = in(2).at(i);
      });
      return Results{y};
    }
    if (op == "Conv") return Results{convolved()};
    if (op == "DequantizeLinear") {  // a scale for each row
      OnnxArray y = in(0);
      for_each_index(y.shape, [&](const OnnxShape& i) { y.at(i) *= in(1).at({i[0]}); });
      return Results{y};
    }
    return std::nullopt;
  }

  /// Operators along an axis.
  std::optional<Results> rows(const std::string& op) const {
    if (op == "TopK") {  // of the last axis
      const std::int64_t k = in(1).integer();
      OnnxArray indices = rowwise(in(0), [](std::vector<double>& row) {
        std::vector<double> order(row.size());
        std::iota(order.begin(), order.end(), 0.0);
        std::ranges::stable_sort(order, std::greater<>(),
                                 [&](double i) { return row[static_cast<std::size_t>(i)]; });
        row = order;
      });
      indices = part(indices, indices.rank() - 1, 0, k);
      return Results{OnnxArray{}, indices};
    }
    if (op == "Softmax")
      return Results{rowwise(in(0), [](std::vector<double>& row) {
        const double largest = std::ranges::max(row);
        for (double& value : row) value = std::exp(value - largest);
        const double sum = total(row);
        for (double& value : row) value /= sum;
      })};
    if (op == "ArgMax")
      return Results{reduced(in(0), attribute("axis", 0), [](const std::vector<double>& row) {
        return static_cast<double>(std::ranges::max_element(row) - row.begin());
      })};
    if (op == "ReduceSum") return Results{reduced(in(0), in(1).integer(), total)};
    if (op == "ReduceMean")
      return Results{reduced(in(0), list("axes").at(0), [](const std::vector<double>& row) {
        return total(row) / static_cast<double>(row.size());
      })};
    if (op == "CumSum") {
      OnnxArray y = in(0);
      const auto axis = static_cast<std::size_t>(in(1).integer());
      for_each_index(y.shape, [&](const OnnxShape& i) {
        OnnxShape before = i;
        if (before[axis]-- > 0) y.at(i) += y.at(std::as_const(before));
      });
      return Results{y};
    }
    if (op == "LayerNormalization")
      return Results{each(each(rowwise(in(0),
                                       [&](std::vector<double>& row) {
                                         const auto n = static_cast<double>(row.size());
                                         const double mean = total(row) / n;
                                         double variance = 0;
                                         for (const double v : row)
                                           variance += (v - mean) * (v - mean) / n;
                                         for (double& v : row)
                                           v = (v - mean) / std::sqrt(variance + epsilon());
                                       }),
                               in(1), std::multiplies<>()),
                          in(2), std::plus<>())};
    if (op == "BatchNormalization") {
      const OnnxArray scaled =
          each(each(in(0), in(3), std::minus<>()), in(4),
               [&](double x, double v) { return x / std::sqrt(v + epsilon()); });
      return Results{each(each(scaled, in(1), std::multiplies<>()), in(2), std::plus<>())};
    }
    return std::nullopt;
  }

  /// Operators that change shapes or the order of elements.
  std::optional<Results> shapes(const std::string& op, std::size_t outputs) const {
    if (op == "Shape") {
      const std::int64_t first = attribute("start", 0), end = attribute("end", in(0).rank());
      OnnxArray y{{end - first}, {}};
      for (std::int64_t i = first; i < end; ++i)
        y.values.push_back(static_cast<double>(in(0).shape.at(static_cast<std::size_t>(i))));
      return Results{y};
    }
    if (op == "Reshape") return Results{reshaped()};
    if (op == "Concat") return Results{joined(attribute("axis", 0))};
    if (op == "Transpose") {
      const std::vector<std::int64_t> order = list("perm");
      OnnxArray y = in(0);
      for (std::size_t i = 0; i < order.size(); ++i)
        y.shape[i] = in(0).shape.at(static_cast<std::size_t>(order[i]));
      for_each_index(y.shape, [&](const OnnxShape& i) {
        OnnxShape from(i.size());
        for (std::size_t axis = 0; axis < i.size(); ++axis)
          from[static_cast<std::size_t>(order[axis])] = i[axis];
        y.at(i) = in(0).at(from);
      });
      return Results{y};
    }
    if (op == "Unsqueeze") {
      OnnxArray y = in(0);
      const std::vector<std::int64_t> axes = in(1).integers();
      for (const std::int64_t axis : axes)  // in ascending order
        y.shape.insert(y.shape.begin() + axis_of(axis, y.rank() + std::ssize(axes)), 1);
      return Results{y};
    }
    if (op == "Squeeze") {
      OnnxArray y = in(0);
      BOOST_REQUIRE(y.shape.at(static_cast<std::size_t>(in(1).integer())) == 1);
      y.shape.erase(y.shape.begin() + in(1).integer());
      return Results{y};
    }
    if (op == "Range") {
      OnnxArray y{{in(1).integer()}, {}};
      BOOST_REQUIRE((in(0).integer() == 0 && in(2).integer() == 1));
      for (std::int64_t i = 0; i < y.shape[0]; ++i) y.values.push_back(static_cast<double>(i));
      return Results{y};
    }
    if (op == "Slice") {
      const double last = std::min(in(2).values.at(0), 1e9);  // the largest integer means the end
      return Results{part(in(0), in(3).integer(), in(1).integer(), static_cast<std::int64_t>(last),
                          in(4).integer())};
    }
    if (op == "Split") {
      const std::int64_t axis = axis_of(attribute("axis", 0), in(0).rank()),
                         extent = in(0).shape.at(static_cast<std::size_t>(axis));
      std::vector<std::int64_t> sizes(outputs, extent / static_cast<std::int64_t>(outputs));
      if (inputs() > 1) sizes = in(1).integers();
      std::vector<OnnxArray> parts;
      std::int64_t first = 0;
      for (const std::int64_t size : sizes) {
        parts.push_back(part(in(0), axis, first, first + size));
        first += size;
      }
      BOOST_REQUIRE(first == extent);
      return parts;
    }
    return std::nullopt;
  }

  Results results_of(const std::string& op, std::size_t outputs) const {
    if (op == "If") return branch();
    if (const auto found = elementwise(op)) return *found;
    if (const auto found = products(op)) return *found;
    if (const auto found = rows(op)) return *found;
    if (const auto found = shapes(op, outputs)) return *found;
    BOOST_REQUIRE_MESSAGE(false, "an operator that this test does not know: " + op);
    return {};
  }

  const Message& node_;
  OnnxArrays& known_;
  std::map<std::string, Message> attributes_;
};

/// The elements of a tensor of a graph.
inline OnnxArray onnx_elements(const Message& tensor) {
  const std::vector<std::uint64_t> shape = tensor.numbers(1);
  OnnxArray all{{shape.begin(), shape.end()}, {}};
  const std::string bytes = tensor.text(9);
  const auto read = [&]<class T>(T value) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof value) {
      std::memcpy(&value, bytes.data() + at, sizeof value);
      all.values.push_back(static_cast<double>(value));
    }
  };
  switch (tensor.numbers(2).at(0)) {
    case 1:
      read(float{});
      break;
    case 7:
      read(std::int64_t{});
      break;
    default:  // int8 and boolean
      read(std::int8_t{});
  }
  BOOST_REQUIRE(all.count() == std::ssize(all.values));
  return all;
}

/// All values of a graph by name, given those of its inputs and of the outer graph.
inline OnnxArrays onnx_values(const Message& graph, OnnxArrays known) {
  for (const std::string& bytes : graph.all(5)) {
    const Message tensor(bytes);
    known[tensor.text(8)] = onnx_elements(tensor);
  }
  for (const std::string& bytes : graph.all(1)) {
    const Message node(bytes);
    OnnxNode(node, known).run();
  }
  return known;
}

inline OnnxNode::Results OnnxNode::branch() const {
  const bool then = in(0).integer() != 0;
  const Message graph(attributes_.at(then ? "then_branch" : "else_branch").text(6));
  const OnnxArrays values = onnx_values(graph, known_);
  Results results;
  for (const std::string& output : graph.all(12))
    results.push_back(values.at(Message(output).text(1)));
  return results;
}

}  // namespace heed::test
