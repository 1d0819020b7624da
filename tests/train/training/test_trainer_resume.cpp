// A resumed run is bitwise equal to an uninterrupted run.
#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <utility>

#include "autograd/tape/observer.h"
#include "autograd/tensor.h"
#include "tests/train/trainer_support.h"
#include "tests/train/training.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(resuming)

namespace {

/// Requests a stop in the middle of a run, after a number of results of this thread's ops.
class Stopper final : public OpObserver {
 public:
  explicit Stopper(std::int64_t results) : left_(results) {}

  void result(const std::type_info&, const Array&, std::span<const NodeRef>) override {
    if (--left_ == 0) std::raise(SIGTERM);
  }

 private:
  std::int64_t left_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(run_resumed_after_20_steps_equals_an_uninterrupted_run) {
  const TempFolder folder;
  Run whole(small_run(40), folder / "whole"), parts(small_run(20), folder / "parts");
  check_resumed_equals_whole(whole, parts);
}

BOOST_AUTO_TEST_CASE(run_killed_at_any_time_reaches_the_same_result) {
  // The run is killed before its first checkpoint, or after the checkpoint of step 10, 20 or 30.
  // Records of later steps exist; the last record is incomplete.
  const TempFolder folder;
  Run whole(small_run(40), folder / "whole");
  whole.train(false);
  for (const std::int64_t last : {0, 10, 20, 30}) {
    Run killed(small_run(40), folder / ("killed" + std::to_string(last)));
    std::filesystem::copy(whole.folder, killed.folder,
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::copy_symlinks |
                              std::filesystem::copy_options::overwrite_existing);
    for (std::int64_t step = last + 10; step <= 40; step += 10)
      remove_tree(killed.checkpoints().folder_of(step));
    if (last == 0) {  // no checkpoint, so no links
      for (const char* link : {"last", "best"}) remove_tree(killed.folder / link);
    }
    std::ofstream(killed.paths().metrics(), std::ios::app) << "{\"kind\": \"tra";
    BOOST_TEST(killed.train(true) == 0);
    check_same_checkpoint(whole, killed, 40);
    check_same_metrics(whole, killed);
  }
}

BOOST_AUTO_TEST_CASE(resumed_run_skips_a_damaged_checkpoint) {
  const TempFolder folder;
  Run whole(small_run(40), folder / "whole");
  whole.train(false);
  const std::string weights = whole.file(40, "model.safetensors");
  const std::vector<nlohmann::json> metrics = whole.metrics();
  put(whole.checkpoints().folder_of(40) / "model.safetensors",
      weights.substr(0, weights.size() - 1));
  BOOST_TEST(whole.train(true) == 0);
  BOOST_TEST((whole.file(40, "model.safetensors") == weights));
  BOOST_TEST((whole.metrics() == metrics));
}

BOOST_AUTO_TEST_CASE(damaged_best_checkpoint_is_reported_and_replaced_at_the_next_validation) {
  const TempFolder folder;
  Run run(small_run(40), folder / "run");
  run.train(false);
  // Simulates a flipped bit in a best checkpoint other than the last.
  nlohmann::json state = open_checkpoint(run.checkpoints().folder_of(40)).state;
  state["best_step"] = 30;
  state["best"] = 0.0;
  std::vector<CheckpointFile> files;
  for (const char* name : {"model.safetensors", "training.safetensors"}) {
    files.push_back({name, [text = run.file(40, name)](FileWriter& file) { file.write(text); }});
  }
  write_files(run.checkpoints().folder_of(40), 40, files, state);
  run.checkpoints().link("best", 30);
  std::string weights = run.file(30, "model.safetensors");
  weights[weights.size() / 2] ^= 1;
  put(run.checkpoints().folder_of(30) / "model.safetensors", weights);
  run.run_log.log_to(run.paths().log());
  run.config.train.steps = 50;
  BOOST_TEST(run.train(true) == 0);
  const std::string log = get(run.paths().log());
  BOOST_TEST(log.find("the best checkpoint (step 30) is lost") != std::string::npos);
  BOOST_TEST(log.find("step-00000030/model.safetensors") != std::string::npos);
  BOOST_TEST(run.checkpoints().linked("best").value() == 50);
}

BOOST_AUTO_TEST_CASE(refused_resumption_changes_no_file) {
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  run.train(false);
  const std::string metrics = get(run.paths().metrics()) + "{\"kind\":\"test\",\"step\":20}\n";
  put(run.paths().metrics(), metrics);
  std::filesystem::remove(run.folder / "best");
  // Some programs copy a link as a folder.
  std::filesystem::create_directory(run.folder / "best");
  put(run.folder / "best" / "model.safetensors", "precious");
  run.config.train.steps = 30;
  const std::string message = error_of(Exit::bad_input, [&] { run.train(true); });
  BOOST_TEST(contains(message, "best is a folder instead of a link to a checkpoint"), message);
  BOOST_TEST(get(run.paths().metrics()) == metrics);
  BOOST_TEST(get(run.folder / "best" / "model.safetensors") == "precious");
}

BOOST_AUTO_TEST_CASE(resumed_run_with_changed_batches_restarts_the_epoch) {
  // After such a change, the saved batch number would refer to other samples, or to no batch at
  // all.
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  run.train(false);
  const Progress before = Progress::from(run.state_with_clocks(20));
  BOOST_TEST_REQUIRE(before.position.batch > 0);
  for (const auto& change : std::vector<std::function<void(Config&)>>{
           [](Config& c) { c.data.synthetic.train = 20; }, [](Config& c) { c.seed = 7; },
           [](Config& c) { c.train.batch_tokens *= 2; }}) {
    std::filesystem::remove_all(folder / "copy");
    std::filesystem::copy(
        run.folder, folder / "copy",
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    Config changed = small_run(21);
    change(changed);
    Run copy(changed, folder / "copy");
    copy.run_log.log_to(copy.paths().log());
    BOOST_TEST(copy.train(true) == 0);
    const Progress after = Progress::from(copy.state_with_clocks(21));
    BOOST_TEST(after.position.epoch == before.position.epoch);
    BOOST_TEST(after.position.batch == 1);
    BOOST_TEST(contains(get(copy.paths().log()),
                        fmt::format("so epoch {} starts again ({} of its", before.position.epoch,
                                    before.position.batch)));
  }
}

BOOST_AUTO_TEST_CASE(resumed_run_with_another_metric_discards_the_previous_best) {
  // The previous best value is a loss of 2.3, which no accuracy could exceed.
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  run.train(false);
  run.config.train.best = Metric::token_accuracy;
  run.config.train.steps = 40;
  run.run_log.log_to(run.paths().log());
  BOOST_TEST(run.train(true) == 0);
  BOOST_TEST(
      contains(get(run.paths().log()), "the deciding metric or the validation data have changed"));
  const Progress end = Progress::from(run.state_with_clocks(40));
  BOOST_TEST(end.best.value() <= 1);
  BOOST_TEST(end.best_step >= 20);
  BOOST_TEST(run.checkpoints().linked("best").value() == end.best_step);
}

BOOST_AUTO_TEST_CASE(unreadable_newest_checkpoint_is_refused) {
  // The checkpoint may be intact, and resuming from an older one would replace it.
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  run.train(false);
  run.run_log.log_to(run.paths().log());
  run.config.train.steps = 40;
  const std::filesystem::path weights = run.checkpoints().folder_of(20) / "model.safetensors";
  const std::filesystem::path older = run.checkpoints().folder_of(10);
  const std::filesystem::path aside = folder / "aside", older_aside = folder / "older";
  std::filesystem::rename(weights, aside);
  std::filesystem::create_symlink(std::string(300, 'x'), weights);  // cannot be followed
  const std::vector<nlohmann::json> metrics = run.metrics();
  const auto check_refused = [&](const std::string& advice) {
    BOOST_CHECK_EXCEPTION(run.train(true), Error, [&](const Error& e) {
      const std::string message = e.what();
      return e.code == Exit::io && message.find(weights.string()) != std::string::npos &&
             message.find("remove them to " + advice) != std::string::npos;
    });
    BOOST_TEST((run.metrics() == metrics));
  };
  check_refused("continue from step 10");
  BOOST_TEST(get(run.paths().log()).find("damaged") == std::string::npos);
  std::filesystem::rename(older / "state.json", older_aside);
  check_refused("start over: all others are damaged");
  BOOST_TEST(get(run.paths().log()).find("skipped a damaged checkpoint") != std::string::npos);
  std::filesystem::rename(older_aside, older / "state.json");
  std::filesystem::rename(older, older_aside);
  check_refused("begin at step 0");
  std::filesystem::rename(older_aside, older);
  std::filesystem::remove(weights);
  std::filesystem::rename(aside, weights);
  BOOST_TEST(run.train(true) == 0);
  BOOST_TEST(get(run.paths().log()).find("continuing from step 20") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(run_is_refused_if_every_checkpoint_is_damaged) {
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  run.train(false);
  for (const std::int64_t step : run.checkpoints().steps())
    put(run.checkpoints().folder_of(step) / "model.safetensors", "short");
  const std::vector<nlohmann::json> metrics = run.metrics();
  BOOST_CHECK_EXCEPTION(run.train(true), Error, [](const Error& e) {
    return e.code == Exit::bad_input &&
           std::string(e.what()).find("every checkpoint is damaged") != std::string::npos;
  });
  BOOST_TEST((run.metrics() == metrics));
}

BOOST_AUTO_TEST_CASE(run_stopped_by_a_signal_reaches_the_same_result) {
  const TempFolder folder;
  Config config = small_run(120);
  config.train.validate_every = config.train.save_every = 30;
  Run whole(config, folder / "whole"), stopped(config, folder / "stopped");
  whole.train(false);
  int signals = 0;
  for (int session = 0; session < 60; ++session) {
    const Stopper stopper(100 + 137 * session);
    const int signal = stopped.train(session > 0);
    if (signal == 0) break;
    BOOST_TEST(signal == SIGTERM);
    ++signals;
  }
  BOOST_TEST(signals >= 5);
  check_same_checkpoint(whole, stopped, 120);
  check_same_metrics(whole, stopped);
}

BOOST_AUTO_TEST_CASE(early_stopping_count_continues_after_resuming) {
  const TempFolder folder;
  Config config = small_run(1000);
  config.optim.lr = 0;
  config.train.validate_every = config.train.save_every = 5;
  config.train.early_stopping = {Metric::loss, 4};
  Run whole(config, folder / "whole"), parts(config, folder / "parts");
  parts.config.train.steps = 15;
  check_resumed_equals_whole(whole, parts);
  BOOST_TEST(whole.checkpoints().linked("last").value() == 25);
}

BOOST_AUTO_TEST_CASE(resuming_a_finished_run_adds_no_metrics) {
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  const auto to_the_end = [&run](bool restore) {
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    if (restore) trainer.restore();
    trainer.train();
    trainer.choose_weights();
    trainer.final_evaluation();
    return run.metrics();
  };
  const std::vector<nlohmann::json> first = to_the_end(false);
  BOOST_TEST(run.count("test") == 1);
  BOOST_TEST((to_the_end(true) == first));
  run.config.train.steps = 30;  // the test metrics of step 30 then replace those of step 20
  to_the_end(true);
  BOOST_TEST(run.count("test") == 1);
  BOOST_TEST(run.metrics().back().at("step") == 30);
}

BOOST_AUTO_TEST_CASE(checkpoint_of_another_model_is_refused) {
  const TempFolder folder;
  Run run(small_run(10), folder / "run");
  run.train(false);
  const std::string before = get(run.paths().metrics());
  run.config.model->d_ff = 24;
  const auto refusal = [&] { return error_of(Exit::bad_input, [&] { run.train(true); }); };
  BOOST_TEST(contains(refusal(), "config.yaml: model.d_ff is 24, but the weights in "));
  const CheckpointFolder checkpoints(run.paths().path);
  nlohmann::json state = open_checkpoint(checkpoints.folder_of(10)).state;
  BOOST_TEST(state.erase("trained_with") == 1u);  // as a checkpoint of an earlier version
  std::vector<CheckpointFile> files;
  for (const char* name : {"model.safetensors", "training.safetensors"})
    files.push_back({name, [bytes = get(checkpoints.folder_of(10) / name)](FileWriter& file) {
                       file.write(bytes);
                     }});
  checkpoints.save(10, files, state, true);
  BOOST_TEST(contains(
      refusal(),
      "encoder.layers.0.linear1.weight is F32 [20, 12] in the file, F32 [24, 12] in the model"));
  BOOST_TEST((get(run.paths().metrics()) == before));
}

BOOST_AUTO_TEST_CASE(new_criterion_for_the_best_checkpoint_restarts_the_patience) {
  Progress saved, start;
  saved.best = 0.5;
  saved.best_criterion = "1 valid";
  saved.validations_without_improvement = 2;
  for (const bool same : {true, false}) {
    start.best_criterion = same ? "1 valid" : "2 valid";
    const Progress now = adapted(saved, start, true).progress;
    BOOST_TEST(now.best.has_value() == same);
    BOOST_TEST(now.validations_without_improvement == (same ? 2 : 0));
    BOOST_TEST(now.validation_due == !same);
  }
}

BOOST_AUTO_TEST_SUITE_END()
