#include "train/distributed/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "autograd/io/sha256.h"

namespace heed {

Outcome outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& e) {
    return {static_cast<int>(e.code), e.what()};
  } catch (const std::bad_alloc&) {
    return {static_cast<int>(Exit::io), "out of memory"};
  } catch (const std::system_error& e) {  // errors of the file system or of threads
    return {static_cast<int>(Exit::io), e.what()};
  } catch (const std::exception& e) {
    return {static_cast<int>(Exit::failed), e.what()};
  }
}

void require_all(World& world, const Outcome& local) {
  const std::vector<int> statuses = world.all_gather_values(local.status);
  const std::vector<std::string> messages = world.all_gather(local.message);
  std::vector<std::string> names;
  std::size_t first = messages.size();
  for (std::size_t r = 0; r < messages.size(); ++r) {
    if (statuses[r] == 0) continue;
    first = std::min(first, r);
    if (messages[r] == messages[first])
      names.push_back(world.name_of(static_cast<std::int64_t>(r)));
  }
  if (first == messages.size()) return;
  world.confirm_end();
  const auto code = static_cast<Exit>(statuses[first]);
  if (!world.first()) throw Error(code, "");
  if (names.size() == messages.size()) throw Error(code, messages[first]);
  throw Error(code, "{}: {}", fmt::join(names, ", "), messages[first]);
}

void require_equal(World& world, const std::vector<Fact>& local) {
  std::string all_values, problems;
  for (const Fact& fact : local) all_values += fact.value + '\n';
  const std::vector<std::string> sums = world.all_gather(sha256_hex(all_values));
  if (std::ranges::all_of(sums, [&](const std::string& sum) { return sum == sums[0]; })) return;
  for (const auto& [name, value] : local) {
    const std::vector<std::string> values = world.all_gather(value);
    for (std::size_t r = 1; r < values.size(); ++r) {
      if (values[r] == values[0]) continue;
      problems +=
          fmt::format("\n  {}: {} is {}, but {} on {}", world.name_of(static_cast<std::int64_t>(r)),
                      name, values[r], values[0], world.name_of(0));
    }
  }
  world.confirm_end();
  throw Error(Exit::usage,
              world.first()
                  ? "the ranks differ; start all with the same build, config and data:" + problems
                  : "");
}

}  // namespace heed
