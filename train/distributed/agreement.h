#pragma once
/// The ranks of a distributed run do the same thing, or none of them does.
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/base/error.h"
#include "train/distributed/world.h"

namespace heed {

/// How a rank's part of the work ended.
struct Outcome {
  int status = 0;
  std::string message;
};
/// `work` with its exceptions as the outcome.
Outcome outcome_of(const std::function<void()>& work);
/// Throws on every rank if the outcome of any is an error: on rank 0 the first error and who had it, on
/// the others one with the same status and no message.
void require_all(World& world, const Outcome& local);

/// Runs `work` on every rank and returns its result; see require_all. Without a world, just runs it.
template <class Work>
auto together(World* world, const Work& work) {
  using Result = decltype(work());
  if (world == nullptr) return work();
  if constexpr (std::is_void_v<Result>) {
    require_all(*world, outcome_of(work));
  } else {
    std::optional<Result> result;
    require_all(*world, outcome_of([&] { result.emplace(work()); }));
    return std::move(*result);
  }
}

/// Something on which the bits of a run depend, and its value on this rank.
struct Fact {
  std::string name, value;
};
/// Throws as require_all, with Exit::usage, naming each rank that differs from rank 0, and in what.
/// All ranks have the same facts in the same order.
void require_equal(World& world, const std::vector<Fact>& local);

}  // namespace heed
