#pragma once
/// Broken configs, each with the exact message that it must give.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "tests/train/schema_cases.h"
#include "train/config/config.h"

/// Something to train on, as the first lines of a case.
inline const std::string copy = "data: {synthetic: {name: copy}}\n";
inline const std::string files = "data: {train: {source: a, target: b}}\n";
inline const std::string lm = "task: lm\ndata: {train: {text: t}}\n";

/// The choices of `task`, as messages list them.
inline std::string tasks() {
  std::string names;
  for (const std::string_view name : heed::names_of(heed::TaskKind{}))
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

struct BrokenConfig {
  std::string text;
  std::string message;
  std::vector<std::string> overrides = {};
};

/// The refusal of a config, or "accepted".
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
