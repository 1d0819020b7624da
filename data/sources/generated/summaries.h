#pragma once
/// Sentences made from templates, and their summaries.
#include <cstdint>
#include <string>

#include "autograd/base/random.h"

namespace heed {

struct Summary {
  std::string text, summary;
};

/// Generates `sentences` sentences, each with a main clause and a dependent clause before it, after
/// it, or in both places. The summary contains only the main clauses:
///   text     "A cook sold the old lamp, because it was raining. When the bell rang, a nurse …"
///   summary  "A cook sold the old lamp. A nurse …"
Summary write_summary(std::int64_t sentences, Random& random);

}  // namespace heed
