// The plan of a sweep, as read from YAML and arguments, and the sweep's folder.
#include <fmt/format.h>

#include <set>

#include "tests/train/support.h"
#include "train/sweep/sweep.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(sweep)

namespace {

const std::string base = "data: {synthetic: {name: copy}}\nseed: 5\n";

struct Plan {
  TempFolder folder;
  std::string config = (folder / "c.yaml").string();
  explicit Plan(const std::string& text = base) { put(config, text); }
  std::vector<SweepMember> members(const std::vector<std::string>& arguments,
                                   std::int64_t seeds = 0, std::int64_t random = 0) const {
    SweepPlan plan = read_sweep(config);
    add_arguments(plan, arguments);
    if (seeds > 0) plan.seeds = seeds;
    if (random > 0) plan.random = random;
    return members_of(plan, config);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(grid_with_seeds_has_all_combinations) {
  const auto members =
      Plan().members({"model.norm=pre,post", "train.steps=7", "model.heads=1,2"}, 2);
  BOOST_REQUIRE(members.size() == 8);
  BOOST_TEST(members[0].name == "001-norm=pre-heads=1-seed=5");
  BOOST_TEST(members[0].overrides == (std::vector<std::string>{"train.steps=7", "model.norm=pre",
                                                               "model.heads=1", "seed=5"}),
             boost::test_tools::per_element());
  BOOST_TEST(members[1].name == "002-norm=pre-heads=1-seed=6");
  BOOST_TEST(members[1].point == members[0].point);
  BOOST_TEST(members[7].name == "008-norm=post-heads=2-seed=6");
}

BOOST_AUTO_TEST_CASE(commas_within_brackets_do_not_separate_values) {
  const auto members =
      Plan().members({"model.layers={encoder: 1, decoder: 2},{encoder: 2, decoder: 1}"});
  BOOST_REQUIRE(members.size() == 2);
  BOOST_TEST(members[0].overrides[0] == "model.layers={encoder: 1, decoder: 2}");
  BOOST_TEST(members[1].overrides[0] == "model.layers={encoder: 2, decoder: 1}");
}

BOOST_AUTO_TEST_CASE(plan_is_read_from_config_and_arguments) {
  const Plan plan(base +
                  "sweep: {model.norm: [pre, post], optim.lr: [1e-3, 0.01], seeds: 2, "
                  "model.layers: [1, {encoder: 1, decoder: 2}]}\n");
  BOOST_TEST(plan.members({}).size() == 16);
  BOOST_TEST(plan.members({"optim.lr=1,2,3"}).size() == 24);  // replaces the config's values
  const auto one_rate = plan.members({"optim.lr=0.5"});
  BOOST_REQUIRE(one_rate.size() == 8);
  BOOST_TEST(read_config(plan.config, one_rate.back().overrides).optim.lr == 0.5);
  BOOST_TEST(plan.members({})[2].overrides[2] == "model.layers={encoder: 1, decoder: 2}");
  // `heed train` accepts such a config, with a warning about the section.
  const Config config = read_config(plan.config);
  BOOST_REQUIRE(config.warnings.size() == 1);
  BOOST_TEST(contains(config.warnings[0], "sweep: only heed sweep reads this section"));
}

BOOST_AUTO_TEST_CASE(random_points_of_the_grid_are_distinct_and_reproducible) {
  const auto members = Plan().members({"seed=1,2,3,4,5,6,7,8,9,10", "model.heads=1,2,4"}, 0, 12);
  BOOST_TEST(members.size() == 12);
  std::set<std::size_t> points;
  for (const SweepMember& member : members) points.insert(member.point);
  BOOST_TEST(points.size() == 12);
  const auto again = Plan().members({"seed=1,2,3,4,5,6,7,8,9,10", "model.heads=1,2,4"}, 0, 12);
  for (std::size_t i = 0; i < 12; ++i) BOOST_TEST(members[i].name == again[i].name);
}

BOOST_AUTO_TEST_CASE(mistakes_in_a_sweep_are_reported_before_any_run) {
  const auto message = [](const std::string& section, const std::vector<std::string>& arguments) {
    const Plan plan(base + section);
    return error_of(Exit::usage, [&] { plan.members(arguments); });
  };
  BOOST_TEST(contains(message("", {}), "nothing to vary"));
  BOOST_TEST(contains(message("", {"model.heads=1,3"}), "run 002-heads=3 of the sweep: "));
  BOOST_TEST(contains(message("", {"model.haeds=1,2"}), "did you mean model.heads?"));
  BOOST_TEST(contains(message("sweep: 3\n", {}), "expected keys and lists of values"));
  BOOST_TEST(contains(message("sweep: {model.nrom: [pre]}\n", {}),
                      "c.yaml:3:9: sweep.model.nrom: expected a config key"));
  BOOST_TEST(contains(message("sweep: {model.norm: pre}\n", {}), "expected a list of values"));
  BOOST_TEST(contains(message("sweep: {seeds: 0}\n", {}), "whole number from 1 to 10000"));
  BOOST_TEST(contains(message("sweep: {seeds: 9223372036854775807}\n", {"model.heads=1,2"}),
                      "whole number from 1 to 10000"));
  BOOST_TEST(contains(message("", {"optim.lr=1e-3,0.01,0.001"}),
                      "runs 001-lr=1e_3 and 003-lr=0.001 of the sweep are the same"));
  BOOST_TEST(
      contains(message("sweep: {seeds: 2}\n", {"seed=1,2"}), "--seeds (or sweep.seeds) sets seed"));
  BOOST_TEST(contains(message("sweep: {halving: true}\n", {"train.steps=10,20"}),
                      "train.steps cannot have several values"));
  BOOST_TEST(
      contains(message("train: {steps: 0, epochs: 2}\nsweep: {halving: true, seeds: 2}\n", {}),
               "--halving divides train.steps"));
  BOOST_TEST(contains(error_of(Exit::usage, [] { read_sweep("no-such.yaml"); }),
                      "cannot read the config: "));
  BOOST_TEST(contains(message("sweep: {halving: maybe}\n", {}), "expected true or false"));
  std::string many = "seed=0";
  for (int i = 1; i < 200; ++i) many += fmt::format(",{}", i);
  BOOST_TEST(
      contains(message("", {many, "model.heads=1,2,4,8", "optim.lr=1,2,3,4,5,6,7,8,9,10,11,12,13"}),
               "the maximum is 10000"));
}

BOOST_AUTO_TEST_CASE(folder_of_another_sweep_is_refused) {
  const Plan plan;
  const auto two = plan.members({"model.heads=1,2"}), three = plan.members({"model.heads=1,2,4"});
  const SweepOptions options{plan.config, plan.folder / "s", 1, false};
  claim_folder(options, two);
  claim_folder(options, two);  // the same sweep is continued
  BOOST_TEST(contains(error_of(Exit::usage, [&] { claim_folder(options, three); }),
                      "holds another sweep"));
  put(plan.config, "# moved, or with a comment\nname: other\nthreads: 1\n" + base);
  claim_folder(options, two);
  put(plan.config, base + "optim: {schedule: {warmup: 1}}\ntrain: {steps: 9}\n");
  BOOST_TEST(contains(error_of(Exit::usage, [&] { claim_folder(options, two); }),
                      "c.yaml has changed since the sweep in " + options.folder.string() +
                          " began: optim.schedule.warmup, train.steps. The remaining runs"));
  put(plan.folder / "s" / "sweep.json", "[]");
  BOOST_TEST(
      contains(error_of(Exit::usage, [&] { claim_folder(options, two); }), "holds another sweep"));
  std::filesystem::create_directories(plan.folder / "run");
  put(plan.folder / "run" / "config.yaml", base);
  const SweepOptions run{plan.config, plan.folder / "run", 1, false};
  BOOST_TEST(contains(error_of(Exit::usage, [&] { claim_folder(run, two); }), "holds a run"));
}

BOOST_AUTO_TEST_SUITE_END()
