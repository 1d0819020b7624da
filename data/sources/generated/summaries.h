#pragma once
/// Sentences made from templates, and what a summary keeps of them.
#include <cstdint>
#include <string>

#include "autograd/base/random.h"

namespace heed {

struct Summary {
  std::string text, summary;
};

/// `sentences` sentences of a main clause and one or two clauses that depend on it. The main clause
/// comes first, or after the other one. The summary has the main clauses only:
///   "A cook sold the old lamp, because it was raining. When the bell rang, a nurse found a green
///   boat." "A cook sold the old lamp. A nurse found a green boat."
Summary write_summary(std::int64_t sentences, Random& random);

}  // namespace heed
