/// The reference Transformer as a program:
///
///   essentials train EXPERIMENT.yaml   trains, then decodes the validation data (lm: prints its loss)
///   essentials check EXPERIMENT.yaml   checks the gradients of a small model of this kind (float64)
#include <cstdio>
#include <fstream>

#include "autograd/base/error.h"
#include "train/essentials/experiment.h"
#include "train/essentials/loop.h"

namespace heed {
int check_experiment(const std::string& file);  // check.cpp, with real = double
}
using namespace heed;
using namespace heed::reference;

namespace {

std::vector<std::string> read_lines(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(Exit::bad_input, "{}: cannot be read", file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The lines of a source file and of a target file.
std::pair<std::vector<std::string>, std::vector<std::string>> read_pairs(
    const std::string& source, const std::string& target) {
  std::pair pairs{read_lines(source), read_lines(target)};
  if (pairs.first.size() != pairs.second.size())
    throw Error(Exit::bad_input, "{} has {} lines, but {} has {}", source, pairs.first.size(),
                target, pairs.second.size());
  return pairs;
}

std::string read_text(const std::string& file) {
  std::string text;
  for (const std::string& line : read_lines(file)) text += line + "\n";
  return text;
}

LoopOptions options_of(const Experiment& e) {
  return {e.steps, e.warmup, e.batch_tokens, e.lr, e.label_smoothing, e.seed};
}

void report(std::int64_t step, double loss) {
  if (step == 1 || step % 100 == 0) fmt::print("step {:6}  loss {:.4f}\n", step, loss);
}

int train_seq2seq(const Experiment& e) {
  const auto [sources, targets] = read_pairs(e.train_source, e.train_target);
  const auto [questions, answers] = read_pairs(e.valid_source, e.valid_target);
  std::vector<std::string> all = sources;
  all.insert(all.end(), targets.begin(), targets.end());
  const Characters vocabulary(all);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < sources.size(); ++i)
    samples.push_back(sample_of(vocabulary, sources[i], targets[i]));

  Init init(e.seed);
  const EncoderDecoder model(e.model, vocabulary.size(), init);
  train(model, samples, options_of(e), report);

  double right = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Ids source = vocabulary.encode(questions[i]);
    source.push_back(Characters::eos);
    right += vocabulary.decode(translate(model, source, e.max_length)) == answers[i] ? 1 : 0;
  }
  const auto lines = static_cast<double>(questions.size());
  fmt::print("exact match {:.2f} % of {} lines\n", 100 * right / std::max(1.0, lines), lines);
  return 0;
}

int train_lm(const Experiment& e) {
  const std::string text = read_text(e.train_text), valid_text = read_text(e.valid_text);
  const Characters vocabulary(std::vector<std::string>{text});
  Init init(e.seed);
  const LanguageModel model(e.model, vocabulary.size(), init);
  train(model, windows_of(vocabulary.encode(text), e.context), options_of(e), report);

  const std::vector<Sample> valid = windows_of(vocabulary.encode(valid_text), e.context);
  double loss = 0, labels = 0;
  for (const Sample& sample : valid) {
    const NoGrad no_grad;
    const Sample* const one[] = {&sample};
    const auto n = static_cast<double>(sample.labels.size());
    loss += n * loss_of(model, one, 0).item();
    labels += n;
  }
  fmt::print("loss {:.4f} on {} characters\n", loss / labels, labels);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string command = argc == 3 ? argv[1] : "";
  if (command == "check") return check_experiment(argv[2]);
  if (command != "train") throw Error(Exit::usage, "usage: essentials train|check EXPERIMENT.yaml");
  const Experiment experiment = read_experiment(argv[2]);
  return experiment.task == "lm" ? train_lm(experiment) : train_seq2seq(experiment);
} catch (const std::exception& error) {
  fmt::print(stderr, "essentials: {}\n", error.what());
  const auto* const own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own != nullptr ? own->code : Exit::failed);
}
