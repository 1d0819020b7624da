#pragma once
/// Helpers for tests of invalid configs and of the exact messages expected for them.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "tests/train/schema_cases.h"
#include "train/config/config.h"

/// Beginnings of configs, which set the training data. Most configs of the tests begin with one.
inline const std::string copy = "data: {synthetic: {name: copy}}\n";
inline const std::string files = "data: {train: {source: a, target: b}}\n";
inline const std::string lm = "task: lm\ndata: {train: {text: t}}\n";

/// The choices of `task`, as listed in messages. They are derived from TaskKind, so that a new task
/// requires no change to a test.
inline std::string tasks() {
  return fmt::format("{}", fmt::join(heed::names_of(heed::TaskKind{}), ", "));
}

inline std::string choices_of(std::string_view key) {
  return fmt::format("{}", fmt::join(heed::find_field(key)->choices, ", "));
}

/// The choices of a key except "none", as in "a, b or c".
inline std::string either_of(std::string_view key) {
  std::vector<std::string> names = heed::find_field(key)->choices;
  std::erase(names, "none");
  return heed::either(names);
}

/// The names of the rows of a table for which `holds` is true, as in "a, b or c": a new row requires
/// no change to a test.
template <class Table, class Holds>
std::string either_where(const Table& table, const Holds& holds) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    if (std::invoke(holds, row)) names.emplace_back(row.name);
  }
  return heed::either(names);
}

/// A message such as "only for task: seq2seq or tag".
template <class Holds>
std::string only_for(const Holds& holds) {
  return "only for task: " + either_where(heed::task_table(), holds);
}

struct BrokenConfig {
  std::string text;
  std::string message;
  std::vector<std::string> overrides = {};
};

/// The error message for a config, or "accepted". Records the config and the result for
/// test_schema.py.
inline std::string refusal(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
  std::string message = "accepted";
  const heed::SchemaCase schema_case(text, overrides);
  try {
    heed::parse_config(text, "exp.yaml", overrides);
    schema_case.record(message);
    return message;
  } catch (const heed::Error& error) {
    BOOST_TEST((error.code == heed::Exit::usage));
    message = error.what();
  }
  schema_case.record(message);
  return message;
}

inline void check_all(const std::vector<BrokenConfig>& cases) {
  for (const BrokenConfig& broken : cases) {
    BOOST_TEST_CONTEXT(broken.text << (broken.overrides.empty() ? "" : broken.overrides[0])) {
      BOOST_TEST(refusal(broken.text, broken.overrides) == broken.message);
    }
  }
}
