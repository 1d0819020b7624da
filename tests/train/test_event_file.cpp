// Event files: checksums, names and recorded values. test_event_file.py tests whole files.
#include "train/run/event_file.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/full_disk.h"
#include "tests/train/small_run.h"
#include "tests/train/support.h"
#include "train/run/run_metrics.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(event_file)

BOOST_AUTO_TEST_CASE(crc32c_equals_the_examples_of_rfc_3720) {
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  BOOST_TEST(crc32c("") == 0u);
  BOOST_TEST(crc32c("123456789") == 0xE3069283u);
  BOOST_TEST(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  BOOST_TEST(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
  BOOST_TEST(crc32c(ascending) == 0x46DD794Eu);
}

BOOST_AUTO_TEST_CASE(name_of_a_new_event_file_sorts_after_existing_names) {
  const TempFolder folder;
  std::string last;
  for (int i = 0; i < 4; ++i) {
    if (i == 3)
      put(folder / "events.out.tfevents.9000000000.other", "");  // the clock of its writer is ahead
    const EventFile file(folder.path, 1);
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      newest = std::max(newest, entry.path().filename().string());
    BOOST_TEST(newest > last);
    BOOST_TEST(newest.ends_with(".heed"));
    last = newest;
  }
  BOOST_TEST(last == "events.out.tfevents.9000000001.heed");
}

BOOST_AUTO_TEST_CASE(scalars_of_a_record_are_its_numbers_except_the_step) {
  const std::vector<TaggedScalar> scalars =
      scalars_of({{"kind", "valid"},
                  {"step", 7},
                  {"loss", 0.5},
                  {"signature", "13a"},
                  {"steps", {1, 2}},
                  {"parts", {{"copy", {{"bleu", 40}}}, {"of", nullptr}}}});
  BOOST_REQUIRE(scalars.size() == 2);
  BOOST_TEST(scalars[0].tag == "valid/loss");
  BOOST_TEST(scalars[0].value == 0.5);
  BOOST_TEST(scalars[1].tag == "valid.parts.copy/bleu");
  BOOST_TEST(scalars[1].value == 40);
}

BOOST_AUTO_TEST_CASE(event_files_are_written_only_if_requested) {
  const TempFolder folder;
  Config config = small_run();
  {
    RunMetrics metrics({folder.path}, config, 0);
    metrics.append({{"kind", "train"}, {"step", 1}, {"loss", 2}});
  }
  BOOST_TEST(folder.entries() == 1);
  config.train.tensorboard = true;
  RunMetrics metrics({folder.path}, config, 1);
  metrics.append({{"kind", "train"}, {"step", 2}, {"loss", NAN}});
  metrics.sync();
  BOOST_TEST(get(folder / "metrics.jsonl") ==
             "{\"kind\":\"train\",\"loss\":2,\"step\":1}\n"
             "{\"kind\":\"train\",\"loss\":null,\"step\":2}\n");
  BOOST_TEST(std::filesystem::is_directory(folder / "tensorboard"));
}

BOOST_AUTO_TEST_CASE(blocked_folder_and_full_disk_are_io_errors) {
  const TempFolder folder;
  put(folder / "tensorboard", "a file");
  Config config = small_run();
  config.train.tensorboard = true;
  HEED_CHECK_ERROR(Exit::io, "tensorboard", RunMetrics({folder.path}, config, 0));
  AppendFile full(folder / "full");
  const FullDisk disk;
  HEED_CHECK_ERROR(Exit::io, "full: File too large", full.append(as_bytes("record")));
}

BOOST_AUTO_TEST_SUITE_END()
