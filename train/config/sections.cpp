/// The sections: keys that contain other keys.
#include <fmt/format.h>

#include <algorithm>

#include "train/config/fields.h"

namespace heed {

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"data", "What to train on: train, valid and test files, or a synthetic task."},
      {"data.train", "Training data. Several files are read one after the other."},
      {"data.valid", "Data for validation during training."},
      {"data.test", "Data for the metrics after training."},
      {"data.columns", "The columns of tables (data.format)."},
      {"data.synthetic", "Pairs generated from the seed."},
      {"data.image", "How images and the frames of videos are read."},
      {"data.video", "How videos are read."},
      {"data.features", "How feature rows and sound are read."},
      {"data.mask", "Masked language modelling: which tokens are hidden."},
      {"data.spans", "Span corruption: which spans of a line are hidden."},
      {"data.mixture", "Several tasks in one model: how often each is drawn."},
      {"tokenizer",
       "How text becomes tokens. By default, the tokenizer is learned from the training files."},
      {"tokenizer.sample", "Subword sampling: training draws a random segmentation of each line."},
      {"model", "The Transformer."},
      {"model.front_end", "How images, sound and features become the encoder's rows."},
      {"model.swin", "Swin Transformer: windows and stages."},
      {"model.layers", "Numbers of layers. One number sets both, as in layers: 3.", true},
      {"model.dropout", "Dropout rates. One number sets all three, as in dropout: 0.1.", true},
      {"model.attention", "Self-attention: its pattern, its heads and its weights."},
      {"optim", "How weights are updated."},
      {"optim.schedule", "The learning rate as a function of the step."},
      {"train", "How long to train, on what batches, and what to log and keep."},
      {"train.distill", "Knowledge distillation from another run."},
      {"train.early_stopping", "When to stop a run early."},
      {"decode",
       "How outputs are decoded. Validation during training always uses greedy search (beam 1)."},
      {"distributed", "Runs of several processes, started by mpirun, mpiexec or srun."},
      {"bench", "Random batches that heed bench generates in place of data."},
  };
  return table;
}

const Section* find_section(std::string_view key) {
  const std::vector<Section>& table = sections();
  const auto found = std::ranges::find(table, key, &Section::key);
  return found == table.end() ? nullptr : &*found;
}

std::vector<std::string> keys_named(std::string_view name) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    if (key == name || key.ends_with(fmt::format(".{}", name))) keys.push_back(key);
  };
  for (const Section& section : sections())
    if (section.shorthand) add(section.key);
  for (const Field& field : fields()) add(field.key);
  return keys;
}

}  // namespace heed
