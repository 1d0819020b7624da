// Fifty training steps compared with PyTorch: with equal initial weights and batches, the losses,
// learning rates and gradient norms agree.
#include "autograd/base/team.h"
#include "data/batches/batcher.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tests/nn/golden.h"
#include "train/decode/model_input.h"
#include "train/loop/step.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(golden)

namespace {

struct Setting {
  ModelOptions model;
  OptimOptions optim;
  StepOptions step;
  std::int64_t steps, vocabulary;

  explicit Setting(const nlohmann::json& a) {
    BOOST_REQUIRE((a.at("norm") == "pre" && a.at("activation") == "relu" &&
                   a.at("positions") == "sinusoidal"));
    BOOST_REQUIRE((a.at("schedule") == "noam" && a.at("dropout") == 0.0));
    model.d_model = a.at("d_model");
    model.heads = a.at("heads");
    model.d_ff = a.at("d_ff");
    model.encoder_layers = a.at("encoder_layers");
    model.decoder_layers = a.at("decoder_layers");
    model.dropout = 0;
    model.tie_embeddings = a.at("tie_embeddings");
    model.scale_embeddings = a.at("scale_embeddings");
    optim.lr = a.at("lr");
    optim.betas = {a.at("betas")[0], a.at("betas")[1]};
    optim.eps = a.at("eps");
    optim.schedule.name = ScheduleKind::noam;
    optim.schedule.warmup = a.at("warmup");
    step.label_smoothing = a.at("label_smoothing");
    step.clip_norm = a.at("clip_norm");
    steps = a.at("steps");
    vocabulary = a.at("vocab");
  }
};

Batch batch_of(const GoldenCase& c, std::int64_t step) {
  const std::string at = "batches/" + std::to_string(step) + "/";
  Batch batch;
  batch.source.ids = c.ids(at + "source");
  batch.source.offsets = c.ids(at + "source_offsets");
  batch.target.ids = c.ids(at + "target_in");
  batch.labels = c.ids(at + "target_out");
  batch.target.offsets = c.ids(at + "target_offsets");
  for (std::int64_t i = 0; i < batch.sequences(); ++i) batch.samples.push_back(i);
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(first_step_agrees_with_pytorch) {
  const SafetensorsFile file = golden_file("trajectory.safetensors");
  const GoldenCase c(file, "trajectory");
  const Setting setting(c.attributes());
  const std::unique_ptr<Generative> model =
      make_seq2seq(setting.model, setting.vocabulary, setting.vocabulary, true, 1);
  c.load("weights/", model->parameters());
  const Batch batch = batch_of(c, 1);
  Pass pass{true, 1, 1, 0};
  BOOST_TEST(difference(model->logits(model_input(batch), pass).value(), c.array("first_logits")) <
             1e-11);
  const Tensor loss =
      model->loss(model_input(batch),
                  {setting.step.label_smoothing, static_cast<double>(batch.labels.size())}, pass);
  const Gradients gradients = backward(loss);
  for (const NamedTensor& p : model->parameters()) {
    BOOST_TEST(difference(gradients[p.tensor], c.array("first_gradients/" + p.name)) < 1e-11,
               p.name);
  }
}

BOOST_AUTO_TEST_CASE(fifty_steps_agree_with_pytorch) {
  const SafetensorsFile file = golden_file("trajectory.safetensors");
  const GoldenCase c(file, "trajectory");
  const Setting setting(c.attributes());
  const Array losses = c.array("losses"), rates = c.array("learning_rates"),
              norms = c.array("gradient_norms");
  BOOST_REQUIRE(setting.steps == 50);
  for (const std::int64_t shards : {1, 4}) {
    const std::unique_ptr<Generative> model =
        make_seq2seq(setting.model, setting.vocabulary, setting.vocabulary, true, 1);
    c.load("weights/", model->parameters());
    Optimizer optimizer(setting.optim, model->parameters());
    Team team(2);
    TrainStep train(*model, optimizer, team, setting.step);
    double worst = 0, worst_norm = 0;
    for (std::int64_t t = 1; t <= setting.steps; ++t) {
      const Batch batch = batch_of(c, t);
      const double lr = learning_rate(setting.optim, t, setting.steps);
      BOOST_TEST(std::abs(lr - rates.data()[t - 1]) < 1e-16);
      const StepResult result = train.run(shard(batch, shards), t, lr);
      const double loss = result.counts.loss / static_cast<double>(result.counts.tokens);
      worst = std::max(worst, std::abs(loss - losses.data()[t - 1]));
      worst_norm = std::max(worst_norm, std::abs(result.gradient_norm - norms.data()[t - 1]));
    }
    BOOST_TEST(worst <= 1e-9,
               "shards: " << shards << ", maximum difference of the losses: " << worst);
    BOOST_TEST(worst_norm <= 1e-8,
               "shards: " << shards << ", maximum difference of the norms: " << worst_norm);
    BOOST_TEST_MESSAGE("shards: " << shards << ", maximum difference of the losses: " << worst
                                  << ", of the gradient norms: " << worst_norm);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
