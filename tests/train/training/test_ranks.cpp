// Distributed runs: the same bits as one process for any number of ranks, and errors if ranks
// differ.
#include <atomic>
#include <numeric>

#include "nn/layers/positions.h"
#include "tests/train/thread_transport.h"
#include "tests/train/trainer_support.h"
#include "tests/train/training.h"
#include "train/distributed/agreement.h"
#include "train/distributed/parts.h"
#include "train/loop/rank_start.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(ranks)

namespace {

/// Runs lead(trainer) on rank 0 while the other ranks follow. Checks that all ranks end with the
/// same status. A single rank runs without a World.
void run_on(Run& run, std::int64_t ranks, const std::function<int(Trainer&)>& lead,
            bool unequal_threads = false) {
  const auto first = [&](World* world) {
    Trainer trainer(run.config, run.paths(), run.data, run.run_log, world);
    const int status = lead(trainer);
    trainer.end(status);
    return status;
  };
  if (ranks == 1) {
    first(nullptr);
    return;
  }
  std::atomic<int> ended = 0;
  std::atomic<std::int64_t> sum = 0;
  on_ranks(ranks, [&](World& world) {
    Config config = run.config;
    if (unequal_threads) config.threads += world.rank() % 3;
    sum += world.first() ? first(&world) : Replica(config, run.data, &world).follow();
    ++ended;
  });
  BOOST_TEST(ended == ranks);
  BOOST_TEST(sum % ranks == 0);  // holds if all statuses are equal
}

/// Trains to the end and evaluates on this number of ranks.
void train_on(Run& run, std::int64_t ranks, bool restore, bool unequal_threads = false) {
  const auto lead = [&](Trainer& trainer) {
    restore ? trainer.restore() : trainer.initialise();
    trainer.train();
    trainer.choose_weights();
    trainer.final_evaluation();
    return 7;
  };
  run_on(run, ranks, lead, unequal_threads);
}

/// Trains `one` in one process and a run with the same config in `folder` on three ranks. Checks
/// that all checkpoints and metrics are equal.
void check_same_on_ranks(Run& one, const std::filesystem::path& folder) {
  Run three(one.config, folder);
  train_on(one, 1, false);
  train_on(three, 3, false);
  BOOST_TEST(one.checkpoints().steps() == three.checkpoints().steps(),
             boost::test_tools::per_element());
  for (const std::int64_t step : one.checkpoints().steps()) check_same_checkpoint(one, three, step);
  check_same_metrics(one, three);
}

Config of_lm() {
  Config c = small_run(20);
  c.task = TaskKind::lm;
  c.data.synthetic.name = SyntheticKind::none;
  c.model->decoder_layers = 2;
  c.model->context = 16;
  return c;
}

/// The outcome of `work` on each rank: "" or "STATUS MESSAGE". (Boost.Test allows checks only in
/// one thread.)
std::vector<std::string> ends(std::int64_t ranks, const std::function<void(World&)>& work) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](World& world) {
    try {
      work(world);
    } catch (const Error& e) {
      all[world.rank()] = std::to_string(static_cast<int>(e.code)) + " " + e.what();
    }
  });
  return all;
}
using Texts = std::vector<std::string>;

/// The configs under test with their names. Language models read the file `text`.
std::vector<std::pair<std::string, Config>> models(const std::string& text) {
  std::vector<std::pair<std::string, Config>> all;
  Config c = small_run(20);
  c.train.shards = 8;
  all.emplace_back("seq2seq", c);
  Config means = c;
  means.train.ema = 0.9;
  means.train.rdrop = 1;
  all.emplace_back("means", means);
  Config wide = c;
  wide.model->d_ff = 20000;  // matrices are divided among ranks, and their exchange among rounds
  wide.train.steps = 10;
  all.emplace_back("wide", wide);
  Config compact = wide;
  compact.optim.moments = MomentKind::float8;
  all.emplace_back("compact moments", compact);
  Config momentum = c;
  momentum.optim.name = OptimizerKind::sgd;
  momentum.train.average = 2;
  momentum.train.save_every = 2;
  momentum.train.freeze = {"*embed*"};
  momentum.train.epochs = 3;
  all.emplace_back("momentum", momentum);
  Config lm = of_lm();
  lm.data.train.text = lm.data.valid.text = {text};
  lm.train.shards = 8;
  all.emplace_back("lm", lm);
  lm.model->memory = 16;
  lm.model->positions = PositionKind::relative_xl;
  all.emplace_back("memory", lm);
  Config tag = c;
  tag.task = TaskKind::tag;
  tag.data.synthetic.name = SyntheticKind::brackets;
  tag.train.best = Metric::loss;
  all.emplace_back("tag", tag);
  tag.model->norm_kind = NormKind::batch;
  all.emplace_back("batch norm", tag);
  Config bf16 = c;
  bf16.train.precision = Precision::bf16;  // float32 without vectorised multiply-add
  all.emplace_back("bf16", bf16);
  return all;
}

/// Writes a text for the language models and returns its path.
std::string text_in(const TempFolder& folder) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "abcdefgh ijk lmno"[(i * i + i / 7) % 17];
  const std::string path = (folder.path / "text.txt").string();
  put(path, text);
  return path;
}

}  // namespace

BOOST_AUTO_TEST_CASE(subtrees_partition_the_shards_and_are_nodes_of_the_tree) {
  for (std::int64_t shards = 1; shards <= 20; ++shards) {
    for (std::int64_t ranks = 1; ranks <= shards + 2; ++ranks) {
      std::int64_t next = 0;
      for (std::int64_t r = 0; r < ranks; ++r) {
        const Part part = part_of(shards, r, ranks);
        BOOST_TEST(part.begin == next);
        next = part.end;
        const std::vector<std::int64_t> first = subtrees(part, shards);
        for (std::size_t i = 0; i < first.size(); ++i) {
          const std::int64_t end = i + 1 < first.size() ? first[i + 1] : part.end;
          std::int64_t width = 1;
          while (width < end - first[i]) width *= 2;
          BOOST_TEST(first[i] % width == 0);  // aligned to the width of the node
          BOOST_TEST((width == end - first[i] || end == shards));
        }
        BOOST_TEST((first.empty() ? part.size() == 0 : first.front() == part.begin));
      }
      BOOST_TEST(next == shards);
      BOOST_TEST(part_of(shards, 0, ranks).size() > 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(training_is_bitwise_independent_of_the_number_of_ranks) {
  const TempFolder folder;
  for (const auto& [name, config] : models(text_in(folder))) {
    Run one(config, folder.path / (name + "-1"));
    train_on(one, 1, false);
    for (const std::int64_t ranks : {2, 3, 4, 5, 8}) {
      Config c = config;
      c.threads = ranks % 2 + 1;
      Run run(c, folder.path / (name + "-" + std::to_string(ranks)));
      train_on(run, ranks, false);
      BOOST_TEST_CONTEXT(name << " on " << ranks << " ranks") {
        for (const std::int64_t step : one.checkpoints().steps())
          check_same_checkpoint(one, run, step);
        check_same_metrics(one, run);
        BOOST_TEST(get(one.paths().outputs()) == get(run.paths().outputs()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(run_resumed_with_other_numbers_of_ranks_equals_an_uninterrupted_run) {
  const TempFolder folder;
  for (const auto& [name, config] : models(text_in(folder))) {
    Run whole(config, folder.path / (name + "-whole"));
    train_on(whole, 1, false);
    Config c = config;
    c.train.steps = config.train.steps / 4;
    Run parts(c, folder.path / (name + "-parts"));
    train_on(parts, 2, false);
    parts.config.train.steps = config.train.steps / 2;
    train_on(parts, 3, true);
    parts.config.train.steps = config.train.steps;
    train_on(parts, 1, true);
    BOOST_TEST_CONTEXT(name) { check_same_checkpoint(whole, parts, config.train.steps); }
  }
}

BOOST_AUTO_TEST_CASE(ranks_with_different_numbers_of_threads_equal_one_process_bitwise) {
  const TempFolder folder;
  Config c = small_run(10);
  c.train.shards = 8;
  Run one(c, folder / "one"), four(c, folder / "four");
  train_on(one, 1, false);
  train_on(four, 4, false, true);
  check_same_checkpoint(one, four, 10);
  check_same_metrics(one, four);
}

BOOST_AUTO_TEST_CASE(run_with_early_stopping_is_equal_on_three_ranks_and_in_one_process,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = small_run(200);
  c.optim.lr = 1;  // the loss soon exceeds its initial value
  c.train.validate_every = 5;
  c.train.early_stopping = {.metric = Metric::loss, .patience = 1};
  Run one(c, folder / "one");
  check_same_on_ranks(one, folder / "three");
  HEED_CHECK_TRAINED("last step", static_cast<double>(one.checkpoints().linked("last").value()), <,
                     200);
}

BOOST_AUTO_TEST_CASE(run_with_init_from_is_equal_on_three_ranks_and_in_one_process) {
  const TempFolder folder;
  Run first(small_run(10), folder / "first");
  begin_run(first.paths(), first.config, first.data.tokenizers, first.data.sums, {});
  first.train(false);
  Config c = small_run(10);
  c.seed = 2;
  c.train.init_from = (folder / "first").string();
  Run one(c, folder / "one");
  check_same_on_ranks(one, folder / "three");
  c.train.init_from.clear();
  Run fresh(c, folder / "fresh");
  fresh.train(false);
  BOOST_TEST((one.file(10, "model.safetensors") != fresh.file(10, "model.safetensors")));
}

BOOST_AUTO_TEST_CASE(distillation_is_equal_on_three_ranks_and_in_one_process) {
  const TempFolder folder;
  Run teacher(small_run(10), folder / "teacher");
  begin_run(teacher.paths(), teacher.config, teacher.data.tokenizers, teacher.data.sums, {});
  teacher.train(false);
  Config c = small_run(10);
  c.train.distill = {.teacher = (folder / "teacher").string(), .weight = 0.5, .temperature = 2};
  Run one(c, folder / "one");
  check_same_on_ranks(one, folder / "three");
}

BOOST_AUTO_TEST_CASE(ranks_skip_the_same_steps_as_one_process) {
  const TempFolder folder;
  Config c = small_run(30);
  c.tokenizer.shared = false;
  c.train.batch_tokens = 14;
  c.train.shards = 8;
  c.train.on_nonfinite = OnNonFinite::skip;
  const auto train = [](Trainer& trainer) {
    // The scaled embedding overflows in batches that contain this symbol.
    for (const NamedTensor& p : trainer.model().parameters()) {
      if (p.name != "source_embedding.weight") continue;
      Tensor table = p.tensor;
      table.mutable_value().data()[5 * 12] = 3e38F;
    }
    return trainer.train();
  };
  Run one(c, folder / "one"), three(c, folder / "three");
  run_on(one, 1, train);
  run_on(three, 3, train);
  const std::int64_t skipped = one.count("skipped");
  BOOST_TEST((skipped > 0 && skipped < 30), skipped << " steps");
  check_same_checkpoint(one, three, 30);
  check_same_metrics(one, three);  // the metrics include the reasons for skipping
}

BOOST_AUTO_TEST_CASE(ranks_end_at_a_nonfinite_step_with_the_message_of_one_process) {
  const TempFolder folder;
  Config c = small_run(30);
  c.optim.lr = 1e30;
  c.optim.schedule.warmup = 0;
  const auto message_of = [&](std::int64_t ranks) {
    std::string message;
    Run run(c, folder / "run");
    run_on(run, ranks, [&](Trainer& trainer) {
      HEED_CHECK_ERROR(Exit::non_finite, "the weights are as before the step", trainer.train());
      try {
        trainer.train();
      } catch (const Error& e) {
        message = e.what();
      }
      return 5;
    });
    BOOST_TEST(!run.checkpoints().steps().empty());
    std::filesystem::remove_all(folder / "run");
    return message;
  };
  const std::string one = message_of(1);
  BOOST_TEST(contains(one, "first non-finite tensor: "), one);
  BOOST_TEST(message_of(3) == one);
}

BOOST_AUTO_TEST_CASE(ranks_resume_from_the_checkpoint_before_a_damaged_one) {
  const TempFolder folder;
  Run run(small_run(20), folder / "run");
  train_on(run, 2, false);
  const std::string weights = run.file(20, "model.safetensors");
  const std::vector<nlohmann::json> metrics = run.metrics();
  put(run.checkpoints().folder_of(20) / "model.safetensors", weights.substr(0, weights.size() - 1));
  train_on(run, 3, true);
  BOOST_TEST((run.file(20, "model.safetensors") == weights));
  BOOST_TEST((run.metrics() == metrics));
}

BOOST_AUTO_TEST_CASE(moments_are_divided_among_ranks) {
  const TempFolder folder;
  const Run run(small_run(), folder.path);
  std::atomic<std::int64_t> owned = 0, max_owned = 0, parameters = 0;
  on_ranks(3, [&](World& world) {
    Replica replica(run.config, run.data, &world);
    std::int64_t values = 0;
    for (const NamedTensor& moment : replica.optimizer().state()) values += moment.tensor.size();
    owned += values;
    if (values > max_owned) max_owned = values;
    if (!world.first()) return;
    for (const NamedTensor& p : replica.optimizer().parameters()) parameters += p.tensor.size();
  });
  BOOST_TEST(owned == 2 * parameters);
  BOOST_TEST(max_owned < 2 * parameters);
}

BOOST_AUTO_TEST_CASE(unresponsive_rank_is_named_in_the_error) {
  const Texts found = ends(3, [](World& world) {
    world.set_timeout(0.05);
    if (world.rank() != 1) world.all_gather_values(1);
  });
  const std::string missing = "4 no answer from rank 1 on host 1 in 0.05 s (distributed.timeout)";
  BOOST_TEST(found == (Texts{missing, "", missing}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(error_on_one_rank_ends_all_ranks) {
  const Texts one = ends(3, [](World& world) {
    together(&world, [&] {
      if (world.rank() == 2) throw Error(Exit::bad_input, "cannot read x.txt");
    });
  });
  BOOST_TEST(one == (Texts{"3 rank 2 on host 2: cannot read x.txt", "3 ", "3 "}),
             boost::test_tools::per_element());
  const Texts all = ends(2, [](World& world) {  // an error of all ranks is reported once
    together(&world, []() -> int { throw Error(Exit::usage, "no such key"); });
  });
  BOOST_TEST(all == (Texts{"2 no such key", "2 "}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rank_with_different_config_is_named_in_the_error) {
  const TempFolder folder;
  const Run run(small_run(), folder.path);
  const Texts found = ends(3, [&](World& world) {
    require_equal_ranks(world, run.config, run.data);
    Config changed = run.config;
    if (world.rank() == 1) changed.optim.lr = 0.5;
    require_equal_ranks(world, changed, run.data);
  });
  BOOST_TEST(found == (Texts{"2 the ranks differ; start all with the same build, config and "
                             "data:\n  rank 1 on host 1: optim.lr is 0.5, but 0.004 on rank 0 on "
                             "host 0",
                             "2 ", "2 "}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rank_with_different_data_is_named_in_the_error) {
  const Config c = small_run();
  Config longer_valid = c;
  longer_valid.data.synthetic.valid = 21;
  const ExperimentData data = load_data(c), longer = load_data(longer_valid);
  const Texts found =
      ends(2, [&](World& world) { require_equal_ranks(world, c, world.first() ? data : longer); });
  BOOST_TEST(
      contains(found[0], "\n  rank 1 on host 1: the SHA-256 of the tokens of data.valid is "),
      found[0]);
  BOOST_TEST(!contains(found[0], "data.train"), found[0]);
  BOOST_TEST(found[1] == "2 ");
}

BOOST_AUTO_TEST_CASE(all_ranks_use_the_tokenizers_of_rank_0) {
  for (const bool shared : {true, false}) {
    Config c = small_run();
    c.tokenizer.kind = TokenizerKind::sentencepiece;
    c.tokenizer.vocab_size = 20;
    c.tokenizer.shared = shared;
    const ExperimentData one = load_data(c);
    c.tokenizer.vocab_size = 24;  // rank 1 would train other tokenizers from this config
    std::atomic<int> equal = 0;
    on_ranks(2, [&](World& world) {
      const ExperimentData data =
          load_data_together(&world, c, world.first() ? &one.tokenizers : nullptr);
      if (data.sums.train == one.sums.train && data.sums.test == one.sums.test) ++equal;
    });
    BOOST_TEST(equal == 2);
  }
}

BOOST_AUTO_TEST_CASE(signal_on_one_rank_interrupts_the_jobs_of_all_ranks) {
  std::atomic<int> interrupted = 0, signals = 0;
  on_ranks(3, [&](World& world) {
    Team team(1);
    if (world.rank() == 1) {
      team.interrupt_when([&] {
        world.note_stop(15);
        return true;
      });
    }
    try {
      results_of<int>({team, &world}, 10, [](std::int64_t i) { return static_cast<int>(i); });
    } catch (const Team::Interrupted&) {
      ++interrupted;
      signals += world.stop();
    }
  });
  BOOST_TEST(interrupted == 3);
  BOOST_TEST(signals == 3 * 15);
}

// The processors that a rank uses by default: those of its host, shared with the ranks there.
BOOST_AUTO_TEST_CASE(ranks_share_the_processors_of_their_host) {
  const auto all = static_cast<std::int64_t>(available_processors());
  for (const auto& [ranks, hosts] : {std::pair(1, 1), {2, 1}, {2, 2}, {3, 3}, {4, 2}, {5, 2}}) {
    std::vector<std::int64_t> found(static_cast<std::size_t>(ranks));
    on_ranks(
        ranks, [&](World& world) { found[world.rank()] = world.processors(); }, hosts);
    for (int rank = 0; rank < ranks; ++rank) {
      const int sharing = ranks / hosts + (rank % hosts < ranks % hosts ? 1 : 0);
      BOOST_TEST(found[rank] == std::max<std::int64_t>(all / sharing, 1),
                 "rank " << rank << " of " << ranks << " on " << hosts << " hosts");
    }
  }
}

BOOST_AUTO_TEST_CASE(results_reach_every_rank_in_order) {
  std::atomic<int> right = 0;
  on_ranks(3, [&](World& world) {
    Team team(2);
    const auto lists =
        results_of<std::vector<std::vector<int>>>({team, &world}, 7, [](std::int64_t i) {
          return std::vector<std::vector<int>>(static_cast<std::size_t>(i), {static_cast<int>(i)});
        });
    bool all = lists.size() == 7;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      all &= lists[i].size() == i;
      for (const auto& list : lists[i]) all &= list == std::vector<int>{static_cast<int>(i)};
    }
    right += all ? 1 : 0;
  });
  BOOST_TEST(right == 3);
}

BOOST_AUTO_TEST_SUITE_END()
