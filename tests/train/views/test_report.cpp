// `heed report`: metrics of metrics.jsonl, intervals, paired tests, curves as CSV, hostile text.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "tests/train/support.h"
#include "train/metrics/bleu.h"
#include "train/metrics/chrf.h"
#include "train/views/report/runs/bootstrap.h"
#include "train/views/report/runs/output_charts.h"
#include "train/views/report/runs/report_page.h"

using namespace heed;
using namespace heed::test;

namespace {

const std::string hostile = "<script>alert(\"1\")</script>\x01'&" + std::string(10'000, 'x');

std::vector<SampleOutput> texts(int right) {
  std::vector<SampleOutput> all;
  for (int i = 0; i < 100; ++i) {
    const std::string target = fmt::format("the cat number {} sat on mat {}", i, i % 7);
    all.push_back(
        {fmt::format("source {}", i), target, i < right ? target : "the dog ran off", {}});
  }
  return all;
}

/// Writes a finished run with these outputs and their metrics, and returns its path. `keys` is
/// appended to its config. The losses are multiplied by `scale`.
std::string make_run(const TempFolder& folder, const std::string& name, const std::string& keys,
                     const std::vector<SampleOutput>& outputs, double scale = 1) {
  const RunFolder run{folder / name};
  std::filesystem::create_directories(run.path);
  put(run.config(),
      "task: seq2seq\ndata: {synthetic: {name: copy}}\ntrain: {best: bleu, steps: 400}\n" + keys);
  std::string metrics;
  for (int step = 100; step <= 400; step += 100) {
    metrics += fmt::format(
        "{{\"kind\":\"train\",\"step\":{0},\"loss\":{1},\"nll\":{1},\"lr\":0.001,"
        "\"gradient_norm\":0.5,\"seconds\":{0},\"target_tokens\":{2},\"tokens_per_s\":50,"
        "\"gradient_norms\":{{\"encoder.layers.0\":0.25,\"embedding\":0.125}}}}\n",
        step, scale * 100.0 / step, 50 * step);
    metrics += fmt::format("{{\"kind\":\"valid\",\"step\":{},\"loss\":{},\"bleu\":{}}}\n", step,
                           scale * 120.0 / step, step / 10.0);
  }
  std::vector<std::string> texts, references;
  for (const SampleOutput& sample : outputs) {
    texts.push_back(sample.output);
    references.push_back(sample.target);
  }
  nlohmann::json test{{"kind", "test"},
                      {"step", 400},
                      {"seconds", 400.5},
                      {"loss", 0.123456789012345},
                      {"bleu", corpus_bleu(texts, references).score},
                      {"bleu_signature", "nrefs:1|<x>"}};
  put(run.metrics(), metrics + test.dump() + "\n");
  put(run.log(), "2026-01-01 00:00:00  continuing from step 200\n");
  write_outputs(run, outputs);
  return run.path.string();
}

std::string page_of(const std::vector<std::string>& runs) {
  std::vector<History> histories;
  for (const std::string& run : runs) histories.push_back(read_history(run));
  return report_page(histories, {});
}

/// The exact values of the metrics in a page.
std::vector<double> data_values(const std::string& page) {
  std::vector<double> all;
  const std::regex element("<data value=\"([^\"]*)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), element), end; at != end; ++at)
    all.push_back(std::stod((*at)[1]));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(report)

BOOST_AUTO_TEST_CASE(page_contains_the_exact_metrics_of_the_run) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a", "", texts(60));
  const std::string page = page_of({run});
  const History history = read_history(run);
  for (const Metric metric : {Metric::loss, Metric::bleu}) {
    const double value = *figure(history.result, metric);
    const std::vector<double> all = data_values(page);
    BOOST_TEST((std::ranges::find(all, value) != all.end()), info_of(metric).name);
  }
  BOOST_TEST(contains(page, "best, step 400: 0.3</title>"));
  BOOST_TEST(contains(page, "continuing from step 200"));
  BOOST_TEST(contains(page, "norm of the gradient by layer"));
  BOOST_TEST(contains(page, "nrefs:1|&lt;x&gt;"));
  BOOST_TEST(contains(page, "95 % interval"));
  BOOST_TEST(!contains(page, "http://") == false);  // only in the namespace of SVG
  BOOST_TEST(
      !contains(std::regex_replace(page, std::regex("http://www.w3.org/2000/svg"), ""), "http"));
}

BOOST_AUTO_TEST_CASE(runs_that_differ_only_in_the_seed_share_a_line_and_a_band) {
  const TempFolder folder;
  const std::string page = page_of({make_run(folder, "a", "seed: 1\n", texts(60)),
                                    make_run(folder, "b", "seed: 2\n", texts(64), 2),
                                    make_run(folder, "c", "model: {norm: post}\n", texts(30))});
  BOOST_TEST(contains(page, "class=\"band s0\""));
  BOOST_TEST(!contains(page, "class=\"band s1\""));  // a single run has no band
  BOOST_TEST(contains(page, "<b>norm post</b>"));
  BOOST_TEST(contains(page, "Paired bootstrap"));
  const std::string slower = make_run(folder, "d", "seed: 3\n", texts(60));
  put(slower + "/metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"seconds\":1200.5}\n");
  const std::string two = page_of({slower, (folder / "a").string()});
  BOOST_TEST(
      contains(two, "</data> <span class=\"quiet\">(95 % interval"));  // interval of the tested run
  BOOST_TEST(contains(two, "</span> on test"));
  BOOST_TEST(contains(two, "13.3 minutes"));  // mean of both runs
}

// Losses of 100 / step and of twice that: the line is their mean, the band reaches from one to the other.
BOOST_AUTO_TEST_CASE(lines_of_several_seeds_are_means_within_the_band_of_their_extremes) {
  const TempFolder folder;
  const std::vector<History> histories{
      read_history(make_run(folder, "a", "seed: 1\n", texts(60))),
      read_history(make_run(folder, "b", "seed: 2\n", texts(64), 2))};
  const std::string body = report_curves(histories).at(0).body;
  const auto path = [&](const std::string& after, const auto& from, const auto& to) {
    const double low = 0.25, high = 2.4;  // of all losses
    std::string points;
    const auto add = [&](int step, double value) {
      const double y = std::round(1900 * (high - value) / (high - low)) / 10;
      points += svg("{}{} {}", points.empty() ? "M" : "L",
                    std::round(4000.0 * (step - 100) / 300) / 10, y);
    };
    for (int step = 100; step <= 400; step += 100) add(step, from(step));
    for (int step = 400; step >= 100 && to(step) > 0; step -= 100) add(step, to(step));
    BOOST_TEST(contains(body, after + " d=\"" + points), after << points);
  };
  const auto nothing = [](int) { return 0.0; };
  const auto times = [](double scale) { return [=](int step) { return scale / step; }; };
  path("class=\"line s0 faint\"", times(150), nothing);
  path("class=\"line s0\"", times(180), nothing);
  path("class=\"band s0\"", times(200), times(100));
  path("class=\"band s0\"", times(240), times(120));
}

// Training is drawn pale in the colour of its group, so the legend lists each group once.
BOOST_AUTO_TEST_CASE(legend_lists_each_of_several_groups_once) {
  const TempFolder folder;
  const std::string pre = make_run(folder, "a", "seed: 1\n", texts(10)),
                    post = make_run(folder, "b", "model: {norm: post}\n", texts(10));
  const auto count = [](const std::string& body, const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = body.find(text); at != std::string::npos; at = body.find(text, at + 1))
      ++n;
    return n;
  };
  const std::string both = report_curves({read_history(pre), read_history(post)}).at(0).body;
  BOOST_TEST(count(both, ">norm pre</text>") == 1);
  BOOST_TEST(count(both, ">norm post</text>") == 1);
  BOOST_TEST(count(both, "nats (pale: training)</text>") == 1);
  BOOST_TEST(count(both, " faint\"") == 2);
  const std::string alone = report_curves({read_history(pre)}).at(0).body;
  BOOST_TEST(count(alone, ">training</text>") == 1);
  BOOST_TEST(count(alone, ">validation</text>") == 1);
  BOOST_TEST(count(alone, "pale") == 0);
  put(post + "/metrics.jsonl", "{\"kind\":\"train\",\"step\":5,\"loss\":3,\"nll\":3}\n");
  const std::string begun = report_curves({read_history(pre), read_history(post)}).at(0).body;
  BOOST_TEST(count(begun, ">norm post</text>") == 1);
}

BOOST_AUTO_TEST_CASE(hostile_text_is_escaped) {
  const TempFolder folder;
  std::vector<SampleOutput> outputs = texts(10);
  outputs[0] = {hostile, hostile, "", {}};  // shown as the worst sample
  const std::string run = make_run(folder, "<i>\"run\"</i>", "name: \"<b>'&\\\"\"\n", outputs);
  const std::string page = page_of({run});
  BOOST_TEST(!contains(page, "<script"));
  BOOST_TEST(!contains(page, "<i>"));
  BOOST_TEST(!contains(page, "<b>'"));
  BOOST_TEST(contains(page, "&lt;script&gt;"));
  BOOST_TEST(page.find('\x01') == std::string::npos);
  BOOST_TEST(!contains(page, std::string(1000, 'x')));  // truncated
}

BOOST_AUTO_TEST_CASE(run_without_metrics_has_a_page) {
  const TempFolder folder;
  const RunFolder run{folder / "new"};
  std::filesystem::create_directories(run.path);
  put(run.config(), "task: seq2seq\ndata: {synthetic: {name: copy}}\n");
  BOOST_TEST(contains(page_of({run.path.string()}), "no metrics yet"));
  put(run.metrics(), "{\"kind\":\"train\",\"step\":5,\"loss\":3,\"nll\":3}\n{\"kind\":\"tra");
  const std::string page = page_of({run.path.string()});
  BOOST_TEST(contains(page, "step 5: no metrics yet"));
  BOOST_TEST(contains(page, "negative log-likelihood"));
}

// The training records, which contain the tokens, are written every train.log_every steps.
BOOST_AUTO_TEST_CASE(speed_that_is_unknown_is_not_shown) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a", "seed: 1\n", texts(60)),
                    other = make_run(folder, "b", "seed: 2\n", texts(60));
  BOOST_TEST(contains(page_of({run, other}), "50 target tokens/s"));
  put(run + "/metrics.jsonl", "{\"kind\":\"test\",\"step\":3,\"seconds\":0.25,\"bleu\":1}\n");
  const std::string alone = page_of({run});
  BOOST_TEST(!contains(alone, " target tokens/s"));
  BOOST_TEST(contains(alone, "0.2 seconds</p>"));
  BOOST_TEST(contains(alone, "<td>-</td></tr>"));
  BOOST_TEST(
      contains(page_of({run, other}), "50 target tokens/s"));  // that of the run with records
}

BOOST_AUTO_TEST_CASE(rates_count_what_the_task_predicts) {
  for (const auto& [task, unit] : {std::pair("tag", "labels"), {"classify", "samples"}}) {
    const TempFolder folder;
    const RunFolder run{folder / "run"};
    std::filesystem::create_directories(run.path);
    put(run.config(), fmt::format("task: {}\ndata: {{train: {{source: a, target: b}}}}\n"
                                  "tokenizer: {{kind: word}}\n",
                                  task));
    put(run.metrics(),
        "{\"kind\":\"train\",\"step\":5,\"loss\":3,\"nll\":3,\"seconds\":2,\"target_tokens\":80,"
        "\"tokens_per_s\":40}\n{\"kind\":\"train\",\"step\":9,\"loss\":3,\"nll\":3,\"seconds\":4,"
        "\"target_tokens\":160,\"tokens_per_s\":40}\n");
    const std::string page = page_of({run.path.string()});
    for (const char* text : {"40 {}/s", "<th>{}/s</th>", ">{} per second<"}) {
      const std::string expected = fmt::format(fmt::runtime(text), unit);
      BOOST_TEST(contains(page, expected), expected);
    }
    BOOST_TEST(!contains(page, "target tokens/s"));
  }
}

// Of four "2", one is taken for "<b>"; of four "<b>", three for "2".
BOOST_AUTO_TEST_CASE(labels_of_a_tagger_have_a_table_and_a_matrix) {
  const TempFolder folder;
  const RunFolder run{folder / "tagger"};
  std::filesystem::create_directories(run.path);
  put(run.config(), "task: tag\ndata: {synthetic: {name: grammar}}\ntokenizer: {kind: word}\n");
  put(run.metrics(), R"({"kind":"test","step":9,"loss":1,"token_accuracy":0.75,"f1":0.8,)"
                     R"("classes":{"10":{"precision":1,"recall":1,"f1":1,"occurrences":2},)"
                     R"("2":{"precision":0.625,"recall":0.75,"f1":0.681818,"occurrences":4},)"
                     R"("<b>":{"precision":0.5,"recall":0.25,"f1":0.333333,"occurrences":4}},)"
                     R"("confusion":{"10":{"10":2},"2":{"2":3,"<b>":1},"<b>":{"2":3,"<b>":1}}})"
                     "\n");
  write_outputs(
      run, {{"the ship sails", "DET NOUN VERB", "DET NOUN NOUN", {}}, {"it", "PRON", "PRON", {}}});
  const std::string page = page_of({run.path.string()});
  BOOST_TEST(contains(
      page,
      "<tr><th>label</th><th>precision</th><th>recall</th><th>F1</th><th>occurrences</th></tr>\n"
      "<tr><td>&lt;b&gt;</td><td>0.5000</td><td>0.2500</td><td>0.3333</td><td>4</td></tr>\n"
      "<tr><td>2</td><td>0.6250</td><td>0.7500</td><td>0.6818</td><td>4</td></tr>\n"
      "<tr><td>10</td><td>1.0000</td><td>1.0000</td><td>1.0000</td><td>2</td></tr>\n"));
  BOOST_TEST(contains(page, "<title>2 → &lt;b&gt;: 0.250</title>"));  // one of four
  BOOST_TEST(contains(page, "text-anchor=\"middle\">3</text>"));
  BOOST_TEST(contains(page, "<th>right labels</th>"));
  BOOST_TEST(contains(page, "<td>DET NOUN NOUN</td><td>66.67 %</td>"));
  BOOST_TEST(!contains(page, "chrF2"));
  BOOST_TEST(contains(page, "on test: the most frequent 3 of 3 labels.</p>"));
  BOOST_TEST(!contains(page, "calibration"));
  // The record of a task of a plugin need not contain classes.
  put(run.metrics(), "{\"kind\":\"test\",\"step\":9,\"loss\":1}\n");
  write_outputs(run, {{"a", "1", "2", 0.75}});
  BOOST_TEST(contains(page_of({run.path.string()}), "expected calibration error 0.750"));
}

BOOST_AUTO_TEST_CASE(sample_scores_follow_the_task) {
  const auto config = [](const std::string& text) {
    return parse_config("data: {synthetic: {name: brackets}}\n" + text, "test");
  };
  const std::vector<SampleOutput> words{{"", "AB C D", "AX C D", {}}}, labels{{"", "1", "1", 0.9}};
  const SampleScore word = score_kind(config("task: tag\ntokenizer: {kind: word}\n"), words),
                    character = score_kind(config("task: tag\ntokenizer: {kind: char}\n"), words);
  BOOST_TEST(sample_score(word, words[0]) == 2.0 / 3);
  BOOST_TEST(sample_score(character, words[0]) == 5.0 / 6);
  BOOST_TEST(sample_score(word, {"", "1 2", "1", {}}) == 0.5);
  BOOST_TEST(sample_score(word, {"", "", "", {}}) == 1);
  BOOST_TEST(score_text(score_kind(config("task: classify\n"), labels), labels[0]) == "0.900");
  BOOST_TEST(score_text(score_kind(config("task: seq2seq\n"), words), {"", "same", "same", {}}) ==
             "100.0");
}

BOOST_AUTO_TEST_CASE(most_frequent_labels_are_shown_in_order) {
  nlohmann::json record;
  for (int i = 0; i < 50; ++i) record["classes"][fmt::format("{}", i)] = {{"occurrences", i}};
  const std::vector<std::string> labels = shown_labels(record);
  BOOST_REQUIRE(labels.size() == 40);
  BOOST_TEST(labels.front() == "10");
  BOOST_TEST(labels.back() == "49");
  BOOST_TEST(shown_labels({{"kind", "test"}}).empty());
  BOOST_TEST(shown_labels({{"classes", 5}}).empty());
}

BOOST_AUTO_TEST_CASE(losses_beside_each_other_state_that_they_are_not_smoothed) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a", "", texts(60));
  BOOST_TEST(contains(page_of({run}), "both losses are without label smoothing"));
  put(run + "/config.yaml",
      "data: {synthetic: {name: copy}}\ntrain: {best: bleu, label_smoothing: 0}\n");
  BOOST_TEST(!contains(page_of({run}), "label smoothing)"));
}

BOOST_AUTO_TEST_CASE(checksums_are_short_and_complete_in_their_tooltips) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a", "", texts(60)),
                    sum = "0123456789ab" + std::string(52, 'c');
  put(run + "/run.json", R"({"data":{"train":")" + sum + "\"}}");
  const std::string page = page_of({run});
  BOOST_TEST(contains(page, "<span title=\"" + sum + "\">0123456789ab…</span>"));
  BOOST_TEST(!contains(page, ">" + sum));
}

// An interval is shown only if the outputs reproduce the metrics.
BOOST_AUTO_TEST_CASE(outputs_that_do_not_match_the_metrics_have_no_interval) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a", "", texts(60));
  write_outputs(RunFolder{run}, texts(20));
  BOOST_TEST(!contains(page_of({run}), "interval <"));
  BOOST_TEST(!contains(page_of({run}), "(95 % interval"));
  BOOST_TEST(contains(page_of({run}), "does not match the metrics in its metrics.jsonl</li>"));
}

BOOST_AUTO_TEST_CASE(nonfinite_figure_breaks_a_curve) {
  const TempFolder folder;
  const RunFolder run{folder / "a"};
  std::filesystem::create_directories(run.path);
  put(run.config(), "task: seq2seq\ndata: {synthetic: {name: copy}}\n");
  std::string metrics;
  for (const char* loss : {"3", "2", "null", "4", "1"})
    metrics += fmt::format("{{\"kind\":\"train\",\"step\":{},\"nll\":{}}}\n",
                           std::ranges::count(metrics, '\n') + 1, loss);
  put(run.metrics(), metrics);
  const History history = read_history(run.path.string());
  const Curve* const curve = history.find("train.nll");
  BOOST_REQUIRE(curve != nullptr);
  BOOST_REQUIRE(curve->points.size() == 5);
  BOOST_TEST(std::isnan(curve->points[2].y));
  const std::string page = report_page({history}, {});
  BOOST_TEST(contains(page, "M0 63.3L100 126.7M300 0L400 190"));
  BOOST_TEST(!contains(page, "95 % interval"));  // the interval requires outputs
  BOOST_TEST(contains(curves_csv({history}, {"train.nll"}), ",train.nll,3,nan\n"));
}

// The name of a run may contain commas and quotes: RFC 4180 doubles the quotes of a quoted field.
BOOST_AUTO_TEST_CASE(curves_are_printed_as_csv) {
  const TempFolder folder;
  const std::string run = make_run(folder, "a \"b\", c", "seed: 3\n", texts(60)),
                    quoted = folder.path.string() + "/a \"\"b\"\", c";
  const std::vector<History> histories{read_history(run)};
  const std::string csv = curves_csv(histories, {"valid.bleu", "train.gradient_norms.embedding"});
  BOOST_TEST(csv.starts_with(
      fmt::format("run,seed,curve,step,value\n\"{}\",3,valid.bleu,100,10\n", quoted)));
  BOOST_TEST(contains(csv, ",3,train.gradient_norms.embedding,400,0.125\n"));
  const std::string message = error_of(Exit::usage, [&] { curves_csv(histories, {"valid.blue"}); });
  BOOST_TEST(contains(message, "--csv valid.blue: no run has such a curve; available: train."));
}

BOOST_AUTO_TEST_CASE(outputs_are_unchanged_by_writing_and_reading) {
  const TempFolder folder;
  const RunFolder run{folder.path};
  BOOST_TEST(read_outputs(run).empty());
  write_outputs(run, {{"a\tb", "c", "\"d\"\n", 0.25}, {"", "", "é", {}}});
  const std::vector<SampleOutput> back = read_outputs(run);
  BOOST_REQUIRE(back.size() == 2);
  BOOST_TEST(back[0].source == "a\tb");
  BOOST_TEST(back[0].output == "\"d\"\n");
  BOOST_TEST(*back[0].probability == 0.25);
  BOOST_TEST(back[1].output == "é");
  BOOST_TEST(!back[1].probability.has_value());
  put(run.outputs(), "{\"source\":1}\n");
  BOOST_TEST(contains(error_of(Exit::bad_input, [&] { read_outputs(run); }), "outputs.jsonl:1"));
  write_outputs(run, {});
  BOOST_TEST(!std::filesystem::exists(run.outputs()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bootstrap)

BOOST_AUTO_TEST_CASE(statistics_of_all_samples_equal_the_metric) {
  std::vector<SampleOutput> outputs = texts(60);
  std::vector<std::string> texts, references;
  for (const SampleOutput& sample : outputs) {
    texts.push_back(sample.output);
    references.push_back(sample.target);
  }
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < outputs.size(); ++i) all.push_back(i);
  const auto value = [&](Metric metric) {
    return statistics_of(metric, outputs, BleuTokenizer::v13a)->of(all);
  };
  BOOST_TEST(value(Metric::bleu) == corpus_bleu(texts, references).score);
  BOOST_TEST(value(Metric::chrf) == corpus_chrf(texts, references).score);
  BOOST_TEST(value(Metric::exact_match) == 0.6);
  BOOST_TEST(!statistics_of(Metric::loss, outputs, BleuTokenizer::v13a).has_value());
  BOOST_TEST(!statistics_of(Metric::accuracy, outputs, BleuTokenizer::v13a).has_value());
  BOOST_TEST(!statistics_of(Metric::bleu, {}, BleuTokenizer::v13a).has_value());
}

// If a share p of n samples is correct, the share in a resampled set has the standard deviation
// √(p (1 − p) / n).
BOOST_AUTO_TEST_CASE(interval_matches_the_binomial_distribution) {
  const std::vector<SampleOutput> outputs = texts(60);
  const Interval i =
      interval_of(resampled(*statistics_of(Metric::exact_match, outputs, BleuTokenizer::v13a)));
  const double deviation = std::sqrt(0.6 * 0.4 / 100);
  BOOST_TEST(std::abs(i.low - (0.6 - 1.96 * deviation)) < 0.01);
  BOOST_TEST(std::abs(i.high - (0.6 + 1.96 * deviation)) < 0.01);
}

// 95 % of the values are within the interval, and 2.5 % on each side of it.
BOOST_AUTO_TEST_CASE(interval_leaves_out_the_same_share_of_the_values_at_each_end) {
  for (const int n : {1000, 200}) {
    std::vector<double> values;
    for (int i = 0; i < n; ++i) values.push_back((37 * i) % n);  // 0 to n − 1 in another order
    const Interval i = interval_of(values);
    BOOST_TEST(i.low == n / 40);
    BOOST_TEST(i.high == n - 1 - n / 40);
  }
}

BOOST_AUTO_TEST_CASE(p_value_is_small_for_a_large_difference_and_1_without_a_difference) {
  const auto scores = [](int right) {
    return resampled(*statistics_of(Metric::exact_match, texts(right), BleuTokenizer::v13a));
  };
  BOOST_TEST(p_value(scores(60), scores(60), 0) == 1);
  BOOST_TEST(p_value(scores(60), scores(61), 0.01) > 0.2);
  BOOST_TEST(p_value(scores(20), scores(80), 0.6) < 0.01);
}

// The differences 1, 2, 3 deviate from their mean 2 by 1, 0, 1. Two of three deviations are at
// least 1, so p = (2 + 1) / (3 + 1).
BOOST_AUTO_TEST_CASE(p_value_matches_a_calculation_by_hand) {
  const std::vector<double> first{0, 0, 0}, second{1, 2, 3};
  BOOST_TEST(p_value(first, second, 1) == 3.0 / 4);
  BOOST_TEST(p_value(first, second, 1.5) == 1.0 / 4);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(output_charts)

BOOST_AUTO_TEST_CASE(most_confident_mistakes_come_first) {
  const std::vector<SampleOutput> outputs{
      {"a", "1", "1", 0.9}, {"b", "1", "2", 0.6}, {"c", "2", "1", 0.8}, {"d", "2", "1", 0.7}};
  BOOST_TEST(most_confident_mistakes(outputs, 2) == (std::vector<std::size_t>{2, 3}),
             boost::test_tools::per_element());
  const auto chosen = chosen_samples(SampleScore::probability, outputs);
  BOOST_TEST(chosen[0].second[0] == 2);  // index of the worst sample
  BOOST_TEST(chosen[2].second[0] == 0);  // index of the best sample
}

// Two outputs with probability 0.95, one of them correct, and a correct one with 0.55: the
// calibration error is (2·|0.5 − 0.95| + |1 − 0.55|) / 3.
BOOST_AUTO_TEST_CASE(calibration_matches_a_calculation_by_hand) {
  const std::vector<SampleOutput> outputs{
      {"a", "1", "1", 0.95}, {"b", "1", "2", 0.95}, {"c", "2", "2", 0.55}};
  const Chart chart = calibration(outputs);
  BOOST_TEST(chart.title == "calibration (expected calibration error 0.450)");
  BOOST_REQUIRE(chart.bars.size() == 2);
  BOOST_TEST(chart.bars[1].y == 0.5);
}

// The bins are [0, 0.1), [0.1, 0.2), … [0.9, 1].
BOOST_AUTO_TEST_CASE(bins_of_calibration_have_a_tenth_of_the_confidences_each) {
  const std::vector<SampleOutput> outputs{{"a", "1", "1", 0.5},   {"b", "1", "2", 0.5625},
                                          {"c", "2", "2", 0.625}, {"d", "2", "2", 0.99},
                                          {"e", "2", "2", 1.0},   {"f", "1", "2", 0.0}};
  const Chart chart = calibration(outputs);
  BOOST_REQUIRE(chart.bars.size() == 4);
  for (const auto& [bar, left, accuracy] :
       {std::tuple(0, 0.0, 0.0), {1, 0.5, 0.5}, {2, 0.6, 1.0}, {3, 0.9, 1.0}}) {
    const Bar& one = chart.bars[static_cast<std::size_t>(bar)];
    BOOST_TEST(std::abs(one.left - left) < 0.01, bar);
    BOOST_TEST(std::abs(one.right - left - 0.1) < 0.01, bar);
    BOOST_TEST(one.y == accuracy, bar);
  }
  BOOST_TEST(chart.bars[1].text == "samples: 2, confidence: 0.531, accuracy: 0.500");
}

// Half of the samples of label a are taken for b; none of b for a.
BOOST_AUTO_TEST_CASE(confusion_map_has_a_row_for_each_true_label) {
  const std::vector<std::string> labels{"a", "b"};
  const nlohmann::json record{{"confusion", {{"a", {{"a", 1}, {"b", 1}}}, {"b", {{"b", 2}}}}}};
  const std::string body = confusion_map(record, labels).body;
  for (const char* cell : {"a → a: 0.500", "a → b: 0.500", "b → b: 1.000"})
    BOOST_TEST(contains(body, cell), cell);
  BOOST_TEST(!contains(body, "b → a"));
  // The fraction is that of all samples of the label, also if another label is not shown.
  const std::vector<std::string> shown{"a"};
  BOOST_TEST(contains(confusion_map(record, shown).body, "a → a: 0.500"));
}

BOOST_AUTO_TEST_CASE(lengths_form_at_most_six_groups_of_equal_size) {
  for (const auto& [samples, sizes] :
       {std::pair(60, std::vector<std::string>{"1–10 (10)", "11–20 (10)", "21–30 (10)",
                                               "31–40 (10)", "41–50 (10)", "51–60 (10)"}),
        {7, {"1–2 (2)", "3–4 (2)", "5–6 (2)", "7 (1)"}}}) {
    std::vector<SampleOutput> outputs;
    std::string target;
    for (int i = 0; i < samples; ++i) outputs.push_back({"", target += " w", "", {}});
    const SampleStatistics statistics =
        *statistics_of(Metric::exact_match, outputs, BleuTokenizer::v13a);
    const std::vector<LengthSeries> runs{{"", &statistics}};
    std::vector<std::string> found;
    for (const Tick& tick : score_by_length(Metric::exact_match, outputs, runs).x_ticks)
      found.push_back(tick.text);
    BOOST_TEST(found == sizes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(samples_of_one_length_form_one_group) {
  std::vector<SampleOutput> outputs;
  for (int i = 0; i < 30; ++i) {
    std::string target = "w";
    for (int k = 0; k < i / 10; ++k) target += " w";
    outputs.push_back({"", target, i % 2 == 0 ? target : "", {}});
  }
  const SampleStatistics statistics =
      *statistics_of(Metric::exact_match, outputs, BleuTokenizer::v13a);
  const std::vector<LengthSeries> runs{{"", &statistics}};
  const Chart chart = score_by_length(Metric::exact_match, outputs, runs);
  BOOST_REQUIRE(chart.bars.size() == 3);
  for (const Bar& bar : chart.bars) BOOST_TEST(bar.y == 50);  // exact match in per cent
  BOOST_TEST(chart.x_ticks[1].text == "2 (10)");
}

BOOST_AUTO_TEST_SUITE_END()
