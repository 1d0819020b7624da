/// Values that follow the number of steps: warmup and averaging.
#include "tests/train/config_cases.h"

using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(config_steps)

BOOST_AUTO_TEST_CASE(run_shortened_by_override_has_shorter_warmup) {
  const std::string text =
      copy + "optim: {schedule: {name: cosine, warmup: 100}}\ntrain: {steps: 1000}\n";
  const auto read = [&](const std::string& file, const std::vector<std::string>& overrides) {
    return heed::parse_config(file, "exp.yaml", overrides);
  };
  const heed::Config config = read(text, {"train.steps=20"});
  BOOST_TEST(config.optim.schedule.warmup == 2);
  const std::string warning =
      "command line: train.steps=20: optim.schedule.warmup: shortened from 100 "
      "to 2 steps, in proportion to the run";
  BOOST_TEST(config.warnings == std::vector{warning}, boost::test_tools::per_element());
  BOOST_TEST(read(text, {"train={steps: 2}"}).optim.schedule.warmup == 0);
  BOOST_TEST(read(text, {"optim.schedule.steps=50"}).optim.schedule.warmup == 5);
  // Other schedules have no last step, but their warmup must not outlast the run either.
  BOOST_TEST(read(text, {"train.steps=20", "optim.schedule.name=noam"}).optim.schedule.warmup == 2);
  for (const char* const name : {"noam", "inverse_sqrt", "cosine", "linear", "constant"}) {
    const heed::Config two =
        read(text, {"train.steps=2", std::string("optim.schedule.name=") + name});
    BOOST_TEST(two.optim.schedule.warmup <= 1);
    BOOST_TEST(
        heed::differences(two, read(heed::write_yaml(two), {})).empty());  // as resume reads it
  }
  // A warmup of up to half of the run is unchanged; a longer one causes a warning.
  BOOST_TEST(read(text, {"train.steps=200"}).optim.schedule.warmup == 100);
  BOOST_TEST(read(text, {"train.steps=200"}).warnings.empty());
  BOOST_TEST(read(text, {"train.steps=198"}).optim.schedule.warmup == 100);
  BOOST_TEST(
      read(text, {"train.steps=198"}).warnings ==
          std::vector{
              "command line: train.steps=198: optim.schedule.warmup: 100 of the 198 steps of the run, "
              "so most of it has a low learning rate; auto is a tenth of the steps"s},
      boost::test_tools::per_element());
  BOOST_TEST(
      read(copy + "optim: {schedule: {warmup: 100}}\ntrain: {steps: 50}\n", {}).warnings.size() ==
      1u);
  const std::string late = ", but cosine ends at step 2; set a shorter warmup";
  check_all({
      // The warmup is not shortened if it is already too long in the file or is set on the command
      // line.
      {copy + "optim: {schedule: {name: cosine, warmup: 100}}\ntrain: {steps: 2}\n",
       "exp.yaml:2:42: optim.schedule.warmup: 100" + late},
      {copy + "optim: {schedule: {name: cosine, warmup: 100}}\ntrain: {steps: 3}\n",
       "command line: train.steps=2: optim.schedule.warmup: 100" + late,
       {"train.steps=2"}},
      {text,
       "command line: optim.schedule.warmup=100: 100" + late,
       {"train.steps=2", "optim.schedule.warmup=100"}},
  });
}

BOOST_AUTO_TEST_CASE(default_warmup_follows_the_number_of_steps) {
  const auto warmup = [](const std::string& keys, const std::vector<std::string>& overrides = {}) {
    const heed::Config config = heed::parse_config(copy + keys, "exp.yaml", overrides);
    BOOST_TEST(config.warnings.empty());
    return config.optim.schedule.warmup;
  };
  BOOST_TEST(warmup("") == 1000);
  BOOST_TEST(warmup("train: {steps: 50}\n") == 5);
  BOOST_TEST(warmup("train: {steps: 5}\noptim: {schedule: {warmup: auto}}\n") == 1);
  BOOST_TEST(warmup("train: {steps: 500}\n", {"train.steps=20", "optim.schedule.name=linear"}) ==
             2);
  for (const char* const name : {"noam", "inverse_sqrt", "cosine", "linear", "constant"})
    BOOST_TEST(warmup("train: {steps: 1}\n", {std::string("optim.schedule.name=") + name}) <= 1);
  BOOST_TEST(warmup("train: {epochs: 3}\n") == heed::ScheduleOptions::automatic);
  check_all(
      {{copy + "optim: {schedule: {warmup: -1}}\n",
        "exp.yaml:2:28: optim.schedule.warmup: -1 is out of range (allowed: 0 to "
        "1000000000000)"},
       {copy + "optim: {schedule: {warmup: soon}}\n",
        "exp.yaml:2:28: optim.schedule.warmup: expected auto or a whole number, got \"soon\""}});
}

BOOST_AUTO_TEST_CASE(average_over_more_than_the_last_fifth_of_the_steps_causes_a_warning) {
  const auto warnings = [&](const std::string& train) {
    return heed::parse_config(copy + "train: " + train, "exp.yaml", {}).warnings;
  };
  const std::string warning =
      "exp.yaml:2:31: train.average: 5 checkpoints with save_every: 500 span more than the last "
      "fifth of the 2000 steps, and only those within it are averaged; lower average or save_every";
  BOOST_TEST(warnings("{steps: 2000, average: 5}") == std::vector{warning},
             boost::test_tools::per_element());
  BOOST_TEST(warnings("{steps: 2000, average: 5, save_every: 100}").empty());
  BOOST_TEST(warnings("{steps: 2000, average: 5, save_every: 101}").size() == 1u);
  BOOST_TEST(
      warnings("{steps: 11, average: 2, save_every: 3}").empty());  // the fifth is rounded up
  BOOST_TEST(warnings("{steps: 11, average: 2, save_every: 4}").size() == 1u);
  BOOST_TEST(warnings("{steps: 100, average: 1}").empty());
  BOOST_TEST(
      warnings("{steps: 0, epochs: 2, average: 9}").empty());  // the number of steps is unknown
}

BOOST_AUTO_TEST_SUITE_END()
