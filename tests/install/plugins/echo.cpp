/// A task in which the label of each token is the token itself. An encoder learns it within a few
/// steps.
#include <algorithm>
#include <string>
#include <vector>

#include <heed/nn/models/classifier.h>
#include <heed/train/decode/model_input.h>
#include <heed/train/tasks/plugin.h>

namespace {

using namespace heed;

/// Batching with labels for the rows of the source.
class EchoBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    return {data.source.length(sample), 0};
  }
  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    const auto labels = data.target[draw.sample];
    batch.source.push(data.source[draw.sample]);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }
};

const EchoBatching batching;

class EchoTask final : public Task {
 public:
  using Task::Task;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    TokenizeOptions options;
    options.end_sources = false;
    options.training = training;
    options.max_length = config_.data.max_length;
    Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, options, threads());
    data.batching = &batching;
    return data;
  }
  void check_evaluable(const Dataset&, const std::string&) const override {}
  std::string describe(const ExperimentData& data) const override {
    return describe_pairs(data, "echoes");
  }

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest&) const override {
    return evaluate_loss(trained, data);
  }
  std::vector<std::string> examples(const LoadedModel&, const Dataset&,
                                    const Evaluation&) const override {
    return {};
  }

  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t) const override {
    struct Echoes final : Generator {
      explicit Echoes(const LoadedModel& t) : trained(t) {}
      std::vector<std::string> lines(const std::vector<std::string>& input, std::int64_t) override {
        std::vector<std::string> all;
        for (const std::string& line : input) all.push_back(echo(trained, line));
        return all;
      }
      const LoadedModel trained;
    };
    return std::make_unique<Echoes>(trained);
  }

  std::vector<LineScore> score(const LoadedModel&, const Split&) const override {
    throw Error(Exit::usage, "the task more.echo defines no scores");
  }

 private:
  static std::string echo(const LoadedModel& trained, const std::string& line) {
    const std::vector<std::int32_t> ids = trained.tokenizers.source->encode(line);
    if (ids.empty()) return "";
    const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(ids.size())};
    const NoGrad no_grad;
    Pass pass;
    const auto& model = dynamic_cast<const Classifier&>(trained.model);
    const Array logits = model.logits({{ids, offsets}, {}, {}}, pass).value();
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < logits.rows(); ++i) {
      const real* const z = logits.row(i);
      labels.push_back(static_cast<std::int32_t>(std::max_element(z, z + logits.cols()) - z));
    }
    return trained.tokenizers.target->decode(labels);
  }
};

}  // namespace

HEED_TASK("more.echo", EchoTask, .help = "the tokens of a line, as their own labels",
          .architecture = Architecture::encoder,
          .metrics = {Metric::loss, Metric::perplexity, Metric::token_accuracy})
