// Compares the gradients of every op with finite differences, and checks that no op is left out.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "autograd/gradcheck.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/op_table.h"
#include "tests/autograd/right_or_empty.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(op_table_suite)

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string root = HEED_SOURCE_DIR;

/// The parts of the text that the pattern's group matches, without duplicates.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
    found.insert((*i)[1]);
  return found;
}

/// The names of the functions that return a Tensor or an AttentionResult, from all headers that
/// ops.h includes.
std::set<std::string> declared_ops() {
  std::set<std::string> names;
  for (const std::string& header :
       matches(read_file(root + "/autograd/ops.h"), "#include \"(autograd/ops/[^\"]+)\"")) {
    names.merge(matches(read_file(root + "/" + header),
                        "(?:^|\n)(?:Tensor|AttentionResult)\\s+(\\w+)\\s*\\("));
  }
  return names;
}

Tensor flat(const Tensor& x) { return reshape(x, {x.size()}); }

/// Checks the gradients of f with respect to every defined input except input `constant`.
GradcheckResult check(const OpCase& c, const std::function<Tensor(const std::vector<Tensor>&)>& f,
                      std::size_t constant) {
  std::vector<Tensor> inputs;
  std::vector<NamedTensor> variables;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const bool variable = c.inputs[i].defined() && i != constant;
    inputs.push_back(variable ? Tensor::variable(c.inputs[i].value().clone()) : c.inputs[i]);
    if (variable) variables.push_back({fmt::format("input {}", i), inputs.back()});
  }
  GradcheckOptions options;
  options.rel = 1e-6;
  options.abs = 1e-8;
  options.ignore_infinite_outputs = c.ignore_infinite_outputs;
  return gradcheck_parameters([&] { return f(inputs); }, variables, options);
}

void check_right(const GradcheckResult& result) { BOOST_TEST(right_or_empty(result), result); }

constexpr auto none = static_cast<std::size_t>(-1);

void check_case(const OpCase& c) {
  check_right(check(c, c.f, none));
  std::size_t defined = 0;
  for (const Tensor& x : c.inputs) defined += x.defined();
  for (std::size_t i = 0; defined > 1 && i < c.inputs.size(); ++i) {
    BOOST_TEST_CONTEXT("input " << i << " constant")
    if (c.inputs[i].defined()) check_right(check(c, c.f, i));
  }
  // Backward reaches another use of the inputs first, so the op must add to their gradients.
  const auto used_twice = [&](const std::vector<Tensor>& x) {
    std::vector<Tensor> parts{flat(c.f(x))};
    for (const Tensor& one : x) {
      if (one.defined()) parts.push_back(flat(one));
    }
    return concat(parts, 0);
  };
  BOOST_TEST_CONTEXT("inputs used twice") check_right(check(c, used_twice, none));
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_op_has_a_row_and_every_row_names_an_op) {
  const std::set<std::string> declared = declared_ops();
  BOOST_TEST(declared.size() > 30u);  // otherwise the pattern no longer matches the headers
  std::set<std::string> rows;
  for (const OpRow& row : op_table()) {
    BOOST_TEST(rows.insert(row.op).second, row.op << " has two rows");
    BOOST_TEST(declared.contains(row.op),
               row.op << " is not declared in any header that ops.h includes");
    BOOST_TEST(!row.cases.empty(), row.op << " has no case");
    std::set<std::string> names;
    for (const OpCase& c : row.cases)
      BOOST_TEST(names.insert(c.name).second, row.op << " has two cases named " << c.name);
  }
  for (const std::string& op : declared)
    BOOST_TEST(rows.contains(op), op << " has no row in the gradcheck table");
}

BOOST_AUTO_TEST_CASE(ops_h_includes_every_header_of_ops) {
  const std::string all = read_file(root + "/autograd/ops.h");
  for (const auto& entry : std::filesystem::directory_iterator(root + "/autograd/ops")) {
    if (entry.path().extension() != ".h") continue;
    const std::string name = entry.path().filename().string();
    BOOST_TEST(all.find("\"autograd/ops/" + name + "\"") != std::string::npos,
               "autograd/ops.h does not include " << name);
  }
}

BOOST_AUTO_TEST_CASE(the_fuzzer_calls_every_op) {
  const std::set<std::string> called =
      matches(read_file(root + "/tests/fuzz/op_calls.cpp"), "\\{\"(\\w+)\", (?:true|false),");
  for (const std::string& op : declared_ops())
    BOOST_TEST(called.contains(op), op << " is missing from tests/fuzz/op_calls.cpp");
}

BOOST_AUTO_TEST_CASE(the_documentation_lists_every_op) {
  const std::set<std::string> listed = matches(read_file(root + "/docs/OPS.md"), "`(\\w+)`");
  for (const std::string& op : declared_ops())
    BOOST_TEST(listed.contains(op), op << " is missing from docs/OPS.md");
}

BOOST_AUTO_TEST_CASE(gradients_of_every_op_agree_with_finite_differences) {
  for (const OpRow& row : op_table()) {
    for (const OpCase& c : row.cases) {
      BOOST_TEST_CONTEXT(row.op << " " << c.name) BOOST_CHECK_NO_THROW(check_case(c));
    }
  }
}

BOOST_AUTO_TEST_CASE(ops_on_constants_record_nothing_and_return_the_same_values) {
  for (const OpRow& row : op_table()) {
    for (const OpCase& c : row.cases) {
      BOOST_TEST_CONTEXT(row.op << " " << c.name) {
        const Tensor plain = c.f(c.inputs);
        BOOST_TEST(!plain.needs_grad());
        std::vector<Tensor> variables;
        for (const Tensor& x : c.inputs)
          variables.push_back(x.defined() ? Tensor::variable(x.value()) : x);
        const Tensor recorded = c.f(variables);
        BOOST_TEST(recorded.needs_grad());
        BOOST_TEST(recorded.shape() == plain.shape());
        BOOST_TEST(std::ranges::equal(recorded.value().values(), plain.value().values()));
        const NoGrad no_grad;
        const Tensor unrecorded = c.f(variables);  // dropout with p = 0 returns x itself
        BOOST_TEST((!unrecorded.needs_grad() || unrecorded.node()->leaf()));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
