#include <thread>

#include "data/batches/batcher.h"
#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(prefetcher)

BOOST_AUTO_TEST_CASE(prefetched_batches_equal_those_of_stream) {
  for (const bool text : {false, true}) {
    const Dataset data = text ? counting_text(3000) : random_pairs(800, 12);
    const BatchOptions o{.batch_tokens = 100, .context = 10};
    BatchStream direct(data, o);
    direct.seek({1, 3});
    Prefetcher prefetcher(direct);
    for (int i = 0; i < 300; ++i) {
      BOOST_TEST((prefetcher.position() == direct.position()));
      BOOST_TEST(prefetcher.epochs_done() == direct.epochs_done());
      BOOST_TEST((prefetcher.next() == direct.next()));
    }
    BOOST_TEST(direct.position().epoch > 3);
  }
}

BOOST_AUTO_TEST_CASE(prefetcher_is_destroyed_safely_at_any_time) {
  const Dataset data = random_pairs(300, 12);
  for (int batches = 0; batches < 50; ++batches) {
    Prefetcher prefetcher(BatchStream(data, {.batch_tokens = 50}));
    for (int i = 0; i < batches; ++i) prefetcher.next();
    if (batches % 3 == 0) std::this_thread::yield();
  }
}

BOOST_AUTO_TEST_CASE(stream_error_is_rethrown_by_next) {
  Dataset data = random_pairs(300, 12);
  BatchStream stream(data, {.batch_tokens = 50});
  while (stream.position().epoch == 0) stream.next();
  data.source = {};  // the next epoch fails
  data.target = {};
  Prefetcher prefetcher(stream);
  expect_error(Exit::failed, {"no batch"}, [&] { prefetcher.next(); });
}

BOOST_AUTO_TEST_SUITE_END()
