#pragma once
#include "nn/options.h"
#include "tests/learning.h"
#include "train/config/config.h"

namespace heed::test {

/// The config of a short run: a tiny model with dropout is trained to reverse short sequences.
inline Config small_run(std::int64_t steps = 40) {
  Config c;
  c.name = "small";
  c.threads = 1;
  c.seed = training_seed();
  c.data.synthetic.name = SyntheticKind::reverse;
  c.data.synthetic.train = 150;
  c.data.synthetic.valid = 20;
  c.data.synthetic.test = 10;
  c.data.synthetic.max_length = 6;
  c.data.synthetic.symbols = 8;
  c.tokenizer.kind = TokenizerKind::characters;
  c.model->d_model = 12;
  c.model->heads = 3;
  c.model->d_ff = 20;
  c.model->encoder_layers = c.model->decoder_layers = 1;
  c.model->dropout = 0.2;
  c.optim.lr = 4e-3;
  c.optim.schedule.warmup = 10;
  c.train.steps = steps;
  c.train.batch_tokens = 100;
  c.train.log_every = 7;
  c.train.validate_every = 10;
  c.train.save_every = 10;
  c.train.keep = 100;
  c.decode.beam = 2;
  c.decode.max_length = 10;
  return c;
}

}  // namespace heed::test
