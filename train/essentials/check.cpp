/// essentials check: built with real = double.
#include <fmt/format.h>

#include "autograd/gradcheck/reference.h"
#include "train/essentials/experiment.h"
#include "train/essentials/loop.h"

HEED_BEGIN
namespace reference {

/// Prints the worst entry of each parameter and returns the exit status.
template <class Model>
int check(const Model& model, const std::vector<Sample>& samples, double smoothing) {
  std::vector<const Sample*> batch;
  for (const Sample& sample : samples) batch.push_back(&sample);
  bool passed = true;
  for (const GradientCheck& c :
       check_gradients([&] { return loss_of(model, batch, smoothing); }, model.parameters())) {
    const bool right = c.error <= 1;
    fmt::print("{} {}: entry {}: analytic {:.9g}, numeric {:.9g}\n", right ? "ok   " : "WRONG",
               c.name, c.entry, c.analytic, c.numeric);
    passed = passed && right;
  }
  fmt::print("gradcheck {}\n", passed ? "passed" : "failed");
  return passed ? 0 : static_cast<int>(Exit::failed);
}

}  // namespace reference
HEED_END

namespace heed {

/// Checks the gradients of a small model of the experiment's kind.
int check_experiment(const std::string& file) {
  using namespace reference;
  const Experiment e = read_experiment(file);
  const Sizes small{4 * e.model.heads, e.model.heads, 12, 1, 1};
  const Characters vocabulary(std::vector<std::string>{"abcdefg"});
  Init init(e.seed);
  if (e.task == "lm") {
    return check(LanguageModel(small, vocabulary.size(), init),
                 windows_of(vocabulary.encode("gabacadaeafag"), 5), e.label_smoothing);
  }
  return check(EncoderDecoder(small, vocabulary.size(), init),
               {sample_of(vocabulary, "abc", "cba"), sample_of(vocabulary, "fedgb", "bgdef")},
               e.label_smoothing);
}

}  // namespace heed
