#pragma once
/// Compares a table of mistakes and messages in a page of docs/ with the messages of real runs.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace heed {

struct Mistake {
  std::string kind, message;
};

/// Compares the first table of mistakes after `heading` with these rows. With HEED_UPDATE_DOCS=1,
/// replaces a table that differs.
inline void check_doc_table(const std::string& page, const std::string& heading,
                            const std::vector<Mistake>& rows) {
  std::string now = "| mistake | message |\n|---|---|\n";
  for (const Mistake& row : rows) {
    std::string reported = row.message;
    for (std::size_t at = 0; (at = reported.find('|', at)) != std::string::npos; at += 2)
      reported.insert(at, "\\");
    now += "| " + row.kind + " | " + reported + " |\n";
  }
  const std::string path = std::string(HEED_SOURCE_DIR) + "/docs/" + page;
  std::ostringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  const std::size_t begin = text.find("| mistake | message |", text.find(heading)),
                    end = text.find("\n\n", begin);
  BOOST_REQUIRE(begin != std::string::npos);
  const std::string shown = text.substr(begin, end == std::string::npos ? end : end + 1 - begin);
  if (shown != now && std::getenv("HEED_UPDATE_DOCS") != nullptr) {
    text.replace(begin, shown.size(), now);
    std::ofstream(path) << text;
    return;
  }
  BOOST_TEST(
      shown == now,
      "docs/" << page << " is out of date: to update it, run this test with HEED_UPDATE_DOCS=1");
}

}  // namespace heed
