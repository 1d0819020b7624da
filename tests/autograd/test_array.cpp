#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <sstream>

#include "autograd/ops.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(array)

BOOST_AUTO_TEST_CASE(shapes_report_their_rank_extents_size_rows_and_columns) {
  BOOST_TEST(Shape().rank() == 0);
  BOOST_TEST(Shape().size() == 1);
  BOOST_TEST(Shape().str() == "[]");
  BOOST_TEST((Shape{}.rows() == 1 && Shape{}.cols() == 1));
  const Shape shape{2, 3, 4};
  BOOST_TEST(shape.size() == 24);
  BOOST_TEST(shape.rows() == 6);
  BOOST_TEST(shape.cols() == 4);
  BOOST_TEST(shape[0] == 2);
  BOOST_TEST(shape[-1] == 4);
  BOOST_TEST(shape.with(-2, 0) == (Shape{2, 0, 4}));
  BOOST_TEST(shape.with(1, 0).size() == 0);
  BOOST_TEST(shape != (Shape{2, 3}));
  BOOST_TEST(shape != (Shape{2, 3, 5}));
  BOOST_TEST((Shape{0, 3}) != (Shape{3, 0}));
  BOOST_TEST(shape.str() == "[2, 3, 4]");
}

BOOST_AUTO_TEST_CASE(invalid_shapes_are_refused) {
  EXPECT_FAIL((Shape{2, -1}), "at least 0, got -1");
  EXPECT_FAIL((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), "at most 8 axes");
  EXPECT_FAIL((Shape{2, 3}[2]), "axis 2 does not exist in [2, 3]");
  EXPECT_FAIL((Shape{2, 3}[-3]), "axis -3 does not exist in [2, 3]");
  EXPECT_FAIL((Shape{}[0]), "axis 0 does not exist in []");
  const std::int64_t much = std::int64_t{1} << 31;
  EXPECT_FAIL((Shape{much, much}), "too many elements");
  EXPECT_FAIL((Shape{much, 2, much}), "too many elements");
}

BOOST_AUTO_TEST_CASE(an_undefined_array_has_no_values) {
  const Array none;
  BOOST_TEST(!none.defined());
  BOOST_TEST(none.size() == 0);
  BOOST_TEST(none.data() == nullptr);
  BOOST_TEST(!none.unique());
  BOOST_TEST(!none.clone().defined());
  BOOST_TEST(none.values().empty());
}

BOOST_AUTO_TEST_CASE(arrays_contain_the_given_values) {
  const Array x({2, 3}, std::vector<real>{1, 2, 3, 4, 5, 6});
  BOOST_TEST(x.row(1)[0] == 4);
  BOOST_TEST(x.values().size() == 6u);
  BOOST_TEST(Array::scalar(3).item() == 3);
  BOOST_TEST(Array::full({1, 1}, 2).item() == 2);
  const Array zeros = Array::zeros({3, 3});
  for (const real value : zeros.values()) BOOST_TEST(value == 0);
  EXPECT_FAIL(x.item(), "expected one value, got shape [2, 3]");
  EXPECT_FAIL(Array({2, 3}, std::vector<real>{1, 2}), "expected 6 values for shape [2, 3], got 2");
}

BOOST_AUTO_TEST_CASE(memory_of_an_array_is_aligned_to_64_bytes) {
  for (const std::int64_t n : {0, 1, 3, 17, 1000, 1 << 20}) {
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(Array({n}).data()) % 64 == 0u);
  }
}

BOOST_AUTO_TEST_CASE(copies_share_values_and_clones_do_not) {
  Array x({3}, std::vector<real>{1, 2, 3});
  BOOST_TEST(x.unique());
  Array copy = x;
  BOOST_TEST(!x.unique());
  BOOST_TEST(copy.data() == x.data());
  copy.data()[0] = 7;
  BOOST_TEST(x.data()[0] == 7);
  const Array clone = x.clone();
  x.data()[1] = 8;
  BOOST_TEST(clone.data()[1] == 2);
  BOOST_TEST(clone.unique());
  copy = Array();
  BOOST_TEST(x.unique());
  Array moved = std::move(x);
  BOOST_TEST(moved.unique());
  BOOST_TEST(!x.defined());
  BOOST_TEST(x.size() == 0);
  moved = *&moved;  // self-assignment
  BOOST_TEST(moved.data()[0] == 7);
}

BOOST_AUTO_TEST_CASE(reshaped_arrays_share_values) {
  const Array x({2, 3}, std::vector<real>{1, 2, 3, 4, 5, 6});
  const Array y = x.reshaped({3, 2});
  BOOST_TEST(y.data() == x.data());
  BOOST_TEST(y.row(2)[1] == 6);
  BOOST_TEST(Array::scalar(1).reshaped({1, 1, 1}).shape() == (Shape{1, 1, 1}));
  BOOST_TEST(Array({0, 3}).reshaped({7, 0}).size() == 0);
  EXPECT_FAIL(x.reshaped({4}), "[2, 3] has 6 values, but [4] has 4");
}

BOOST_AUTO_TEST_CASE(sliced_arrays_share_values) {
  const Array x({3, 2}, std::vector<real>{1, 2, 3, 4, 5, 6});
  const Array y = x.sliced(1, 3);
  BOOST_TEST(y.shape() == (Shape{2, 2}));
  BOOST_TEST(y.data() == x.row(1));
  BOOST_TEST(x.sliced(3, 3).size() == 0);
  BOOST_TEST(Array({0, 3}).sliced(0, 0).size() == 0);
  EXPECT_FAIL(x.sliced(2, 4), "rows [2, 4) are out of range for shape [3, 2]");
  EXPECT_FAIL(x.sliced(2, 1), "rows [2, 1) are out of range for shape [3, 2]");
  EXPECT_FAIL(x.sliced(-1, 1), "rows [-1, 1) are out of range");
  EXPECT_FAIL(Array::scalar(1).sliced(0, 1), "are out of range for shape []");
}

BOOST_AUTO_TEST_CASE(a_slice_keeps_the_whole_array_alive) {
  Array part;
  {
    Array whole({2, 2}, std::vector<real>{1, 2, 3, 4});
    part = whole.sliced(1, 2);
  }
  // This array would reuse the memory of `whole` if that had been freed.
  const Array other({2, 2}, std::vector<real>{9, 9, 9, 9});
  BOOST_TEST(part.row(0)[0] == 3);
  BOOST_TEST(part.row(0)[1] == 4);
}

BOOST_AUTO_TEST_CASE(a_list_of_rows_determines_shape_and_values) {
  const Array matrix({{1, 2, 3}, {4, 5, 6}});
  BOOST_TEST(matrix.shape() == (Shape{2, 3}));
  BOOST_TEST(same(matrix, array_of({2, 3}, {1, 2, 3, 4, 5, 6})));
  const Array column({{1}, {2}});
  BOOST_TEST(column.shape() == (Shape{2, 1}));
  BOOST_TEST(same(Array::of({7, 8}), array_of({2}, {7, 8})));
  BOOST_TEST(Array({2, 3}).shape() == (Shape{2, 3}));  // {2, 3} is a shape
  EXPECT_FAIL(Array({{1, 2}, {3}}), "[array] expected rows of 2 values, got a row of 1");
}

BOOST_AUTO_TEST_CASE(at_returns_the_value_at_an_index) {
  Array x({{1, 2, 3}, {4, 5, 6}});
  BOOST_TEST(x.at({1, 0}) == 4);
  BOOST_TEST(x.at({-1, -1}) == 6);
  x.at({0, 2}) = 9;
  BOOST_TEST(x.data()[2] == 9);
  EXPECT_FAIL(x.at({0}), "[at] expected one index per axis of shape [2, 3], got 1");
  EXPECT_FAIL(x.at({0, 3}), "[at] index 3 is out of range for axis 1 of shape [2, 3]");
  EXPECT_FAIL(x.at({-3, 0}), "[at] index -3 is out of range for axis 0");
  EXPECT_FAIL(Array().at({0}), "[at] an undefined array has no values");
  EXPECT_FAIL(static_cast<void>(Array().item()), "undefined");
}

BOOST_AUTO_TEST_CASE(arrays_and_tensors_are_printed_with_shape_and_values) {
  const auto printed = [](const auto& x) {
    std::ostringstream out;
    out << x;
    return out.str();
  };
  BOOST_TEST(printed(Array({{1, 2.5}, {-3, 4}})) == "[2, 2] [[1, 2.5], [-3, 4]]");
  BOOST_TEST(printed(Array::scalar(3)) == "[] 3");
  BOOST_TEST(printed(Array::of({1, 2, 3, 4, 5, 6, 7, 8, 9})) == "[9] [1, 2, 3, …, 7, 8, 9]");
  BOOST_TEST(printed(Array({0, 2})) == "[0, 2] []");
  BOOST_TEST(printed(Array()) == "undefined");
  BOOST_TEST(printed(Tensor(Array::of({1}))) == "[1] [1]");
  BOOST_TEST(printed(Tensor::variable(Array::of({1}))) == "[1] [1], variable");
  BOOST_TEST(printed(-Tensor::variable(Array::of({1}))) == "[1] [-1], with a gradient");
}

BOOST_AUTO_TEST_CASE(only_an_axis_of_more_than_seven_entries_is_printed_in_part) {
  const auto printed = [](const Array& x) {
    std::ostringstream out;
    out << x;
    return out.str();
  };
  BOOST_TEST(printed(Array::of({1, 2, 3, 4, 5, 6, 7})) == "[7] [1, 2, 3, 4, 5, 6, 7]");
  BOOST_TEST(printed(Array::of({1, 2, 3, 4, 5, 6, 7, 8})) == "[8] [1, 2, 3, …, 6, 7, 8]");
}

BOOST_AUTO_TEST_SUITE_END()
