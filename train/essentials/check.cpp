#include "train/essentials/check.h"

#include "autograd/gradcheck.h"
#include "train/essentials/experiment.h"
#include "train/essentials/loop.h"

HEED_BEGIN
namespace reference {

namespace {

template <class Model>
int check(const Model& model, const std::vector<Sample>& samples, double smoothing) {
  std::vector<const Sample*> batch;
  for (const Sample& sample : samples) batch.push_back(&sample);
  const GradcheckResult result =
      gradcheck_parameters([&] { return loss_of(model, batch, smoothing); }, model.parameters());
  fmt::print("{}\n", result.report());
  return result.passed() ? 0 : static_cast<int>(Exit::failed);
}

}  // namespace
}  // namespace reference
HEED_END

namespace heed {

int check_gradients(const std::string& file) {
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
