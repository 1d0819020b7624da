#pragma once
/// Agreement between the ranks of a distributed run: an error on one rank becomes an error on all.
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/base/error.h"
#include "train/distributed/world.h"

namespace heed {

/// The result of a rank's part of the work: status 0, or an error's exit status and message.
struct Outcome {
  int status = 0;
  std::string message;
};
/// Runs `work` and returns its outcome; a std::exception becomes an error.
Outcome outcome_of(const std::function<void()>& work);
/// Throws on every rank if the outcome of any rank is an error. Rank 0 throws the error of the
/// first such rank; unless all ranks report this error, its message begins with the names of those
/// that do. The other ranks throw an error with the same status and no message.
void require_all(World& world, const Outcome& local);

/// Runs `work` on every rank and returns its result. Throws the errors of require_all. If `world`
/// is null, only runs `work`.
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

/// A property that affects the exact (bitwise) results of a run, and its value on this rank.
struct Fact {
  std::string name, value;
};
/// Throws Error(usage) on every rank if a fact differs between the ranks. On rank 0, the message
/// lists the differing ranks, facts and values. All ranks must pass facts with the same names in
/// the same order.
void require_equal(World& world, const std::vector<Fact>& local);

}  // namespace heed
