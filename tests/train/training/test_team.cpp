#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>

#include "autograd/base/team.h"
#include "tests/patience.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(team)

BOOST_AUTO_TEST_CASE(every_job_runs_once) {
  for (const std::int64_t threads : {1, 2, 3, 4, 7}) {
    Team team(threads);
    BOOST_TEST(team.threads() == threads);
    for (const std::int64_t count : {0, 1, 2, 3, 4, 5, 8, 100, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      team.run(count, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& n : calls) BOOST_TEST(n == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(short_rounds_run_every_job) {
  Team team(4);
  std::int64_t expected = 0;
  std::atomic<std::int64_t> sum{0};
  for (std::int64_t round = 0; round < 5000; ++round) {
    const std::int64_t count = round % 7;
    team.run(count, [&](std::int64_t i) { sum += i + 1; });
    expected += count * (count + 1) / 2;
    if (sum != expected) break;
  }
  BOOST_TEST(sum == expected);
}

BOOST_AUTO_TEST_CASE(round_ends_after_all_its_jobs) {
  Team team(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> done(6);  // plain ints: run() makes the writes of the jobs visible
    team.run(6, [&](std::int64_t i) {
      if (i % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
      done[static_cast<std::size_t>(i)] = 1;
    });
    BOOST_TEST(std::accumulate(done.begin(), done.end(), 0) == 6);
  }
}

BOOST_AUTO_TEST_CASE(team_uses_the_requested_number_of_threads) {
  Team team(3);
  std::set<std::thread::id> who;
  std::mutex mutex;
  std::condition_variable all_here;
  team.run(3, [&](std::int64_t) {  // the jobs wait for one another, so each requires a thread
    std::unique_lock lock(mutex);
    who.insert(std::this_thread::get_id());
    all_here.notify_all();
    all_here.wait_for(lock, std::chrono::seconds(test::patience), [&] { return who.size() == 3; });
  });
  team.run(300, [&](std::int64_t) {
    const std::lock_guard lock(mutex);
    who.insert(std::this_thread::get_id());
  });
  BOOST_TEST(who.size() == 3u);
  BOOST_TEST(who.count(std::this_thread::get_id()) == 1u);
}

BOOST_AUTO_TEST_CASE(team_rethrows_an_exception_and_remains_usable) {
  for (const std::int64_t threads : {1, 2, 4}) {
    Team team(threads);
    for (const std::int64_t thrower : {0, 5, 9}) {
      const auto job = [&](std::int64_t i) {
        if (i == thrower) throw std::runtime_error("job " + std::to_string(i));
      };
      BOOST_CHECK_EXCEPTION(team.run(10, job), std::runtime_error,
                            [&](const std::runtime_error& error) {
                              return error.what() == "job " + std::to_string(thrower);
                            });
      std::atomic<int> calls{0};
      team.run(10, [&](std::int64_t) { ++calls; });  // the error is not thrown again
      BOOST_TEST(calls == 10);
    }
    BOOST_CHECK_THROW(team.run(10, [](std::int64_t) { throw 1; }), int);  // every job throws
  }
}

BOOST_AUTO_TEST_CASE(unused_team_can_be_destroyed_and_0_threads_mean_all_processors) {
  for (int i = 0; i < 20; ++i) Team team(4);
  Team all(0);
  BOOST_TEST(all.threads() == available_processors());
}

BOOST_AUTO_TEST_CASE(nested_teams_run_all_jobs) {
  Team outer(2);
  std::atomic<int> calls{0};
  outer.run(3, [&](std::int64_t) {
    Team inner(2);
    inner.run(5, [&](std::int64_t) { ++calls; });
  });
  BOOST_TEST(calls == 15);
}

BOOST_AUTO_TEST_SUITE_END()
