// `heed runs`: which folders are runs, and what is printed about each run.
#include "train/views/commands/run_list.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <sstream>

#include "tests/train/support.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_lock.h"
#include "train/terminal/table.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(run_list)

namespace {

constexpr const char* config =
    "name: a\ntask: seq2seq\ndata: {synthetic: {name: copy}}\ntrain: {steps: 40, best: "
    "exact_match}\n";
constexpr const char* valid =
    "{\"kind\":\"valid\",\"step\":20,\"seconds\":90,\"loss\":1,\"exact_match\":0.5}\n";
constexpr const char* chosen = "{\"kind\":\"weights\",\"step\":40,\"seconds\":120}\n";
constexpr const char* tested =
    "{\"kind\":\"test\",\"step\":40,\"seconds\":120,\"loss\":1,\"exact_match\":0.75}\n";

/// A folder of runs. Each run is an hour older than the next.
struct Folder {
  TempFolder folder;
  std::int64_t now = 1'800'000'000;
  int made = 0;

  std::filesystem::path run(const std::string& name, const std::string& yaml,
                            const std::string& metrics, std::int64_t checkpoint) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path / "checkpoints");
    if (checkpoint > 0)
      std::filesystem::create_directories(CheckpointFolder(path).folder_of(checkpoint));
    put(path / "config.yaml", yaml);
    put(path / "metrics.jsonl", metrics);
    const std::time_t then = now - 3600 * 10 + 3600 * ++made;
    for (const char* file : {"config.yaml", "metrics.jsonl"}) {
      const timespec times[2] = {{then, 0}, {then, 0}};
      ::utimensat(AT_FDCWD, (path / file).c_str(), times, 0);
    }
    return path;
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream text(text_of(list_runs(folder.path.string()), now));
    for (std::string line; std::getline(text, line);) {
      if (const std::size_t at = line.find(folder.path.string()); at == 0)
        line = line.substr(folder.path.string().size() + 1);
      all.push_back(line);
    }
    return all;
  }
};

/// The line with each sequence of two or more spaces replaced by a vertical bar.
std::string cells(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.compare(i, 2, "  ") != 0) {
      out += line[i];
      continue;
    }
    out += '|';
    i = line.find_first_not_of(' ', i) - 1;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_run_has_a_line_with_its_state) {
  Folder runs;
  runs.run("done", config, std::string(valid) + chosen + tested, 40);
  runs.run("deep/er/half", config, valid, 20);
  runs.run("empty", config, "", 0);
  runs.run("pruned", config, "{\"kind\":\"pruned\",\"from\":\"done\"}\n", 40);
  runs.run("wrong", "task: dance\n", valid, 20);
  runs.run("damaged", config, std::string("{\n") + valid, 20);
  const RunLock lock(runs.run("live", config, valid, 20));
  std::filesystem::create_directories(runs.folder / "not-a-run");
  put(runs.folder / "not-a-run/config.yaml", config);
  std::filesystem::create_directory_symlink(runs.folder.path, runs.folder / "not-a-run/again");

  const std::vector<std::string> lines = runs.lines();
  BOOST_REQUIRE(lines.size() == 8);
  BOOST_TEST(cells(lines[0]) == "run|task|state|step|figure|minutes|changed");
  BOOST_TEST(cells(lines[1]) == "done|seq2seq|finished|40|exact match 75.00 % (test)|2.0|9 h ago");
  BOOST_TEST(
      cells(lines[2]) ==
      "deep/er/half|seq2seq|stopped|20 of 40|exact match 50.00 % (valid, step 20)|1.5|8 h ago");
  BOOST_TEST(cells(lines[3]) == "empty|seq2seq|no checkpoint|0 of 40|-|0.0|7 h ago");
  BOOST_TEST(cells(lines[4]) == "pruned|seq2seq|pruned|40|-|0.0|6 h ago");
  BOOST_TEST(contains(cells(lines[5]), "wrong|-|broken: "));
  BOOST_TEST(contains(lines[5], "wrong/config.yaml:1:7: task: "));
  BOOST_TEST(contains(cells(lines[6]), "damaged|-|broken: "));
  BOOST_TEST(contains(lines[6], "damaged/metrics.jsonl:1: byte "));
  BOOST_TEST(cells(lines[7]) ==
             "live|seq2seq|running|20 of 40|exact match 50.00 % (valid, step 20)|1.5|3 h ago");
}

BOOST_AUTO_TEST_CASE(json_contains_state_and_metrics_of_each_run) {
  Folder runs;
  runs.run("done", config, std::string(valid) + tested, 40);
  runs.run("wrong", "task: dance\n", "", 20);
  const nlohmann::json all = json_of(list_runs(runs.folder.path.string()))["runs"];
  BOOST_REQUIRE(all.size() == 2);
  BOOST_TEST(all[0]["state"] == "finished");
  BOOST_TEST(all[0]["figures"]["exact_match"] == 0.75);
  BOOST_TEST(all[0]["metric"] == "exact_match");
  BOOST_TEST(all[0]["data"] == "test");
  BOOST_TEST(all[0]["steps"] == 40);
  BOOST_TEST(all[1]["state"] == "broken");
  BOOST_TEST(contains(all[1]["error"].get<std::string>(), "task: "));
}

BOOST_AUTO_TEST_CASE(plugins_of_listed_runs_are_not_loaded) {
  Folder runs;
  const std::string with_plugin =
      "task: my.task\nplugins: [nowhere.so]\ndata: {synthetic: {name: copy}}\n";
  const std::filesystem::path run = runs.run("a", with_plugin, valid, 20);
  put(run / "run.json", R"({"plugins": [{"file": "nowhere.so"}]})");
  const std::vector<RunLine> lines = list_runs(runs.folder.path.string());
  BOOST_REQUIRE(lines.size() == 1);
  BOOST_TEST(contains(lines[0].error, "task: "));  // the mistake itself
  BOOST_TEST(contains(lines[0].error,
                      "perhaps a name from a plugin, which `heed runs` does not "
                      "load: see `heed show " +
                          run.string() + "`"));
}

BOOST_AUTO_TEST_CASE(runs_are_found_in_a_folder_and_its_subfolders) {
  const TempFolder folder;
  HEED_CHECK_ERROR(Exit::usage, "nowhere: no such folder", list_runs(folder / "nowhere"));
  BOOST_TEST(list_runs(folder.path.string()).empty());
  Folder runs;
  // The folder may itself be a run.
  const std::filesystem::path run = runs.run("done", config, chosen, 40);
  BOOST_REQUIRE(list_runs(run.string()).size() == 1);
  BOOST_TEST(list_runs(run.string())[0].result.folder == run.string());
  runs.run("a/b/c/d", config, chosen, 40);  // four levels, the maximum depth
  runs.run("a/b/c/d/e", config, chosen, 40);
  BOOST_TEST(list_runs(runs.folder.path.string()).size() == 2);
}

BOOST_AUTO_TEST_CASE(cells_of_a_table_are_aligned) {
  BOOST_TEST(aligned({}) == "");
  BOOST_TEST(aligned({{"a", "b", "c"}, {"äää", "", "x"}, {"d", "long text"}}) ==
             "a    b  c\näää     x\nd    long text\n");
}

BOOST_AUTO_TEST_SUITE_END()
