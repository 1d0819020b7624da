#include <pthread.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "autograd/memory/arena.h"
#include "autograd/ops.h"
#include "autograd/tape/finite_check.h"
#include "autograd/tape/many.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(tensor)

namespace {

Tensor variable(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::variable(array_of(shape, values));
}

/// Runs f on a thread with a stack of 256 KiB.
template <class F>
void on_small_stack(F f) {
  pthread_attr_t attributes;
  BOOST_REQUIRE(pthread_attr_init(&attributes) == 0);
  BOOST_REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  const auto run = [](void* f_pointer) -> void* {
    (*static_cast<F*>(f_pointer))();
    return nullptr;
  };
  BOOST_REQUIRE(pthread_create(&thread, &attributes, run, &f) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

Tensor chain(const Tensor& x, int length) {
  Tensor y = x;
  for (int i = 0; i < length; ++i) y = i % 2 == 0 ? scale(y, 2) : scale(y, real(0.5));
  return y;
}

/// The identity, with a backward defined by the test.
struct Given {
  std::function<void(const Array& dy, const Grad& dx)> df;
  Array forward(const Array& x) { return x.clone(); }
  void backward(const Array& dy, Grad dx) const { df(dy, dx); }
};
struct GivenPair {
  void (*df)(const Array& dy, const Grad& da, const Grad& db) = nullptr;
  Array forward(const Array& a, const Array&) { return a.clone(); }
  void backward(const Array& dy, Grad da, Grad db) const { df(dy, da, db); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_example_in_tensor_h_returns_the_stated_gradient) {
  const Tensor w = Tensor::variable(Array::full({3}, 2));
  const Tensor loss = sum(mul(w, w));
  BOOST_TEST(loss.item() == 12);
  const Gradients g = backward(loss);
  BOOST_TEST(same(g[w], array_of({3}, {4, 4, 4})));
}

BOOST_AUTO_TEST_CASE(a_tensor_used_many_times_sums_all_gradients) {
  const Tensor x = variable({2}, {3, 5});
  const Tensor y = mul(x, x);                    // y' = 2 x
  const Tensor z = add(add(y, y), mul(y, x));    // z' = 2 y' + 3 x²
  const Gradients g = backward(sum(add(z, x)));  // z' + 1
  BOOST_TEST(same(g[x], array_of({2}, {2 * 6 + 27 + 1, 2 * 10 + 75 + 1})));
}

BOOST_AUTO_TEST_CASE(a_value_changed_between_forward_and_backward_is_refused) {
  Tensor x = variable({2}, {3, 5});
  const Tensor y = mul(x, x);
  x.mutable_value().values()[0] = 7;
  EXPECT_FAIL(backward(sum(y)),
              "[backward of Mul] input 0 of shape [2], which backward needs, was changed after the "
              "forward pass: call backward before changing it");
  // The same holds for a result that the op saves.
  Tensor e = exp(x);
  e.mutable_value().values()[0] = 1;
  EXPECT_FAIL(backward(sum(e)), "[backward of Elementwise] the result of shape [2]");
  // x is changed, and backward needs a view that shares its values.
  Tensor view = reshape(x, {1, 2});
  const Tensor square = mul(view, view);
  x.mutable_value().values()[1] = 2;
  EXPECT_FAIL(backward(sum(square)), "[backward of Mul] input 0 of shape [1, 2]");
}

BOOST_AUTO_TEST_CASE(a_changed_input_of_a_variadic_op_is_refused_by_backward) {
  Tensor qkv = variable({1, 3}, {1, 2, 3});
  const std::vector<std::int32_t> offsets{0, 1};
  const Tensor y = self_attention(qkv, offsets, {});
  qkv.mutable_value().data()[0] = 100;
  EXPECT_FAIL(backward(sum(y)), "input 0 of shape [1, 3], which backward needs, was changed");
}

BOOST_AUTO_TEST_CASE(views_save_no_values_for_backward) {
  Tensor x = variable({2}, {3, 5});
  const Tensor y = sum(slice(reshape(x, {2, 1}), 0, 0, 1));
  x.mutable_value().data()[0] = 7;
  BOOST_TEST(same(backward(y)[x], array_of({2}, {1, 0})));
  // A view's node keeps no memory alive.
  const Tensor big = reshape(add(x, x), {1, 2});
  BOOST_TEST(big.value().owners() == 1);
}

BOOST_AUTO_TEST_CASE(a_value_that_backward_does_not_need_may_change) {
  Tensor x = variable({2}, {3, 5});
  const Tensor y = add(x, scale(x, 2));
  x.mutable_value().values()[0] = 7;
  BOOST_TEST(same(backward(sum(y))[x], array_of({2}, {3, 3})));
  // The next graph uses the new values, as in training.
  const Tensor next = sum(mul(x, x));
  BOOST_TEST(same(backward(next)[x], array_of({2}, {14, 10})));
}

namespace {

/// y0 = sin x, y1 = x w
struct SineAndProduct {
  Array x, w;
  std::vector<Array> forward(const Array& x_in, const Array& w_in) {
    x = x_in;
    w = w_in;
    std::vector<Array> y{Array(x.shape()), Array(x.shape())};
    for (std::int64_t i = 0; i < x.size(); ++i) {
      y[0].data()[i] = std::sin(x.data()[i]);
      y[1].data()[i] = x.data()[i] * w.data()[i];
    }
    return y;
  }
  void backward(std::span<const Array> dy, Grad dx, Grad dw) const {
    Array by_x(x.shape()), by_w(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      by_x.data()[i] = dy[0].data()[i] * std::cos(x.data()[i]) + dy[1].data()[i] * w.data()[i];
      by_w.data()[i] = dy[1].data()[i] * x.data()[i];
    }
    dx.add(by_x);
    dw.add(by_w);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_flow_through_every_result_of_an_op) {
  const Tensor x = variable({2}, {0, 1}), w = variable({2}, {3, 4});
  const std::vector<Tensor> y = apply_many(SineAndProduct{}, x, w);
  BOOST_REQUIRE(y.size() == 2);
  BOOST_TEST(same(y[0].value(), array_of({2}, {0, std::sin(1.0)}), 1e-7));
  BOOST_TEST(same(y[1].value(), array_of({2}, {0, 4})));
  const Gradients both = backward(sum(add(y[0], scale(y[1], 2))));
  BOOST_TEST(same(both[x], array_of({2}, {1 + 6, std::cos(1.0) + 8}), 1e-6));
  BOOST_TEST(same(both[w], array_of({2}, {0, 2})));
  // An unused result has a zero cotangent, so variables that affect only it have zero gradient.
  const std::vector<Tensor> again = apply_many(SineAndProduct{}, x, w);
  const Gradients one = backward(sum(again[0]));
  BOOST_TEST(same(one[x], array_of({2}, {1, std::cos(1.0)}), 1e-7));
  BOOST_TEST(same(one[w], array_of({2}, {0, 0})));
  // An op on constants is not recorded.
  for (const Tensor& part : apply_many(SineAndProduct{}, Tensor(x.value()), Tensor(w.value())))
    BOOST_TEST(!part.needs_grad());
}

BOOST_AUTO_TEST_CASE(the_operands_of_an_addition_do_not_share_a_gradient) {
  // add passes the same array dy to a and b; adding to one gradient must not change the other.
  const Tensor a = variable({2}, {1, 2}), b = variable({2}, {3, 4});
  const Tensor total = add(add(a, b), scale(a, 10));
  const Gradients g = backward(sum(total));
  BOOST_TEST(same(g[a], array_of({2}, {11, 11})));
  BOOST_TEST(same(g[b], array_of({2}, {1, 1})));
}

BOOST_AUTO_TEST_CASE(on_gradient_receives_each_complete_gradient_directly_after_its_last_use) {
  const Tensor first = variable({2}, {3, 5}), both = variable({2}, {2, 7});
  const Tensor last = variable({2}, {1, 4}), not_used = variable({2}, {6, 8});
  std::vector<const Node*> received;
  const auto record = [&](const Tensor& x) {  // the identity; its backward appends nullptr
    return apply(Given{[&received](const Array& dy, const Grad& dx) {
                   received.push_back(nullptr);
                   dx.add(dy);
                 }},
                 x);
  };
  const Tensor h = record(mul(mul(first, first), both));
  const Tensor without_gradient = apply(Given{[](const Array&, const Grad&) {}}, not_used);
  const Tensor loss = sum(add(mul(record(mul(h, both)), last), without_gradient));
  const Gradients expected = backward(loss, {}, true);
  received.clear();
  std::map<const Node*, Array> gradients;
  const Gradients rest =
      backward(loss, {}, false, {}, [&](const Node& variable, const Array& gradient) {
        received.push_back(&variable);
        BOOST_TEST(gradients.emplace(&variable, gradient).second);
      });
  BOOST_TEST(gradients.size() == 4);
  for (const Tensor& x : {first, both, last}) {
    BOOST_TEST(same(gradients[x.node().get()], expected[x]));
    BOOST_TEST(!rest.depends_on(x));
  }
  BOOST_TEST(!gradients[not_used.node().get()].defined());
  const std::vector<const Node*> order{last.node().get(), nullptr,           not_used.node().get(),
                                       nullptr,           both.node().get(), first.node().get()};
  BOOST_TEST(received == order);
}

BOOST_AUTO_TEST_CASE(on_gradient_receives_partial_sums_and_the_loss_itself) {
  const Tensor x = variable({2}, {3, 5}), other = variable({2}, {1, 1});
  Gradients partial;
  partial.begin(x, array_of({2}, {10, 20}));
  partial.begin(other, array_of({2}, {30, 40}));
  Array of_x;
  const auto keep = [&](const Node&, const Array& gradient) { of_x = gradient; };
  const Gradients rest = backward(sum(mul(x, x)), {}, false, std::move(partial), keep);
  BOOST_TEST(same(of_x, array_of({2}, {16, 30})));
  BOOST_TEST(!rest.depends_on(x));
  BOOST_TEST(same(rest[other], array_of({2}, {30, 40})));  // the loss does not depend on it
  backward(x, array_of({2}, {1, 2}), false, {}, keep);
  BOOST_TEST(same(of_x, array_of({2}, {1, 2})));
}

BOOST_AUTO_TEST_CASE(backward_does_not_change_the_given_cotangent) {
  const Tensor x = variable({2}, {1, 2});
  const Array cotangent = array_of({2}, {5, 7});
  const Gradients g = backward(add(x, scale(x, 2)), cotangent);
  BOOST_TEST(same(g[x], array_of({2}, {15, 21})));
  BOOST_TEST(same(cotangent, array_of({2}, {5, 7})));
}

BOOST_AUTO_TEST_CASE(a_variable_as_the_loss_has_gradient_one) {
  const Tensor x = variable({}, {3});
  BOOST_TEST(same(backward(x)[x], array_of({}, {1})));
}

BOOST_AUTO_TEST_CASE(the_gradient_of_an_unrelated_variable_is_zero) {
  const Tensor x = variable({2}, {1, 2}), other = variable({2, 3}, {1, 2, 3, 4, 5, 6});
  Gradients g = backward(sum(x));
  BOOST_TEST(same(g[other], Array::zeros({2, 3})));
  BOOST_TEST(!g.take(other).defined());
  BOOST_TEST(same(g.take(x), array_of({2}, {1, 1})));
}

BOOST_AUTO_TEST_CASE(gradients_outlive_the_graph_and_are_found_by_a_copy_of_the_variable) {
  Gradients g;
  Tensor x = variable({2}, {1, 2});
  {
    const Tensor loss = sum(mul(x, x));
    g = backward(loss);
  }
  const Tensor same_leaf = x;
  x = Tensor();
  BOOST_TEST(same(g[same_leaf], array_of({2}, {2, 4})));
}

BOOST_AUTO_TEST_CASE(constants_are_not_recorded) {
  const Tensor c = array_of({2}, {1, 2}), x = variable({2}, {3, 4});
  BOOST_TEST(!add(c, c).needs_grad());
  BOOST_TEST(add(c, x).needs_grad());
  const Gradients g = backward(sum(mul(c, x)));
  BOOST_TEST(same(g[x], array_of({2}, {1, 2})));
  EXPECT_FAIL(g[c], "a constant has no gradient");
}

BOOST_AUTO_TEST_CASE(no_grad_applies_only_within_its_scope_and_thread) {
  const Tensor x = variable({2}, {1, 2});
  {
    const NoGrad outer;
    BOOST_TEST(!recording());
    {
      const NoGrad inner;
      BOOST_TEST(!sum(x).needs_grad());
    }
    BOOST_TEST(!sum(x).needs_grad());
    bool in_other_thread = false;
    std::thread([&] { in_other_thread = sum(x).needs_grad(); }).join();
    BOOST_TEST(in_other_thread);
  }
  BOOST_TEST(recording());
  BOOST_TEST(sum(x).needs_grad());
}

BOOST_AUTO_TEST_CASE(backward_consumes_the_graph) {
  const Tensor x = variable({2}, {1, 2});
  const Tensor y = mul(x, x);
  const Tensor loss = sum(y);
  backward(loss);
  EXPECT_FAIL(backward(loss), "backward has already run on this graph");
  // A new loss shares a consumed part of the graph.
  EXPECT_FAIL(backward(sum(y)), "backward has already run on this graph");
}

BOOST_AUTO_TEST_CASE(backward_on_a_kept_graph_can_run_again) {
  const Tensor x = variable({2}, {1, 2});
  const Tensor loss = sum(mul(x, x));
  for (int i = 0; i < 2; ++i) BOOST_TEST(same(backward(loss, {}, true)[x], array_of({2}, {2, 4})));
  BOOST_TEST(same(backward(loss)[x], array_of({2}, {2, 4})));
  EXPECT_FAIL(backward(loss), "backward has already run on this graph");
}

BOOST_AUTO_TEST_CASE(backward_frees_the_values_that_ops_saved) {
  const Tensor x = Tensor::variable(Array::full({4}, 2));
  const Tensor kept = exp(x);
  BOOST_TEST(!kept.value().unique());  // exp saves y for its backward
  const Tensor loss = sum(kept);
  backward(loss);
  BOOST_TEST(kept.value().unique());
}

BOOST_AUTO_TEST_CASE(backward_refuses_invalid_losses_and_cotangents) {
  const Tensor x = variable({2}, {1, 2});
  EXPECT_FAIL(backward(mul(x, x)), "expected a loss of one value, got shape [2]");
  EXPECT_FAIL(backward(mul(x, x), Array::zeros({3})),
              "the cotangent has shape [3], but the result has shape [2]");
  EXPECT_FAIL(backward(Tensor(Array::scalar(1))), "depends on no variable");
  const Tensor y = mul(x, x);
  const Gradients g = backward(sum(y), {}, true);
  EXPECT_FAIL(g[y], "expected a variable, got the result of an op");
}

BOOST_AUTO_TEST_CASE(errors_in_the_backward_of_an_op_name_the_op_and_the_input) {
  const Tensor x = variable({2}, {1, 2}), constant = Array::full({2}, 1);
  const Tensor wrong =
      apply(Given{[](const Array&, const Grad& dx) { dx.add(Array::zeros({3})); }}, x);
  EXPECT_FAIL(backward(sum(wrong)),
              "[backward of Given] expected a gradient of shape [2] for input 0, got shape [3]");
  const Tensor forgotten = apply(GivenPair{[](const Array& dy, const Grad& da, const Grad& db) {
                                   da.add(dy);
                                   db.sum();
                                 }},
                                 x, constant);
  EXPECT_FAIL(
      backward(sum(forgotten)),
      "[backward of GivenPair] input 1 is a constant and has no gradient: test its Grad first");
}

BOOST_AUTO_TEST_CASE(adding_to_the_gradient_of_a_constant_has_no_effect) {
  const Tensor x = variable({2}, {1, 2}), constant = Array::full({2}, 1);
  const Tensor y = apply(GivenPair{[](const Array& dy, const Grad& da, const Grad& db) {
                           da.add(dy);
                           db.add(Array::zeros({7}));
                         }},
                         x, constant);
  BOOST_TEST(same(backward(sum(y))[x], array_of({2}, {1, 1})));
}

BOOST_AUTO_TEST_CASE(a_new_graph_uses_values_changed_since_the_last_graph) {
  Tensor x = variable({2}, {1, 2});
  const Tensor copy = x;
  BOOST_TEST(same(backward(sum(mul(x, x)))[copy], array_of({2}, {2, 4})));
  x.mutable_value().data()[0] = 10;
  BOOST_TEST(same(backward(sum(mul(copy, copy)))[x], array_of({2}, {20, 4})));
}

BOOST_AUTO_TEST_CASE(a_chain_of_a_million_ops_fits_on_a_small_stack) {
  constexpr int length = 1'000'000;
  real value = 0;
  bool right = false;  // Boost.Test's log supports only one thread
  on_small_stack([&] {
    const Tensor x = variable({}, {3});
    Tensor y = chain(x, length);
    value = y.item();
    const Gradients g = backward(y);
    right = same(g[x], array_of({}, {1}));
    y = Tensor();  // frees the chain after backward
    y = chain(x, length);
    y = Tensor();  // frees a chain without backward
  });
  BOOST_TEST(value == 3);
  BOOST_TEST(right);
}

BOOST_AUTO_TEST_CASE(nodes_of_a_graph_with_exponentially_many_paths_are_visited_once) {
  Tensor y = variable({}, {1});
  const Tensor x = y;
  for (int i = 0; i < 60; ++i) y = scale(add(y, y), real(0.5));
  BOOST_TEST(same(backward(y)[x], array_of({}, {1})));
}

BOOST_AUTO_TEST_CASE(concurrent_backward_of_shards_with_shared_parameters_equals_serial_backward) {
  Array values({8, 8});
  for (std::int64_t i = 0; i < values.size(); ++i)
    values.data()[i] = static_cast<real>(i % 13 - 6) / 16;
  const Tensor w = Tensor::variable(values);
  const auto loss_of = [&](int shard) {
    Tensor x = Array::full({4, 8}, static_cast<real>(shard + 1) / 8);
    for (int layer = 0; layer < 3; ++layer)
      x = tanh(add(mul(x, slice(w, 0, layer, layer + 1)), sum(w, 0)));
    return mean(x);
  };
  constexpr int shards = 2, rounds = 200;
  std::vector<Array> alone;
  for (int s = 0; s < shards; ++s) alone.push_back(backward(loss_of(s))[w]);
  std::vector<std::vector<Array>> together(shards);
  std::vector<std::thread> threads;
  for (int s = 0; s < shards; ++s) {
    threads.emplace_back([&, s] {
      for (int i = 0; i < rounds; ++i)
        together[static_cast<std::size_t>(s)].push_back(backward(loss_of(s))[w]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int equal = 0;
  for (std::size_t s = 0; s < shards; ++s) {
    for (const Array& g : together[s]) equal += same(g, alone[s]);
  }
  BOOST_TEST(equal == shards * rounds);
}

BOOST_AUTO_TEST_CASE(a_gradient_that_was_taken_cannot_be_read_again) {
  const Tensor x = variable({2}, {1, 2}), unrelated = variable({1}, {1});
  Gradients g = backward(sum(mul(x, x)));
  BOOST_TEST(same(g.take(x), array_of({2}, {2, 4})));
  EXPECT_FAIL(g[x],
              "[gradients] the gradient of this variable, of shape [2], has already been taken");
  EXPECT_FAIL(g.take(x), "has already been taken");
  BOOST_TEST(g.depends_on(x));
  BOOST_TEST(!g.take(unrelated).defined());
  EXPECT_FAIL(g[Tensor()], "an undefined tensor has no gradient");
  EXPECT_FAIL(backward(Tensor()), "[backward] the result is an undefined tensor");
}

/// The sum of any number of inputs.
struct SumOfAll {
  Array forward(std::span<const Array> x) {
    Array y = x[0].clone();
    for (std::size_t i = 1; i < x.size(); ++i) {
      for (std::int64_t k = 0; k < y.size(); ++k) y.data()[k] += x[i].data()[k];
    }
    return y;
  }
  void backward(const Array& dy, std::span<const Grad> dx) const {
    for (const Grad& g : dx) g.add(dy);
  }
};

BOOST_AUTO_TEST_CASE(an_op_accepts_a_vector_of_inputs) {
  std::vector<Tensor> inputs{variable({1}, {1}), variable({1}, {2})};
  const std::vector<Tensor>& fixed = inputs;
  BOOST_TEST(apply(SumOfAll{}, inputs).item() == 3);
  BOOST_TEST(apply(SumOfAll{}, fixed).item() == 3);
  BOOST_TEST(apply(SumOfAll{}, std::vector<Tensor>{inputs[0]}).item() == 1);
}

BOOST_AUTO_TEST_CASE(a_graph_begun_on_another_thread_can_be_continued) {
  const Tensor x = variable({1}, {3});
  Tensor begun;
  std::thread([&] { begun = chain(x, 50); }).join();
  Tensor loss;
  std::thread([&] { loss = mul(begun, begun); }).join();  // this thread has run no op before
  BOOST_TEST(same(backward(loss)[x], array_of({1}, {6})));
}

BOOST_AUTO_TEST_CASE(training_steps_after_the_first_three_need_no_system_allocation) {
  Tensor w = Tensor::variable(Array::full({16, 16}, real(0.1)));
  const std::vector<std::int32_t> ids = {1, 5, 3, 1};
  const auto step = [&] {
    const Tensor x = embedding(w, ids);
    Tensor y = layer_norm(x, sum(w, 0), Tensor());
    y = dropout_add(gelu(y), x, real(0.1), RandomKey{});
    y = softmax(concat(std::vector<Tensor>{y, x}, 1));
    const Gradients g = backward(mean(mul(y, y)));
    return g[w];
  };
  release_block(allocate_block(100));
  const auto warm = arena_counters().system_allocations;
  release_block(allocate_block(100));
  // With AddressSanitizer, the arena reuses no memory.
  if (arena_counters().system_allocations != warm) return;
  for (int i = 0; i < 3; ++i) step();
  const MemoryCounters before = arena_counters();
  for (int i = 0; i < 20; ++i) step();
  BOOST_TEST(arena_counters().system_allocations == before.system_allocations);
  BOOST_TEST(arena_counters().system_bytes == before.system_bytes);
}

BOOST_AUTO_TEST_CASE(op_whose_result_has_no_gradient_passes_on_zeros) {
  struct AddsNothing {
    Array forward(const Array& x) { return x.clone(); }
    void backward(const Array&, Grad) const {}
  };
  const Tensor x = Tensor::variable(Array({{1, 2, 3}, {4, 5, 6}}));
  const Tensor y = apply(AddsNothing{}, tanh(scale(x, 2)));
  const Gradients g = backward(y, Array::full({2, 3}, 1));
  BOOST_TEST(g.depends_on(x));
  BOOST_TEST(same_bits(g[x], Array::zeros({2, 3})));
}

BOOST_AUTO_TEST_CASE(the_input_that_was_changed_before_backward_is_named) {
  Tensor a = variable({2}, {3, 5}), b = variable({2}, {1, 2});
  const Tensor y = mul(a, b);
  b.mutable_value().values()[0] = 7;
  EXPECT_FAIL(backward(sum(y)), "[backward of Mul] input 1 of shape [2], which backward needs");
}

BOOST_AUTO_TEST_CASE(errors_in_the_backward_of_an_op_keep_their_exit_code) {
  const Tensor x = variable({2}, {1, 2});
  const Tensor y =
      apply(Given{[](const Array&, const Grad&) { throw Error(Exit::io, "the disk is full"); }}, x);
  try {
    backward(sum(y));
    BOOST_ERROR("backward did not throw");
  } catch (const Error& error) {
    BOOST_TEST((error.code == Exit::io));
    BOOST_TEST(std::string(error.what()) == "[backward of Given] the disk is full");
  }
}

BOOST_AUTO_TEST_CASE(a_partial_sum_has_the_shape_of_its_variable) {
  const Tensor x = variable({2}, {1, 2});
  Gradients partial;
  EXPECT_FAIL(partial.begin(x, Array::zeros({2, 1})),
              "[gradients] expected a partial sum of shape [2], got [2, 1]");
  EXPECT_FAIL(partial.begin(x, Array::zeros({3})), "got [3]");
}

BOOST_AUTO_TEST_CASE(the_first_non_finite_value_is_reported_with_its_position) {
  const Tensor w = variable({2, 1, 3}, {1, 1, 1, 1, -1, 1}), other = variable({2}, {1, 2});
  const std::vector<NamedTensor> parameters{{"layer.w", w}};
  const auto found_by = [&](const auto& run) {
    const FiniteCheck check(parameters);
    run();
    return check.found() ? check.found()->text() : "";
  };
  BOOST_TEST(found_by([&] { log(w); }) ==
             "the result of Elementwise at layer.w: shape [2, 1, 3], nan at row 1, column 1");
  BOOST_TEST(found_by([&] { log(scale(w, 2)); }) ==
             "the result of Elementwise after layer.w: shape [2, 1, 3], nan at row 1, column 1");
  BOOST_TEST(found_by([&] { backward(sum(log(other))); }) == "");
  const auto infinite = [](const Tensor& x) {  // the gradient of the second input is infinite
    return sum(apply(GivenPair{[](const Array& dy, const Grad& da, const Grad& db) {
                       da.add(dy);
                       db.add(Array::full(db.shape(), -std::numeric_limits<real>::infinity()));
                     }},
                     neg(x), x));
  };
  BOOST_TEST(found_by([&] { backward(infinite(scale(other, 2))); }) ==
             "the gradient of input 1 of GivenPair: shape [2], -inf at row 0, column 0");
  BOOST_TEST(found_by([&] { backward(infinite(w)); }) ==
             "the gradient of layer.w: shape [2, 1, 3], -inf at row 0, column 0");
  // The sign of a NaN is meaningless.
  const Array negative = array_of({2}, {1, -std::numeric_limits<double>::quiet_NaN()});
  BOOST_TEST(find_non_finite(negative, "x")->text() == "x: shape [2], nan at row 0, column 1");
}

BOOST_AUTO_TEST_SUITE_END()
