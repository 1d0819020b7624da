// The check of chapter 1: values and gradients of random expressions against heed's own tape.
#include "check.h"
#include "exercise.h"

using namespace heed;
using namespace heed::course;
using chapter1::Tape;

namespace {

Array list(const std::vector<double>& values) {
  return Array({static_cast<std::int64_t>(values.size())}, values);
}

void value_of_add(Draw& draw) {
  Tape tape;
  const double a = draw.number(-2, 2), b = draw.number(-2, 2);
  const std::size_t y = tape.add(tape.variable(a), tape.variable(b));
  require_close(fmt::format("the value of {:.3g} + {:.3g}", a, b), tape.value(y), a + b);
}

void value_of_multiply(Draw& draw) {
  Tape tape;
  const double a = draw.number(-2, 2), b = draw.number(-2, 2);
  const std::size_t y = tape.multiply(tape.variable(a), tape.variable(b));
  require_close(fmt::format("the value of {:.3g} · {:.3g}", a, b), tape.value(y), a * b);
}

void value_of_exp(Draw& draw) {
  Tape tape;
  const double a = draw.number(-2, 2);
  require_close(fmt::format("the value of exp({:.3g})", a), tape.value(tape.exp(tape.variable(a))),
                std::exp(a));
}

/// The gradients of y, one for each entry; refuses entries that the walk could not read.
std::vector<double> gradients_of(const Tape& tape, std::size_t y) {
  for (std::size_t i = 0; i < tape.entries.size(); ++i) {
    const chapter1::Entry& entry = tape.entries[i];
    require(entry.inputs.size() == entry.derivatives.size(),
            fmt::format("entry {} of the tape has {} inputs and {} derivatives", i,
                        entry.inputs.size(), entry.derivatives.size()));
    for (const std::size_t input : entry.inputs)
      require(input < i,
              fmt::format("entry {} of the tape reads entry {}, which is not before it", i, input));
  }
  std::vector<double> g = tape.gradients(y);
  require(g.size() == tape.entries.size(),
          fmt::format("gradients returns {} numbers for a tape of {} entries", g.size(),
                      tape.entries.size()));
  return g;
}

/// z = f(x, y) with known derivatives.
void require_derivatives(const std::string& what, std::size_t (*f)(Tape&, std::size_t, std::size_t),
                         double x, double y, double dx, double dy,
                         const std::vector<std::pair<std::string, std::vector<double>>>& known) {
  Tape tape;
  const std::size_t a = tape.variable(x), b = tape.variable(y), z = f(tape, a, b);
  const std::vector<double> g = gradients_of(tape, z);
  const double value = tape.value(z);
  std::vector<Mistake> mistakes{
      {"all values are 0: the walk begins at y with dy/dy = 1, and a contribution is dy/dz times a "
       "derivative",
       list({0, 0})},
      {"the value of the result is a factor: dy/dy is 1, and a contribution is dy/dz times a "
       "derivative",
       list({value * dx, value * dy})}};
  for (const auto& [sentence, values] : known) mistakes.push_back({sentence, list(values)});
  const std::string gradient =
      fmt::format("the gradient of {} for x = {:.3g}, y = {:.3g}", what, x, y);
  require_same(gradient, list({g[a], g[b]}), list({dx, dy}), mistakes);
  const std::vector<double> again = gradients_of(tape, z);
  require_same(gradient + ", in a second call,", list({again[a], again[b]}), list({dx, dy}),
               {{"gradients of the call before are left over: each call begins with 0",
                 list({2 * dx, 2 * dy})}});
}

void derivatives_of_add(Draw& draw) {
  require_derivatives(
      "x + y", [](Tape& t, std::size_t a, std::size_t b) { return t.add(a, b); }, draw.number(1, 2),
      draw.number(2, 3), 1, 1,
      {{"one input has no derivative", {1, 0}},
       {"every value is 2 times the expected one: all entries but y begin with 0, and "
        "a contribution is dy/dz times a derivative, not their sum",
        {2, 2}}});
}

void derivatives_of_multiply(Draw& draw) {
  const double x = draw.number(1, 2), y = draw.number(2, 3);
  require_derivatives("x · y",
                      [](Tape& t, std::size_t a, std::size_t b) { return t.multiply(a, b); }, x, y,
                      y, x, {{"the two derivatives are exchanged: d(x · y)/dx = y", {x, y}}});
}

void derivative_of_exp(Draw& draw) {
  const double x = draw.number(1, 2);
  require_derivatives(
      "exp(x)", [](Tape& t, std::size_t a, std::size_t) { return t.exp(a); }, x, 3, std::exp(x), 0,
      {{"the derivative of exp is exp(x), not x", {x, 0}},
       {"the derivative of exp is not 1", {1, 0}},
       {"the derivative of exp is its result e^x, not the exponential of the result",
        {std::exp(std::exp(x)), 0}},
       {"exp has one input and one derivative", {2 * std::exp(x), 0}}});
}

void read_twice(Draw& draw) {
  const double x = draw.number(1, 2);
  require_derivatives(
      "x · x + x", [](Tape& t, std::size_t a, std::size_t) { return t.add(t.multiply(a, a), a); },
      x, 3, 2 * x + 1, 0,
      {{"a later contribution overwrites an earlier one instead of being added", {x, 0}},
       {"only the newest entry gives a contribution: walk from the newest entry to the oldest",
        {1, 0}},
       {"the contribution of only one use is counted", {x + 1, 0}}});
}

void result_read_twice(Draw& draw) {
  const double x = draw.number(1, 2), y = std::exp(x);
  require_derivatives(
      "s + s with s = exp(x)",
      [](Tape& t, std::size_t a, std::size_t) {
        const std::size_t s = t.exp(a);
        return t.add(s, s);
      },
      x, 3, 2 * y, 0,
      {{"s is visited twice and passes on its first contribution both times: visit each entry once, "
        "when all later entries have added to it",
        {3 * y, 0}},
       {"s passes on the contribution of one use only: visit it when all later entries have added to "
        "it",
        {y, 0}}});
}

/// The same random expression on the exercise's tape and on heed's.
void random_expressions(Draw& draw) {
  const int variables = static_cast<int>(draw.extent(4, 2, 6)),
            operations = static_cast<int>(draw.extent(12, 8, 20));
  Tape tape;
  std::vector<Tensor> tensors;
  std::vector<std::size_t> places;
  for (int i = 0; i < variables; ++i) {
    const double value = draw.number(-1, 1);
    tensors.push_back(Tensor::variable(Array::scalar(value)));
    places.push_back(tape.variable(value));
  }
  for (int i = 0; i < operations; ++i) {
    const auto n = static_cast<std::uint32_t>(places.size());
    const std::size_t a = draw.random().below(n), b = draw.random().below(n);
    const std::uint32_t kind = draw.random().below(3);
    const bool small = tensors[a].item() < 1;  // so that a tower of exp does not overflow
    if (kind == 0 && small) {
      tensors.push_back(exp(tensors[a]));
      places.push_back(tape.exp(places[a]));
    } else if (kind == 1) {
      tensors.push_back(mul(tensors[a], tensors[b]));
      places.push_back(tape.multiply(places[a], places[b]));
    } else {
      tensors.push_back(add(tensors[a], tensors[b]));
      places.push_back(tape.add(places[a], places[b]));
    }
    require_close(fmt::format("the value of operation {} of a random expression", i + 1),
                  tape.value(places.back()), tensors.back().item());
  }
  Tensor sum = tensors.front();
  std::size_t place = places.front();
  for (std::size_t i = 1; i < places.size(); ++i) {
    sum = add(sum, tensors[i]);
    place = tape.add(place, places[i]);
  }
  const Gradients expected = backward(sum);
  const std::vector<double> g = gradients_of(tape, place);
  for (int i = 0; i < variables; ++i)
    require_close(fmt::format("the gradient of variable {} of a random expression", i + 1),
                  g[places[i]], expected[tensors[i]].item());
}

void other_end(Draw& draw) {
  const double x = draw.number(1, 2);
  Tape tape;
  const std::size_t a = tape.variable(x), b = tape.exp(a), later = tape.multiply(b, a);
  const std::vector<double> g = gradients_of(tape, b);
  require_close("the gradient of exp(x), an entry that is not the last of its tape,", g[a],
                std::exp(x));
  require_close("the gradient of exp(x) with respect to an entry after it", g[later], 0);
}

void every_entry(Draw& draw) {
  const double x = draw.number(1, 2);
  Tape tape;
  const std::size_t a = tape.variable(x), s = tape.exp(a), y = tape.multiply(s, a);
  const std::vector<double> g = gradients_of(tape, y);
  require_close("dy/dy, the gradient of y with respect to itself,", g[y], 1);
  require_close("the gradient of y = s · x with respect to s = exp(x), which is no variable,", g[s],
                x);
}

void not_reached(Draw& draw) {
  Tape tape;
  const std::size_t a = tape.variable(draw.number(1, 2)), b = tape.variable(draw.number(1, 2));
  const std::size_t y = tape.exp(a);
  require_close("the gradient of exp(x) with respect to a variable that it does not read",
                gradients_of(tape, y)[b], 0);
}

void repeatable(Draw& draw) {
  Tape tape;
  const double x = draw.number(1, 2);
  const std::size_t a = tape.variable(x), y = tape.multiply(a, a);
  const double first = tape.gradients(y)[a];
  require_close("the gradient of x · x in a second call of gradients", tape.gradients(y)[a], first);
}

/// A walk that follows every path takes 2²⁵ steps on the first tape, where one visit of each entry
/// takes 26. On the second tape it would take 2⁶⁰ steps and reach the time limit of the check.
void one_walk(Draw&) {
  for (const int additions : {25, 60}) {
    Tape tape;
    const std::size_t x = tape.variable(1);
    std::size_t y = x;
    for (int i = 0; i < additions; ++i) y = tape.add(y, y);
    require_within(
        fmt::format(
            "gradients of {} additions, each of the entry before it with itself, a tape of {} "
            "entries and 2^{} paths (visit each entry once),",
            additions, additions + 1, additions),
        0.04, [&] { require_close("dy/dx", tape.gradients(y)[x], std::pow(2.0, additions)); });
  }
}

void long_chain(Draw&) {
  Tape tape;
  const std::size_t x = tape.variable(1);
  std::size_t y = x;
  for (int i = 0; i < 200000; ++i) y = tape.add(y, x);
  require_close("the gradient of a sum of 200001 terms x", tape.gradients(y)[x], 200001);
}

}  // namespace

HEED_COURSE_CASES({
    {"values", "add", value_of_add},
    {"values", "multiply", value_of_multiply},
    {"values", "exp", value_of_exp},
    {"gradients", "add", derivatives_of_add},
    {"gradients", "multiply", derivatives_of_multiply},
    {"gradients", "exp", derivative_of_exp},
    {"gradients", "an entry that is read more than once", read_twice},
    {"gradients", "a result that is read twice", result_read_twice},
    {"gradients", "random expressions, compared with heed's tape", random_expressions},
    {"properties", "the gradient of any entry, not only of the last", other_end},
    {"properties", "the gradient of every entry, not only of variables", every_entry},
    {"properties", "0 for a variable that is not read", not_reached},
    {"properties", "a second call gives the same", repeatable},
    {"budgets", "one walk over the tape", one_walk},
    {"budgets", "a long tape", long_chain},
})
