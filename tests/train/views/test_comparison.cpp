// `heed compare`: groups of runs, their spread, and verdicts.
#include <fmt/format.h>

#include "tests/train/support.h"
#include "train/results/comparison.h"
#include "train/run/jsonl.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(comparison)

namespace {

struct Runs {
  TempFolder folder;
  std::vector<RunResult> results;

  /// Adds a finished run with this value of exact match. Returns its folder.
  std::string add(const std::string& keys, double exact_match) {
    const std::string run = (folder / fmt::format("{}", results.size())).string();
    std::filesystem::create_directories(run);
    put(run + "/config.yaml",
        "task: seq2seq\ndata: {synthetic: {name: copy}}\ntrain: {best: exact_match}\n" + keys);
    put(run + "/metrics.jsonl",
        "{\"kind\":\"train\",\"step\":1,\"loss\":9}\n"
        "{\"kind\":\"valid\",\"step\":2,\"loss\":1,\"exact_match\":0.1}\n" +
            fmt::format(
                "{{\"kind\":\"test\",\"step\":3,\"seconds\":90,\"loss\":0.5,\"exact_match\":{}}}\n",
                exact_match) +
            "{\"kind\":\"valid\",\"step\":4,\"exact_ma");  // incomplete, as if still being written
    results.push_back(read_result(run));
    return run;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(runs_that_differ_only_in_seed_name_and_threads_form_one_group) {
  Runs runs;
  runs.add("seed: 1\nname: a\nmodel: {norm: pre}\n", 0.80);
  runs.add("seed: 1\nname: b\nmodel: {norm: post}\n", 0.90);
  runs.add("seed: 2\nname: c\nthreads: 1\nmodel: {norm: pre}\n", 0.84);
  runs.add("seed: 2\nname: d\nmodel: {norm: post}\n", 0.88);
  const Comparison comparison(runs.results);
  BOOST_TEST(comparison.keys() == std::vector<std::string>{"model.norm"},
             boost::test_tools::per_element());
  BOOST_REQUIRE(comparison.groups().size() == 2);
  BOOST_TEST((comparison.main() == Metric::exact_match));
  const Spread pre = comparison.spread(comparison.groups()[0], Metric::exact_match);
  BOOST_TEST(pre.count == 2);
  BOOST_TEST(pre.mean == 0.82, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(pre.deviation == 0.04 / std::sqrt(2), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(pre.low == 0.80);
  BOOST_TEST(pre.high == 0.84);
  BOOST_TEST(comparison.text() ==
             "model.norm  seeds  data  loss             exact match       minutes\n"
             "pre         2      test  0.5000 ± 0.0000  82.00 % ± 2.83 %  1.5\n"
             "post        2      test  0.5000 ± 0.0000  89.00 % ± 1.41 %  1.5\n"
             "model.norm=post: exact match higher by 7.00 points: the ranges of 2 and 2 seeds do "
             "not overlap\n");
  BOOST_TEST(comparison.markdown() ==
             "| model.norm | seeds | data | loss | exact match | minutes |\n"
             "|---|---:|---:|---:|---:|---:|\n"
             "| pre | 2 | test | 0.5000 ± 0.0000 | 82.00 % ± 2.83 % | 1.5 |\n"
             "| post | 2 | test | 0.5000 ± 0.0000 | 89.00 % ± 1.41 % | 1.5 |\n"
             "\n- model.norm=post: exact match higher by 7.00 points: the ranges of 2 and 2 seeds "
             "do not overlap\n");
  BOOST_TEST(comparison.latex() ==
             R"(\begin{tabular}{lrrrrr}
\toprule
model.norm & seeds & data & loss & exact match & minutes \\
\midrule
pre & 2 & test & 0.5000 $\pm$ 0.0000 & 82.00 \% $\pm$ 2.83 \% & 1.5 \\
post & 2 & test & 0.5000 $\pm$ 0.0000 & 89.00 \% $\pm$ 1.41 \% & 1.5 \\
\bottomrule
\end{tabular}
% model.norm=post: exact match higher by 7.00 points: the ranges of 2 and 2 seeds do not overlap
)");
  const nlohmann::json record = comparison.json();
  BOOST_TEST(record["groups"][1]["config"]["model.norm"] == "post");
  BOOST_TEST(record["groups"][1]["runs"].size() == 2);
  BOOST_TEST(record["groups"][1]["metrics"]["exact_match"]["low"] == 0.88);
}

BOOST_AUTO_TEST_CASE(bars_in_values_are_escaped_in_markdown) {
  Runs runs;
  runs.add("seed: 1\n", 0.80);
  runs.add("tokenizer: {specials: [\"<a|b>\"]}\n", 0.90);
  const std::string markdown = Comparison(runs.results).markdown();
  BOOST_TEST(contains(markdown, "<a\\|b>"), markdown);
  BOOST_TEST(!contains(markdown, "| <a|b>"), markdown);
}

BOOST_AUTO_TEST_CASE(overlapping_ranges_and_single_seeds_are_reported) {
  Runs runs;
  runs.add("seed: 1\n", 0.80);
  runs.add("seed: 2\n", 0.90);
  runs.add("seed: 1\nmodel: {heads: 2}\n", 0.70);
  runs.add("seed: 2\nmodel: {heads: 2}\n", 0.82);
  runs.add("seed: 1\nmodel: {heads: 1}\n", 0.1);
  const std::vector<std::string> verdicts = Comparison(runs.results).verdicts();
  BOOST_REQUIRE(verdicts.size() == 2);
  BOOST_TEST(
      verdicts[0] ==
      "model.heads=2: exact match lower by 9.00 points: the ranges of 2 and 2 seeds overlap");
  BOOST_TEST(verdicts[1] ==
             "model.heads=1: exact match lower by 75.00 points: one seed cannot show how much "
             "results vary between seeds");
}

BOOST_AUTO_TEST_CASE(labels_of_groups_name_their_keys) {
  Runs runs;
  runs.add("model: {norm: pre, layers: {encoder: 2, decoder: 1}}\n", 0.5);
  runs.add("model: {norm: post, layers: {encoder: 4, decoder: 1}}\n", 0.5);
  const Comparison two(runs.results);
  BOOST_TEST(two.label(two.groups()[0]) == "layers.encoder 2, norm pre");
  BOOST_TEST(two.label(two.groups()[1]) == "layers.encoder 4, norm post");
  Runs equal;
  equal.add("model: {layers: 2, heads: 4}\n", 0.5);
  equal.add("model: {layers: 6, heads: 2}\n", 0.5);
  const Comparison deep(equal.results);
  BOOST_TEST(deep.label(deep.groups()[1]) == "heads 2, layers 6");
  equal.add("model: {layers: {encoder: 6, decoder: 2}}\n", 0.5);
  const Comparison uneven(equal.results);
  BOOST_TEST(uneven.label(uneven.groups()[1]) == "heads 2, layers.encoder 6, layers.decoder 6");
  runs.add("optim: {schedule: {name: linear}}\n", 0.5);
  const Comparison three(runs.results);
  BOOST_TEST(contains(three.label(three.groups()[2]), "schedule.name linear"));
  runs.results.resize(1);
  const Comparison alone(runs.results);
  BOOST_TEST(alone.label(alone.groups()[0]) == runs.results[0].folder);
}

// Lines of symbols are judged by exact match, texts by BLEU and chrF2, summaries also by ROUGE.
BOOST_AUTO_TEST_CASE(tables_contain_the_metrics_that_train_best_suggests) {
  const std::vector<std::string> text{"BLEU", "chrF2"}, summary{"ROUGE-1", "ROUGE-2", "ROUGE-L"};
  for (const auto& [best, has_text, has_rouge] : {std::tuple("exact_match", false, false),
                                                  {"token_accuracy", false, false},
                                                  {"loss", true, false},
                                                  {"chrf", true, false},
                                                  {"rouge_2", true, true}}) {
    Runs runs;
    const std::string run = runs.add("", 0.5);
    put(run + "/config.yaml",
        fmt::format("data: {{synthetic: {{name: copy}}}}\ntrain: {{best: {}}}\n", best));
    nlohmann::json test{{"kind", "test"}, {"step", 3}};
    for (const char* metric : {"loss", "perplexity", "token_accuracy", "exact_match", "bleu",
                               "chrf", "rouge_1", "rouge_2", "rouge_l"})
      test[metric] = 0.5;
    put(run + "/metrics.jsonl", test.dump() + "\n");
    const std::vector<RunResult> results{read_result(run)};
    const Comparison comparison(results);
    for (const char* name : {"loss", "perplexity", "token accuracy", "exact match"})
      BOOST_TEST(contains(comparison.text(), name), best);
    for (const std::string& name : text)
      BOOST_TEST(contains(comparison.text(), name) == has_text, best << ": " << name);
    for (const std::string& name : summary)
      BOOST_TEST(contains(comparison.text(), name) == has_rouge, best << ": " << name);
    BOOST_TEST(comparison.json()["groups"][0]["metrics"].size() == 9, best);
  }
}

BOOST_AUTO_TEST_CASE(runs_of_different_tasks_are_refused) {
  Runs runs;
  const std::string changed = runs.add("seed: 1\n", 0.5);
  runs.add("seed: 1\n", 0.5);
  put(changed + "/config.yaml", "task: tag\ndata: {synthetic: {name: brackets}}\n");
  runs.results.front() = read_result(changed);
  HEED_CHECK_ERROR(Exit::usage, "/0 is a run of task tag, ", Comparison(runs.results));
}

BOOST_AUTO_TEST_CASE(repeated_seed_counts_once_and_repeated_run_is_refused) {
  Runs runs;
  const std::string run = runs.add("seed: 1\n", 0.5);
  runs.add("seed: 1\nname: repeated\n", 0.5);
  runs.add("seed: 1\nmodel: {heads: 2}\n", 0.5);
  const Comparison comparison(runs.results);
  BOOST_TEST(comparison.verdicts().at(0) ==
             "model.heads=2: exact match the same: one seed cannot show how much results vary "
             "between seeds");
  BOOST_TEST(comparison.text().find("\n4            1      test") != std::string::npos,
             comparison.text());
  runs.results.push_back(read_result(run + "/."));
  HEED_CHECK_ERROR(Exit::usage, "/0/. is given twice", Comparison(runs.results));
}

BOOST_AUTO_TEST_CASE(metrics_measured_on_different_data_are_not_compared) {
  Runs runs;
  runs.add("seed: 1\n", 0.5);
  const std::string changed = runs.add("seed: 2\n", 0.5),
                    third = runs.add("model: {heads: 2}\n", 0.5);
  put(changed + "/metrics.jsonl", "{\"kind\":\"valid\",\"step\":9,\"loss\":2}\n");
  runs.results[1] = read_result(changed);
  const Comparison comparison(runs.results);
  BOOST_TEST(comparison.verdicts().at(0) ==
             "model.heads=2: exact match was measured on other data (test)");
  BOOST_TEST(comparison.text().find("test; valid, step 9") != std::string::npos);
  BOOST_TEST(comparison.text().find("50.00 % (1 of 2 runs)") != std::string::npos);
  put(third + "/metrics.jsonl",
      "{\"kind\":\"test\",\"step\":5,\"loss\":1}\n{\"kind\":\"valid\",\"step\":5}\n");
  BOOST_TEST(read_result(third).where == "test");
  put(third + "/metrics.jsonl",
      "{\"kind\":\"test\",\"step\":5,\"loss\":1}\n{\"kind\":\"valid\",\"step\":8}\n");
  BOOST_TEST(read_result(third).where == "valid, step 8");  // the run was resumed after its test
}

BOOST_AUTO_TEST_CASE(metrics_measured_on_different_lines_are_not_compared) {
  Runs runs;
  runs.add("seed: 1\n", 0.5);
  const std::string changed = runs.add("model: {heads: 2}\n", 0.5);
  const auto verdict_with = [&](const std::string& lines) {
    put(changed + "/metrics.jsonl",
        "{\"kind\":\"test\",\"step\":9,\"loss\":2,\"exact_match\":0.5" + lines + "}\n");
    runs.results[1] = read_result(changed);
    return Comparison(runs.results).verdicts().at(0);
  };
  const std::string same = verdict_with(R"(,"lines":"ab")");  // run 0 has no checksum of its lines
  BOOST_TEST(contains(same, "exact match the same"), same);
  runs.results[0].record["lines"] = "ab";
  BOOST_TEST(verdict_with(R"(,"lines":"ab")") == same);
  BOOST_TEST(verdict_with(R"(,"lines":"cd")") ==
             "model.heads=2: exact match was measured on other lines");
  runs.results[0].config.seed = 2;  // generated data depend on the seed
  BOOST_TEST(verdict_with(R"(,"lines":"cd")") == same);
  for (RunResult& result : runs.results) {  // files do not
    result.config.data.synthetic.name = SyntheticKind::none;
    result.config.data.train = {{"a.de"}, {"a.en"}, {}};
  }
  BOOST_TEST(Comparison(runs.results).verdicts().at(0) ==
             "model.heads=2: exact match was measured on other lines");
}

BOOST_AUTO_TEST_CASE(field_of_the_wrong_type_is_refused_with_its_name) {
  Runs runs;
  const std::string run = runs.add("", 0.5), file = run + "/metrics.jsonl";
  for (const auto& [field, message] :
       {std::pair{"\"step\":null", "step: expected a whole number, got null"},
        {"\"kind\":5", "kind: expected a string, got 5"},
        {"\"seconds\":\"now\"", "seconds: expected a number, got \"now\""},
        {"\"bleu_signature\":[]", "bleu_signature: expected a string, got []"}}) {
    put(file, fmt::format("{{\"kind\":\"train\",\"step\":1}}\n{{{}}}\n", field));
    BOOST_TEST(contains(error_of(Exit::bad_input, [&] { read_result(run); }),
                        fmt::format("{}:2: {}", file, message)));
  }
}

BOOST_AUTO_TEST_CASE(derived_run_has_its_last_evaluation_on_a_split_and_a_row_of_its_own) {
  Runs runs;
  const std::string trained = runs.add("seed: 1\n", 0.5), pruned = runs.add("seed: 1\n", 0.1);
  put(pruned + "/metrics.jsonl", "{\"kind\":\"pruned\",\"from\":\"a_b\",\"removed_heads\":12}\n");
  HEED_CHECK_ERROR(Exit::bad_input, "heed eval " + pruned + " measures", read_result(pruned));
  const auto evaluation = [](const char* split, const char* settings, double exact_match) {
    return fmt::format(
        "{{\"split\":\"{}\",\"settings\":\"{}\",\"lines\":\"\",\"exact_match\":{}}}\n", split,
        settings, exact_match);
  };
  const std::string file = pruned + "/evaluations.jsonl";
  put(file, evaluation("valid", "", 0.2) + evaluation("files", "", 0.9));
  BOOST_TEST(read_result(pruned).where == "valid");
  put(file, evaluation("test", "", 0.3) + evaluation("test", "", 0.25) +
                evaluation("test", "decode.beam=1", 0.8) + evaluation("valid", "", 0.7));
  const std::vector<RunResult> both{read_result(trained), read_result(pruned)};
  BOOST_TEST(both[1].where == "test");
  const Comparison comparison(both);
  BOOST_TEST(
      comparison.text() ==
      "weights           seeds  data  loss    exact match  minutes\n"
      "trained           1      test  0.5000  50.00 %      1.5\n"
      "pruned, 12 heads  1      test  -       25.00 %      0.0\n"
      "weights=pruned, 12 heads: exact match lower by 25.00 points: one seed cannot show how "
      "much results vary between seeds\n");
  BOOST_TEST(comparison.json()["groups"][1]["config"]["weights"] == "pruned, 12 heads");
  put(file, "{\"split\":\"test\"}\n");
  HEED_CHECK_ERROR(Exit::bad_input, "evaluations.jsonl: not the record of an evaluation",
                   read_result(pruned));
}

// Otherwise, they would count as two runs of one setting.
BOOST_AUTO_TEST_CASE(copies_that_were_derived_in_other_ways_have_rows_of_their_own) {
  Runs runs;
  std::vector<RunResult> results{read_result(runs.add("seed: 1\n", 0.5))};
  for (const char* record :
       {R"({"kind":"quantised"})", R"({"kind":"pruned","removed_heads":3})",
        R"({"kind":"quantised","earlier":[{"kind":"pruned","removed_heads":3}]})",
        R"({"kind":"pruned","zero_weights":9,"earlier":[{"kind":"pruned","removed_heads":3}]})"}) {
    const std::string copy = runs.add("seed: 1\n", 0.5);
    put(copy + "/metrics.jsonl", std::string(record) + "\n");
    put(copy + "/evaluations.jsonl",
        R"({"split":"test","settings":"","lines":"","exact_match":0.5})"
        "\n");
    results.push_back(read_result(copy));
  }
  std::vector<std::string> names;
  const Comparison comparison(results);
  for (const RunGroup& group : comparison.groups()) names.push_back(group.values.front());
  const std::vector<std::string> expected{"trained", "quantised", "pruned, 3 heads",
                                          "pruned, 3 heads, then quantised",
                                          "pruned, 3 heads, then pruned, 9 zero weights"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(run_without_test_metrics_has_the_metrics_of_its_last_validation) {
  Runs runs;
  const std::string run = runs.add("seed: 1\n", 0.5);
  put(run + "/metrics.jsonl", "{\"kind\":\"valid\",\"step\":20,\"exact_match\":0.25}\n");
  const RunResult result = read_result(run);
  BOOST_TEST(result.where == "valid, step 20");
  const std::vector<RunResult> alone{result};
  BOOST_TEST(Comparison(alone).text().find("25.00 %") != std::string::npos);
  BOOST_TEST(Comparison(alone).verdicts().empty());

  put(run + "/metrics.jsonl", "{\"kind\":\"train\",\"step\":1}\n");
  HEED_CHECK_ERROR(Exit::bad_input, "no results yet", read_result(run));
  std::filesystem::remove(run + "/metrics.jsonl");
  HEED_CHECK_ERROR(Exit::bad_input, "no results yet", read_result(run));
  put(run + "/metrics.jsonl", "{\"kind\":\"train\"}\n[1]\n{}\n");
  HEED_CHECK_ERROR(Exit::bad_input, "metrics.jsonl:2: not a record", read_result(run));
  put(run + "/metrics.jsonl", "{\"kind\":\"train\"}\n{broken\n{}\n");
  HEED_CHECK_ERROR(Exit::bad_input, "metrics.jsonl:2", read_result(run));
  for (const char* record : {"{}", "{\"kind\":\"test\"}"}) {
    put(run + "/metrics.jsonl", std::string(record) + "\n");
    HEED_CHECK_ERROR(Exit::bad_input, "a record without kind or step: key '", read_result(run));
  }
  HEED_CHECK_ERROR(Exit::usage, "", read_result(run + "/none"));
}

BOOST_AUTO_TEST_SUITE_END()
