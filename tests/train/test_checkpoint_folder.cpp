#include "train/run/checkpoint_folder.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <climits>

#include "tests/train/support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(checkpoint_folder)
namespace fs = std::filesystem;
using Steps = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

namespace {

/// A run folder with checkpoints of two files each.
struct Run {
  TempFolder folder;
  CheckpointFolder checkpoints{folder.path};

  fs::path save(std::int64_t step, bool is_best = false, bool on_request = false) {
    const std::vector<CheckpointFile> files = {
        {"model.safetensors",
         [&](FileWriter& out) { out.write("weights " + std::to_string(step)); }},
        {"training.safetensors", [&](FileWriter& out) { out.write("moments"); }}};
    nlohmann::json state{{"epoch", step / 10}, {"loss", 1.5}};
    if (on_request) state["on_request"] = true;
    return checkpoints.save(step, files, state, is_best);
  }
  fs::path file(std::int64_t step, const std::string& name) const {
    return checkpoints.folder_of(step) / name;
  }
  std::int64_t entries() const {
    return std::distance(fs::directory_iterator(folder / "checkpoints"), {});
  }
};

/// Flips one bit of a file.
void flip(const fs::path& path, std::size_t bit) {
  std::string bytes = get(path);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  put(path, bytes);
}

bool is_valid(const fs::path& folder) {
  try {
    open_checkpoint(folder);
    return true;
  } catch (const Error& error) {
    BOOST_TEST(static_cast<int>(error.code) == static_cast<int>(Exit::bad_input), error.what());
    return false;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(saved_checkpoint_is_opened_and_linked_as_last) {
  Run run;
  const fs::path folder = run.save(1000);
  BOOST_TEST(folder == run.folder / "checkpoints/step-00001000");
  const Checkpoint found = open_checkpoint(folder);
  BOOST_TEST(found.step == 1000);
  BOOST_TEST((found.state == nlohmann::json{{"epoch", 100}, {"loss", 1.5}}));
  BOOST_TEST(get(folder / "model.safetensors") == "weights 1000");
  BOOST_TEST(fs::read_symlink(run.folder / "last") == "checkpoints/step-00001000");
  BOOST_TEST(!fs::exists(fs::symlink_status(run.folder / "best")));
  BOOST_TEST(run.entries() == 1);
}

BOOST_AUTO_TEST_CASE(steps_and_links_are_those_of_saved_checkpoints) {
  Run run;
  BOOST_TEST((run.checkpoints.steps() == Steps{}));
  BOOST_TEST(!run.checkpoints.linked("best"));
  run.save(500, true);
  run.save(1000);
  run.save(123456789);
  BOOST_TEST((run.checkpoints.steps() == Steps{500, 1000, 123456789}));
  BOOST_TEST(*run.checkpoints.linked("best") == 500);
  BOOST_TEST(*run.checkpoints.linked("last") == 123456789);
  BOOST_TEST(open_checkpoint(run.folder / "best").step == 500);
  run.checkpoints.link("best", 1000);
  BOOST_TEST(*run.checkpoints.linked("best") == 1000);
  fs::create_directory(run.folder / "checkpoints/step-7");  // too few digits for a checkpoint
  fs::create_directory(run.folder / "checkpoints/step-0000000x");
  put(run.folder / "checkpoints/step-00000001", "a file");
  BOOST_TEST((run.checkpoints.steps() == Steps{500, 1000, 123456789}));
}

BOOST_AUTO_TEST_CASE(saving_a_step_again_replaces_its_checkpoint) {
  Run run;
  run.save(10);
  put(run.file(10, "model.safetensors"), "broken");
  run.save(10);
  BOOST_TEST(open_checkpoint(run.checkpoints.folder_of(10)).step == 10);
  BOOST_TEST(run.entries() == 1);
}

BOOST_AUTO_TEST_CASE(failed_save_leaves_checkpoints_and_links_unchanged) {
  Run run;
  run.save(10);
  const std::vector<CheckpointFile> files = {
      {"model.safetensors", [](FileWriter& out) { out.write("half"); }},
      {"training.safetensors", [](FileWriter&) { throw Error(Exit::io, "disk full"); }}};
  HEED_CHECK_ERROR(Exit::io, "disk full", run.checkpoints.save(20, files, {}));
  BOOST_TEST((run.checkpoints.steps() == Steps{10}));
  BOOST_TEST(*run.checkpoints.linked("last") == 10);
  BOOST_TEST(run.entries() == 1);
}

BOOST_AUTO_TEST_CASE(invalid_and_duplicate_file_names_are_refused) {
  Run run;
  const std::string too_long(NAME_MAX + 1, 'x');
  for (const std::string& name : Names{"", "../x", "a/b", ".hidden", "state.json", too_long}) {
    const std::vector<CheckpointFile> files = {{name, [](FileWriter&) {}}};
    HEED_CHECK_ERROR(Exit::failed, "cannot be a file's name", run.checkpoints.save(1, files, {}));
  }
  const CheckpointFile ended{std::string("a\0b", 3), [](FileWriter&) {}};
  HEED_CHECK_ERROR(Exit::failed, "\"a", run.checkpoints.save(1, std::vector{ended}, {}));
  const CheckpointFile file{"a", [](FileWriter&) {}};
  HEED_CHECK_ERROR(Exit::failed, "cannot be", run.checkpoints.save(1, std::vector{file, file}, {}));
}

BOOST_AUTO_TEST_CASE(folder_that_cannot_be_listed_is_an_error) {
  Run run;
  put(run.folder / "checkpoints", "a file");
  HEED_CHECK_ERROR(Exit::io, (run.folder / "checkpoints").string() + ": Not a directory",
                   run.checkpoints.steps());
}

BOOST_AUTO_TEST_CASE(unreadable_checkpoints_are_distinguished_from_damaged_ones) {
  Run run;
  for (const std::int64_t step : {10, 20, 30, 40}) run.save(step);
  for (const fs::path& file : {run.file(30, "state.json"), run.file(20, "model.safetensors")}) {
    fs::remove(file);
    fs::create_symlink(std::string(300, 'x'), file);  // the system cannot follow the link
  }
  fs::remove(run.file(40, "state.json"));
  const CheckpointFolder::Newest newest = run.checkpoints.newest_valid();
  BOOST_TEST(newest.checkpoint->step == 10);
  BOOST_REQUIRE_EQUAL(newest.skipped.size(), 1u);
  BOOST_TEST(contains(newest.skipped[0], run.file(40, "state.json").string()));
  BOOST_REQUIRE_EQUAL(newest.unreadable.size(), 2u);
  BOOST_TEST(contains(newest.unreadable[0], run.file(30, "state.json").string()));
  BOOST_TEST(contains(newest.unreadable[1], run.file(20, "model.safetensors").string()));
}

BOOST_AUTO_TEST_CASE(checkpoint_that_cannot_be_examined_is_an_error) {
  Run run;
  run.save(10);
  const fs::path unreadable = run.checkpoints.folder_of(20);
  fs::create_symlink(std::string(300, 'x'), unreadable);
  HEED_CHECK_ERROR(Exit::io, "cannot examine " + unreadable.string() + ": File name too long",
                   run.checkpoints.steps());
  fs::remove(unreadable);
  fs::create_symlink("nothing", unreadable);  // a dangling link is not a checkpoint
  BOOST_TEST((run.checkpoints.steps() == std::vector<std::int64_t>{10}));
}

BOOST_AUTO_TEST_CASE(single_file_is_checked_independently_of_the_others) {
  Run run;
  const fs::path folder = run.save(10);
  BOOST_CHECK_NO_THROW(check_file(folder, "model.safetensors"));
  BOOST_CHECK_NO_THROW(check_file(folder, "training.safetensors"));
  HEED_CHECK_ERROR(Exit::bad_input, "has no entry for other", check_file(folder, "other"));
  flip(run.file(10, "model.safetensors"), 3);
  BOOST_CHECK_NO_THROW(check_file(folder, "training.safetensors"));
  HEED_CHECK_ERROR(Exit::bad_input, "content has changed", check_file(folder, "model.safetensors"));
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_of_a_checkpoint_is_detected) {
  Run run;
  const fs::path folder = run.save(10);
  for (const std::string name : {"model.safetensors", "training.safetensors", "state.json"}) {
    for (std::size_t bit = 0; bit < 8 * fs::file_size(folder / name); ++bit) {
      flip(folder / name, bit);
      BOOST_TEST(!is_valid(folder), name << ", bit " << bit);
      flip(folder / name, bit);
    }
  }
  BOOST_TEST(is_valid(folder));
}

BOOST_AUTO_TEST_CASE(truncated_and_extended_files_of_a_checkpoint_are_detected) {
  Run run;
  const fs::path folder = run.save(10);
  for (const std::string name : {"model.safetensors", "training.safetensors", "state.json"}) {
    const std::string bytes = get(folder / name);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      put(folder / name, bytes.substr(0, length));
      BOOST_TEST(!is_valid(folder), name << " truncated to " << length << " bytes");
    }
    for (const std::string more : {" ", "\n", "x", "{}"}) {
      put(folder / name, bytes + more);
      BOOST_TEST(!is_valid(folder), name << " with appended text");
    }
    put(folder / name, bytes);
  }
  BOOST_TEST(is_valid(folder));
}

BOOST_AUTO_TEST_CASE(read_errors_contain_file_and_reason) {
  Run run;
  const fs::path folder = run.save(10);
  const std::string model = (folder / "model.safetensors").string();
  put(model, "weights 11");
  HEED_CHECK_ERROR(Exit::bad_input, model + ": its content has changed", open_checkpoint(folder));
  put(model, "short");
  HEED_CHECK_ERROR(Exit::bad_input, model + ": its size is 5 instead of 10 bytes",
                   open_checkpoint(folder));
  fs::remove(model);
  HEED_CHECK_ERROR(Exit::bad_input, model + ": no such file", open_checkpoint(folder));
  fs::remove(folder / "state.json");
  HEED_CHECK_ERROR(Exit::bad_input, "state.json: no such file", open_checkpoint(folder));
  HEED_CHECK_ERROR(Exit::bad_input, "nowhere: no such file",
                   open_checkpoint(run.folder / "nowhere"));
}

BOOST_AUTO_TEST_CASE(swapped_files_and_folders_are_detected) {
  Run run;
  run.save(10);
  run.save(20);
  fs::rename(run.checkpoints.folder_of(20), run.checkpoints.folder_of(30));
  HEED_CHECK_ERROR(Exit::bad_input, "holds the checkpoint of step 20",
                   open_checkpoint(run.checkpoints.folder_of(30)));
  fs::rename(run.file(10, "model.safetensors"), run.file(10, "x"));
  fs::rename(run.file(10, "training.safetensors"), run.file(10, "model.safetensors"));
  fs::rename(run.file(10, "x"), run.file(10, "training.safetensors"));
  BOOST_TEST(!is_valid(run.checkpoints.folder_of(10)));
}

// A forged state with a correct checksum must neither give access to files outside the folder nor
// cause a crash.
BOOST_AUTO_TEST_CASE(forged_state_is_refused) {
  Run run;
  const fs::path folder = run.save(10);
  const auto refused = [&](nlohmann::json content) {
    content["sha256"] = sha256_hex(content.dump(2) + "\n");
    put(folder / "state.json", content.dump(2) + "\n");
    return !is_valid(folder);
  };
  const nlohmann::json file = {{"bytes", 0}, {"sha256", sha256_hex("")}};
  BOOST_TEST(!refused({{"step", 10}, {"state", {}}, {"files", nlohmann::json::object()}}));
  BOOST_TEST(refused({{"step", 10}, {"state", {}}, {"files", {{"../../x", file}}}}));
  BOOST_TEST(refused({{"step", 10}, {"state", {}}, {"files", {{"model.safetensors", 3}}}}));
  BOOST_TEST(refused({{"step", "10"}, {"state", {}}, {"files", nlohmann::json::object()}}));
  BOOST_TEST(refused({{"state", {}}, {"files", nlohmann::json::object()}}));
  BOOST_TEST(refused({{"step", 10}, {"files", nlohmann::json::object()}}));
  BOOST_TEST(refused({{"step", 10}, {"state", {}}}));
  for (const std::string text : {"", "null", "[]", "3", "\"x\"", "{}", "{\"sha256\": 3}"}) {
    put(folder / "state.json", text);
    BOOST_TEST(!is_valid(folder), text);
  }
}

BOOST_AUTO_TEST_CASE(newest_valid_skips_damaged_checkpoints) {
  Run run;
  BOOST_TEST(!run.checkpoints.newest_valid().checkpoint);
  for (const std::int64_t step : {10, 20, 30, 40}) run.save(step);
  BOOST_TEST(run.checkpoints.newest_valid().checkpoint->step == 40);
  BOOST_TEST(run.checkpoints.newest_valid().skipped.empty());
  flip(run.file(40, "training.safetensors"), 3);
  fs::remove_all(run.checkpoints.folder_of(30));
  fs::create_directory(run.checkpoints.folder_of(30));
  const auto newest = run.checkpoints.newest_valid();
  BOOST_TEST(newest.checkpoint->step == 20);
  BOOST_REQUIRE(newest.skipped.size() == 2);
  BOOST_TEST(contains(newest.skipped[0], run.file(40, "training.safetensors").string()));
  BOOST_TEST(contains(newest.skipped[1], run.file(30, "state.json").string()));
  for (const std::int64_t step : {10, 20}) flip(run.file(step, "state.json"), 100);
  BOOST_TEST(!run.checkpoints.newest_valid().checkpoint);
  BOOST_TEST(run.checkpoints.newest_valid().skipped.size() == 4);
}

BOOST_AUTO_TEST_CASE(prune_keeps_newest_best_and_last) {
  Run run;
  run.save(10);
  run.save(20, true);
  for (const std::int64_t step : {30, 40, 50, 60}) run.save(step);
  run.checkpoints.prune(3);
  BOOST_TEST((run.checkpoints.steps() == Steps{20, 40, 50, 60}));
  run.checkpoints.prune(0);  // the minimum is two
  BOOST_TEST((run.checkpoints.steps() == Steps{20, 50, 60}));
  run.checkpoints.link("last", 20);  // the state after resuming from an older checkpoint
  run.save(55);
  run.checkpoints.link("last", 50);
  run.checkpoints.prune(1);
  BOOST_TEST((run.checkpoints.steps() == Steps{20, 50, 55, 60}));
  run.checkpoints.prune(100);
  BOOST_TEST((run.checkpoints.steps() == Steps{20, 50, 55, 60}));
}

BOOST_AUTO_TEST_CASE(prune_ignores_damaged_checkpoints_when_counting) {
  Run run;
  for (const std::int64_t step : {10, 20, 30, 40, 50}) run.save(step);
  put(run.file(50, "model.safetensors"), "short");
  fs::remove(run.file(40, "state.json"));
  run.checkpoints.prune(2);
  BOOST_TEST((run.checkpoints.steps() == Steps{20, 30, 40, 50}));
}

BOOST_AUTO_TEST_CASE(prune_ignores_checkpoints_made_on_request_when_counting) {
  Run run;
  for (const std::int64_t step : {10, 20, 30}) run.save(step);
  for (const std::int64_t step : {33, 36}) run.save(step, false, true);
  run.save(40);
  run.checkpoints.prune(2);
  BOOST_TEST((run.checkpoints.steps() == Steps{30, 33, 36, 40}));
  run.save(50);  // two regular checkpoints are newer than the requested ones
  run.checkpoints.prune(2);
  BOOST_TEST((run.checkpoints.steps() == Steps{40, 50}));
}

BOOST_AUTO_TEST_CASE(prune_removes_unfinished_checkpoints) {
  Run run;
  run.save(10);
  fs::create_directories(run.folder / "checkpoints/.step-00000020.tmp");
  put(run.folder / "checkpoints/.step-00000020.tmp/model.safetensors", "half");
  fs::create_directories(run.folder / "checkpoints/.step-00000005.old");
  put(run.folder / "checkpoints/notes.txt", "somebody's");
  run.checkpoints.prune(2);
  BOOST_TEST(run.entries() == 2);
  BOOST_TEST(fs::exists(run.folder / "checkpoints/notes.txt"));
}

BOOST_AUTO_TEST_CASE(text_of_weights_contains_name_steps_and_folder) {
  WeightsInfo weights;
  weights.folder = "runs/a/best";
  BOOST_TEST(weights.text() == "runs/a/best");
  weights.steps = {30};
  weights.name = "best";
  BOOST_TEST(weights.text() == "best, step 30 (runs/a/best)");
  for (const char* name : {"step", "folder"}) {  // these names are omitted
    weights.name = name;
    BOOST_TEST(weights.text() == "step 30 (runs/a/best)");
  }
  weights.name = "average";
  weights.steps = {10, 20, 30};
  BOOST_TEST(weights.text() == "average, mean of steps 10, 20, 30 (runs/a/best)");
}

BOOST_AUTO_TEST_CASE(folder_that_cannot_be_removed_remains_and_is_reported) {
  Run run;
  run.save(10);
  const fs::path locked = run.folder / "checkpoints/.step-00000005.old";
  fs::create_directories(locked);
  put(locked / "model.safetensors", "half");
  fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec);
  if (::geteuid() == 0) {  // permissions do not restrict root
    fs::permissions(run.folder.path, fs::perms::all);
    for (const fs::path& path : {run.folder / "checkpoints", locked})
      BOOST_REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    BOOST_REQUIRE(::seteuid(65534) == 0);
  }
  const std::vector<std::string> kept = run.checkpoints.prune(2);
  if (::getuid() == 0) BOOST_REQUIRE(::seteuid(0) == 0);
  BOOST_REQUIRE(kept.size() == 1);
  BOOST_TEST(contains(kept[0], "cannot remove " + locked.string()));
  BOOST_TEST(fs::exists(locked / "model.safetensors"));
  fs::permissions(locked, fs::perms::owner_all);
  BOOST_TEST(run.checkpoints.prune(2).empty());
  BOOST_TEST(!fs::exists(locked));
}

BOOST_AUTO_TEST_SUITE_END()
