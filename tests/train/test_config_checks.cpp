/// Inconsistent values and invalid overrides.
#include <cmath>

#include "data/inputs/input_info.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "tests/train/config_cases.h"

using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(config_checks)

namespace {

using heed::Metric;
using heed::TaskInfo;

const std::string for_pairs =
    only_for([](const TaskInfo& task) { return task.reads == heed::Reads::pairs; });
const std::string for_text =
    only_for([](const TaskInfo& task) { return task.reads != heed::Reads::pairs; });
const std::string for_windows =
    only_for([](const TaskInfo& task) { return task.reads == heed::Reads::text; });
const std::string for_search = only_for([](const TaskInfo& task) { return task.searches; });
const std::string for_decoders =
    only_for([](const TaskInfo& task) { return has_decoder(task.architecture); });
const std::string for_tokens = only_for([](const TaskInfo& task) {
  return has_decoder(task.architecture) ||
         task.architecture == heed::Architecture::encoder_of_tokens;
});
const std::string without_encoder =
    only_for([](const TaskInfo& task) { return !has_encoder(task.architecture); });
const std::string without_decoder =
    only_for([](const TaskInfo& task) { return !has_decoder(task.architecture); });
const std::string for_convolved =
    "only for data.input: " + either_where(heed::input_table(), &heed::InputInfo::convolved);
const std::string for_maps =
    "only for pattern: " + either_where(heed::pattern_table, &heed::PatternInfo::all_maps);
const std::string for_scores = "only for model.attention.pattern: " +
                               either_where(heed::pattern_table, &heed::PatternInfo::scores);
const std::string for_memory =
    "only for positions: " + either_where(heed::position_schemes(), [](const auto& scheme) {
      return scheme.vectors == nullptr;  // no position is added to the rows
    });
const std::string mixture = "task: text2text\n";
std::string for_metric(Metric metric) {
  return only_for([=](const TaskInfo& task) { return task.has(metric); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(inconsistent_values_are_refused) {
  check_all({
      {copy + "model: {d_model: 100, heads: 3}\n",
       "exp.yaml:2:18: model.d_model: 100 is not a multiple of heads (3)"},
      {copy + "model: {heads: 3}\n",
       "exp.yaml:2:16: model.d_model: 256 is not a multiple of heads (3)"},
      {copy + "model: {d_model: 33, heads: 3}\n",
       "exp.yaml:2:18: model.d_model: 33 is odd, but positions: sinusoidal needs an even width"},
      {copy + "model: {d_model: 33, heads: 3, positions: none, mixer: lstm}\n",
       "exp.yaml:2:18: model.d_model: 33 is odd, but mixer: lstm has two directions in an encoder, "
       "each of half the width"},
      {copy + "task: tag\nmodel: {d_model: 33, positions: none, mixer: gru}\n",  // gru has no heads
       "exp.yaml:3:18: model.d_model: 33 is odd, but mixer: gru has two directions in an encoder, "
       "each of half the width"},
      {lm + "model: {d_model: 33, positions: none, mixer: lstm}\n", "accepted"},
      {lm + "model: {d_model: 33, positions: none}\n",
       "exp.yaml:3:18: model.d_model: 33 is not a multiple of heads (4)"},
      {copy + "model: {d_model: 100, heads: x}\n",
       "exp.yaml:2:30: model.heads: expected a whole number, got \"x\""},
      {"seed: 1\n",
       "exp.yaml:1:1: data.train: missing: nothing to train on (give source and target files, or "
       "data.synthetic.name)"},
      {"task: lm\n", "exp.yaml:1:7: data.train: missing: nothing to train on (give text files)"},
      {copy + "task: lm\n", "exp.yaml:1:26: data.synthetic.name: " + for_pairs},
      {files + "task: lm\n", "exp.yaml:1:24: data.train.source: " + for_pairs +
                                 "\n"
                                 "exp.yaml:1:35: data.train.target: " +
                                 for_pairs},
      {"task: lm\ndata: {train: {target: b}}\n", "exp.yaml:2:24: data.train.target: " + for_pairs},
      {"data: {train: {text: t}}\n", "exp.yaml:1:22: data.train.text: " + for_text},
      {"data: {train: {source: a}}\n",
       "exp.yaml:1:24: data.train.target: missing, but source is given"},
      {"data: {train: {source: [a.csv, b.tsv.gz, c.jsonl, d.conll, e.conllu]}}\n", "accepted"},
      {"data: {train: {source: a}, format: csv, columns: {source: [1, b], target: 2}}\n",
       "accepted"},
      {"data: {train: {source: [a.csv, b]}}\n",
       "exp.yaml:1:16: data.train.target: missing, but source is given"},
      {"data: {train: {source: a.csv}, format: lines}\n",
       "exp.yaml:1:24: data.train.target: missing, but source is given"},
      {"task: classify\ndata: {train: {source: a}, input: image}\n", "accepted"},
      {"data: {train: {source: a}, input: image, format: conll}\n",
       "exp.yaml:1:50: data.format: conll needs data.input: text"},
      {"data: {synthetic: {name: copy}, format: csv}\n",
       "exp.yaml:1:41: data.format: only for data.synthetic.name: none"},
      {"data: {synthetic: {name: copy}, columns: {source: a}}\n",
       "exp.yaml:1:51: data.columns.source: only for data.synthetic.name: none"},
      {"data: {train: {source: a.csv}, columns: {text: b}}\n",
       "exp.yaml:1:48: data.columns.text: " + for_text},
      {"task: mlm\ndata: {train: {text: a.csv}, columns: {text: b}}\n", "accepted"},
      {"task: lm\ndata: {train: {text: a.csv}, columns: {target: b}}\n",
       "exp.yaml:2:48: data.columns.target: " + for_pairs},
      {"data: {train: {target: a}}\n",
       "exp.yaml:1:24: data.train.source: missing, but target is given"},
      {"data: {train: {source: [a, b], target: c}}\n",
       "exp.yaml:1:16: data.train.source: expected as many files as target (1), got 2"},
      {"data: {train: {source: a, target: b}, valid: {source: c}}\n",
       "exp.yaml:1:55: data.valid.target: missing, but source is given"},
      {"data: {train: {source: a, target: b}, valid: {source: c, target: d}, valid_fraction: "
       "0.1}\n",
       "exp.yaml:1:86: data.valid_fraction: data.valid names files: use one or the other"},
      {"data: {train: {source: a, target: b}, test: {source: c, target: d}, test_fraction: 0.1}\n",
       "exp.yaml:1:84: data.test_fraction: data.test names files: use one or the other"},
      {"data: {train: {source: a, target: b}, valid_fraction: 0.5, test_fraction: 0.5}\n",
       "exp.yaml:1:55: data.valid_fraction: 0.5 and test_fraction 0.5 leave nothing to train on"},
      {"data: {train: {source: a, target: b}, synthetic: {name: sort}}\n",
       "exp.yaml:1:8: data.train: data.synthetic names a task: use one or the other"},
      {"data: {test: {source: a, target: b}, synthetic: {name: sort}}\n",
       "exp.yaml:1:8: data.test: data.synthetic names a task: use one or the other"},
      {"data: {synthetic: {name: sort}, valid_fraction: 0.1}\n",
       "exp.yaml:1:49: data.valid_fraction: only for data.synthetic.name: none "
       "(otherwise set data.synthetic.valid)"},
      {"data: {synthetic: {name: sort, min_length: 30}}\n",
       "exp.yaml:1:44: data.synthetic.min_length: 30 is greater than max_length (20)"},
      {"data: {train: {source: a, target: b}, synthetic: {train: 5}}\n",
       "exp.yaml:1:58: data.synthetic.train: only for name: " + either_of("data.synthetic.name")},
      {"data: {synthetic: {name: copy, distance: 3}}\n",
       "exp.yaml:1:42: data.synthetic.distance: only for name: recall"},
      {"data: {synthetic: {name: mixture, of: sort}}\n",
       "exp.yaml:1:26: data.synthetic.name: mixture is only for task: text2text"},
      {mixture + "data: {synthetic: {name: mixture}}\n",
       "exp.yaml:2:26: data.synthetic.of: missing: name the tasks of the mixture"},
      {mixture + "data: {synthetic: {name: mixture, of: [sort, mixture, sort]}}\n",
       "exp.yaml:2:35: data.synthetic.of: \"mixture\" is not a synthetic task whose source is "
       "text"},
      {mixture + "data: {synthetic: {name: mixture, of: [sort, sort]}}\n",
       "exp.yaml:2:35: data.synthetic.of: sort is given twice"},
      {mixture + "data: {synthetic: {name: copy, of: [sort]}}\n",
       "exp.yaml:2:32: data.synthetic.of: only for name: mixture"},
      {mixture + "data: {synthetic: {name: mixture, of: sort}, mixture: {prefixes: [a]}}\n",
       "exp.yaml:2:56: data.mixture.prefixes: the prefixes of a synthetic mixture are the names of "
       "its tasks; remove this key"},
      {mixture + "data: {train: {source: a, target: b}, valid_fraction: 0.1, mixture: {prefixes: "
                 "a}}\n",
       "exp.yaml:2:80: data.mixture.prefixes: a fraction cut from the end of train would contain "
       "only the last part; give files for valid and test"},
      {"data: {synthetic: {name: copy}, mixture: {limit: 3}}\n",
       "exp.yaml:1:50: data.mixture.limit: only for task: text2text"},
      {"task: denoise\ndata: {train: {text: t}, max_length: 900}\n", "accepted"},
      {"task: denoise\ndata: {train: {text: t}, max_length: 2000}\n", "accepted"},  // 100 spans
      {"task: denoise\ndata: {train: {text: t}, max_length: 2010}\n",
       "exp.yaml:2:38: data.spans.length: a line of 2010 tokens (data.max_length) may have more than "
       "100 hidden spans, but there are only 100 sentinels <extra_id_...>"},
      {"task: denoise\ndata: {train: {text: t}, max_length: 900, spans: {length: 1}}\n",
       "exp.yaml:2:59: data.spans.length: a line of 900 tokens (data.max_length) may have more "
       "than 100 hidden spans, but there are only 100 sentinels <extra_id_...>"},
      {"data: {synthetic: {name: captions}}\n",
       "exp.yaml:1:26: data.synthetic.name: captions needs data.input: image"},
      {"data: {synthetic: {name: tones}, input: image}\n",
       "exp.yaml:1:26: data.synthetic.name: tones needs data.input: features"},
      {"data: {synthetic: {name: copy}, input: features}\n",
       "exp.yaml:1:26: data.synthetic.name: copy needs data.input: text"},
      {"data: {synthetic: {name: captions}, input: image, image: {height: 12, patch: 4}}\n",
       "exp.yaml:1:67: data.image.height: two shapes need an image of at least 16 x 16 pixels"},
      {"data: {synthetic: {name: motion}, input: image}\n",
       "exp.yaml:1:26: data.synthetic.name: motion needs data.input: video"},
      {"data: {synthetic: {name: motion}, input: video, image: {height: 14, width: 6, patch: 2}}\n",
       "exp.yaml:1:65: data.image.height: a moving square needs frames of at least 8 x 8 pixels"},
      {"data: {synthetic: {name: motion}, input: video, video: {frames: 8}}\n",
       "exp.yaml:1:65: data.video.frames: three turns need at least 9 frames, got 8"},
      {"data: {synthetic: {name: motion}, input: video, image: {flip: true}}\n",
       "exp.yaml:1:63: data.image.flip: the targets of motion name left and right, which mirroring "
       "exchanges"},
      {"data: {train: {source: a, target: b}, input: video, video: {frames: 8, tubelet: 3}}\n",
       "exp.yaml:1:69: data.video.frames: 8 is not a multiple of tubelet (3)"},
      {"data: {train: {source: a, target: b}, input: video, image: {height: 30}}\n",
       "exp.yaml:1:69: data.image.height: 30 is not a multiple of patch (4)"},
      {"data: {train: {source: a, target: b}, input: image, video: {frames: 8}}\n",
       "exp.yaml:1:69: data.video.frames: only for data.input: video"},
      {"task: tag\ndata: {synthetic: {name: motion}, input: video}\n",
       "exp.yaml:2:26: data.synthetic.name: motion is only for task: seq2seq or classify"},
      {"task: tag\ndata: {train: {source: a, target: b}, input: image}\nmodel: {front_end: {kind: "
       "conv}}\n",
       "exp.yaml:3:27: model.front_end.kind: conv is only for task: seq2seq or classify"},
      {"data: {train: {source: a, target: b}, input: video}\nmodel: {positions: learned, "
       "max_positions: 391}\n",
       "exp.yaml:2:44: model.max_positions: 391 is less than the 392 rows of a video"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: video}\nmodel: {positions: "
       "learned, max_positions: 392}\n",
       "exp.yaml:3:44: model.max_positions: 392 is less than the 393 rows of a video"},
      {"data: {train: {source: a, target: b}, input: video}\nmodel: {front_end: {kind: conv}}\n",
       "exp.yaml:2:27: model.front_end.kind: " + for_convolved},
      {"task: tag\ndata: {train: {source: a, target: b}}\nmodel: {front_end: {kind: conv}}\n",
       "exp.yaml:3:27: model.front_end.kind: " + for_convolved},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "front_end: {kind: conv}}\n",
       "exp.yaml:3:15: model.swin.depths: 2 stages need a grid of patches with both sides "
       "divisible by 2, but the grid is 7 x 7\n"
       "exp.yaml:3:39: model.front_end.kind: only for model.kind: transformer"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {front_end: "
       "{kind: conv}}\n",
       "exp.yaml:3:27: model.pool: first, but front_end.kind: conv needs pool: mean, because the "
       "convolution would mix the first row of an input with the rows after it"},
      {"data: {train: {source: a, target: b}, input: image}\nmodel: {front_end: {layers: 3}}\n",
       "exp.yaml:2:29: model.front_end.layers: only for kind: conv"},
      {"data: {train: {source: a, target: b}, input: image}\nmodel: {front_end: {kind: conv, "
       "layers: 1}, positions: learned, max_positions: 15}\ndecode: {max_length: 9}\n",
       "exp.yaml:2:80: model.max_positions: 15 is less than the 16 rows of an image"},
      {"data: {train: {source: a, target: b}, input: features, max_length: 100}\nmodel: "
       "{front_end: {kind: conv}, positions: learned, max_positions: 24}\n",
       "exp.yaml:2:69: model.max_positions: 24 is less than the 25 rows that front_end outputs for "
       "data.max_length (100)"},
      {"data: {train: {source: a, target: b}, input: features, max_length: 100}\nmodel: "
       "{front_end: {kind: conv}, positions: learned, max_positions: 25}\n",
       "accepted"},
      {"data: {synthetic: {name: tones}, input: features, features: {window: 0.5}}\n",
       "exp.yaml:1:70: data.features.window: a frame of 0.5 ms: expected 16 to 65536 samples, got "
       "8"},
      {"data: {synthetic: {name: tones}, input: features, features: {hop: 0.01}}\n",
       "exp.yaml:1:67: data.features.hop: a distance of 0.01 ms: expected 1 to 65536 samples, got "
       "0.16"},
      {"data: {synthetic: {name: tones}, input: features, features: {hop: 1.0e+18}}\n",
       "exp.yaml:1:67: data.features.hop: a distance of 1e+18 ms: expected 1 to 65536 samples, got "
       "1.6e+19"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "swin: {depths: [1]}}\n",
       "accepted"},
      {"data: {synthetic: {name: copy}}\nmodel: {kind: swin}\n",
       "exp.yaml:2:15: model.kind: only for data.input: image"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin}\n",
       "exp.yaml:3:15: model.swin.depths: 2 stages need a grid of patches with both sides "
       "divisible by 2, but the grid is 7 x 7"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "swin: {depths: [2.5]}}\n",
       "exp.yaml:3:37: model.swin.depths: expected a whole number, got \"2.5\""},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "swin: {depths: 2}}\n",
       "exp.yaml:3:36: model.swin.depths: expected a list of whole numbers, as in [2, 2], got "
       "\"2\""},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "swin: {depths: [2]}, layers: 3, positions: learned, pool: first}\n",
       "exp.yaml:3:15: model.layers.encoder: 3, but kind: swin needs the sum of model.swin.depths, "
       "2\n"
       "exp.yaml:3:64: model.positions: learned, but kind: swin needs positions: none\n"
       "exp.yaml:3:79: model.pool: first, but kind: swin needs pool: mean"},
      {"task: classify\ndata: {train: {source: a, target: b}, input: image}\nmodel: {kind: swin, "
       "swin: {depths: [2]}}\ntrain: {recompute: true}\n",
       "exp.yaml:4:20: train.recompute: has no effect with kind: swin; set it to false"},
      {"data: {synthetic: {name: copy}}\ntrain: {distill: {weight: 0.3}}\n",
       "exp.yaml:2:27: train.distill.weight: only with train.distill.teacher"},
      {"data: {synthetic: {name: copy}}\ntrain: {distill: {teacher: r}, rdrop: 3}\n",
       "exp.yaml:2:28: train.distill.teacher: distillation cannot be combined with train.rdrop; "
       "set train.rdrop to 0"},
      {"data: {synthetic: {name: copy}, features: {width: 8}}\n",
       "exp.yaml:1:51: data.features.width: only for data.input: features"},
      {"data: {synthetic: {name: recall, symbols: 53}}\n",
       "exp.yaml:1:43: data.synthetic.symbols: 53 is greater than 52, the number of keys of recall "
       "(a-z, A-Z)"},
      {"data: {synthetic: {name: recall, symbols: 8}}\n",
       "exp.yaml:1:43: data.synthetic.max_length: 20 is greater than symbols (8), but the keys of "
       "a line must differ"},
      {"data: {synthetic: {name: recall, distance: 4, min_length: 3}}\n",
       "exp.yaml:1:44: data.synthetic.distance: 4 is greater than min_length (3), so a line may "
       "have too few keys"},
      {"data: {trian: {source: a, target: b}}\n",
       "exp.yaml:1:8: data.trian: unknown key (did you mean train?)"},
      {copy + "tokenizer: {shared: false, model: x.model}\n",
       "exp.yaml:2:35: tokenizer.model: only for shared: true (otherwise give source_model and "
       "target_model)"},
      {copy + "tokenizer: {source_model: x.model}\n",
       "exp.yaml:2:27: tokenizer.source_model: only for shared: false (otherwise give model)"},
      {copy + "tokenizer: {shared: false, target_model: x.model}\n",
       "exp.yaml:2:42: tokenizer.source_model: missing, but target_model is given"},
      {copy + "tokenizer: {shared: false, source_model: x.model}\n",
       "exp.yaml:2:42: tokenizer.target_model: missing, but source_model is given"},
      {copy + "tokenizer: {kind: char, algorithm: bpe}\n",
       "exp.yaml:2:36: tokenizer.algorithm: only for kind: sentencepiece"},
      {copy + "tokenizer: {kind: byte, model: x}\n",
       "exp.yaml:2:32: tokenizer.model: only for kind: sentencepiece, char, word or imported"},
      {lm + "tokenizer: {shared: false}\n", "exp.yaml:3:21: tokenizer.shared: " + for_pairs},
      {copy + "model: {context: 64}\n", "exp.yaml:2:18: model.context: " + for_windows},
      {copy + "model: {init_std: 0.1}\n", "exp.yaml:2:19: model.init_std: only for init: normal"},
      {copy + "model: {final_norm: false}\n",
       "exp.yaml:2:21: model.final_norm: only for norm: post"},
      {copy + "model: {max_positions: 64}\n",
       "exp.yaml:2:24: model.max_positions: only for positions: learned"},
      {copy + "model: {attention: {window: 8}}\n",
       "exp.yaml:2:29: model.attention.window: only for pattern: window"},
      {copy + "decode: {max_length: 9, min_length: 10}\n",
       "exp.yaml:2:37: decode.min_length: 10 is greater than max_length (9)"},
      {copy + "decode: {repetition_penalty: 0.5}\n",
       "exp.yaml:2:30: decode.repetition_penalty: 0.5 is out of range (allowed: 1 to 100)"},
      {copy + "model: {attention: {kv_heads: 3}}\n",
       "exp.yaml:2:31: model.attention.kv_heads: 3 does not divide heads (4)"},
      {copy + "model: {attention: {scale: half}}\n",
       "exp.yaml:2:28: model.attention.scale: expected sqrt, none or a number, got \"half\""},
      {copy + "model: {attention: {scale: 0}}\n",
       "exp.yaml:2:28: model.attention.scale: 0 is out of range (allowed: above 0 to 1000000)"},
      {copy + "model: {attention: {pattern: linear}, positions: alibi}\n",
       "exp.yaml:2:50: model.positions: alibi is " + for_scores},
      {copy + "model: {attention: {top_k: 8}}\n",
       "exp.yaml:2:28: model.attention.top_k: only for pattern: topk"},
      {copy + "model: {attention: {pattern: topk, map: hard}}\n",
       "exp.yaml:2:41: model.attention.map: " + for_maps},
      {copy + "model: {memory: 64, positions: rotary}\n",
       "exp.yaml:2:17: model.memory: " + for_windows},
      {lm + "model: {memory: 64}\n", "exp.yaml:3:17: model.memory: " + for_memory},
      {lm + "model: {memory: 64, mixer: gru, positions: none}\n",
       "exp.yaml:3:17: model.memory: only for mixer: attention"},
      {copy + "model: {rotary_base: 500}\n",
       "exp.yaml:2:22: model.rotary_base: only for positions: rotary"},
      {copy + "model: {d_model: 36, positions: rotary}\n",
       "exp.yaml:2:18: model.heads: each head has width 9, but positions: rotary needs an even "
       "width"},
      {copy + "model: {d_model: 9, heads: 1, positions: relative_xl}\n",
       "exp.yaml:2:18: model.d_model: 9 is odd, but positions: relative_xl needs an even width"},
      {copy + "model: {positions: relative_t5, t5_buckets: 6}\n",
       "exp.yaml:2:45: model.t5_buckets: 6 is not a multiple of 4"},
      {copy + "model: {positions: relative_t5, t5_distance: 16}\n",
       "exp.yaml:2:46: model.t5_distance: 16 must be greater than half of t5_buckets (32)"},
      {copy + "model: {norm: none, norm_kind: rms}\n",
       "exp.yaml:2:32: model.norm_kind: only for norm: pre or post"},
      {copy + "model: {conv_width: 3}\n", "exp.yaml:2:21: model.conv_width: only for mixer: conv"},
      {copy + "model: {mixer: conv, positions: alibi}\n",
       "exp.yaml:2:33: model.positions: alibi is only for mixer: attention"},
      {copy + "model: {mixer: gru, attention: {pattern: window}}\n",
       "exp.yaml:2:42: model.attention.pattern: only for model.mixer: attention"},
      {copy + "model: {positions: learned, max_positions: 64}\n",
       "exp.yaml:2:44: model.max_positions: 64 is less than data.max_length (128) plus one for "
       "a special token"},
      {copy + "model: {positions: learned, max_positions: 128}\n",
       "exp.yaml:2:44: model.max_positions: 128 is less than data.max_length (128) plus one for "
       "a special token"},
      {lm + "model: {positions: learned, max_positions: 64}\n",
       "exp.yaml:3:44: model.max_positions: 64 is less than model.context (256)"},
      {copy + "model: {layers: {encoder: 0}}\n",
       "exp.yaml:2:27: model.layers.encoder: 0 is " + without_encoder},
      {copy + "optim: {weight_decay: 0.1}\n",
       "exp.yaml:2:23: optim.weight_decay: only for name: adamw or sgd"},
      {copy + "optim: {momentum: 0.5}\n", "exp.yaml:2:19: optim.momentum: only for name: sgd"},
      {copy + "optim: {name: sgd, betas: [0.9, 0.99]}\n",
       "exp.yaml:2:20: optim.betas: only for name: adam or adamw"},
      {copy + "optim: {schedule: {warmup: 0}}\n",
       "exp.yaml:2:28: optim.schedule.warmup: 0, but noam needs at least 1"},
      {copy + "optim: {schedule: {name: inverse_sqrt, warmup: 0}}\n",
       "exp.yaml:2:48: optim.schedule.warmup: 0, but inverse_sqrt needs at least 1"},
      {copy + "optim: {schedule: {steps: 5}}\n",
       "exp.yaml:2:27: optim.schedule.steps: only for name: cosine or linear"},
      {copy + "optim: {schedule: {min_lr: 1.0e-5}}\n",
       "exp.yaml:2:28: optim.schedule.min_lr: only for name: cosine or linear"},
      {copy + "optim: {schedule: {name: cosine, warmup: 20000}}\n",
       "exp.yaml:2:42: optim.schedule.warmup: 20000, but cosine ends at step 10000; set a shorter "
       "warmup"},
      {copy + "optim: {schedule: {name: linear, warmup: 1000, steps: 500}}\n",
       "exp.yaml:2:42: optim.schedule.warmup: 1000, but linear ends at step 500; set a shorter "
       "warmup"},
      {copy + "optim: {schedule: {name: linear, steps: 500}}\n", "accepted"},
      {copy + "optim: {schedule: {name: cosine}}\ntrain: {steps: 0, epochs: 3}\n", "accepted"},
      {copy + "optim: {schedule: {name: cosine}}\ntrain: {steps: 0, minutes: 3}\n",
       "exp.yaml:2:26: optim.schedule.steps: missing: cosine needs an end step; "
       "train.steps and epochs are 0"},
      {copy + "optim: {lr: 1.0e-4, schedule: {name: cosine, min_lr: 1.0e-3}}\n",
       "exp.yaml:2:54: optim.schedule.min_lr: 0.001 is greater than optim.lr (0.0001)"},
      {copy + "train: {steps: 0}\n",
       "exp.yaml:2:16: train.steps: nothing ends the run: steps, epochs and minutes are all 0"},
      {copy + "train: {early_stopping: {patience: 3}}\n",
       "exp.yaml:2:36: train.early_stopping.patience: only for metric: " +
           either_of("train.early_stopping.metric")},
      {files + "train: {early_stopping: {metric: loss}}\n",
       "exp.yaml:2:34: train.early_stopping.metric: needs validation data"},
      {"data: {synthetic: {name: sort, valid: 0}}\ntrain: {early_stopping: {metric: loss}}\n",
       "exp.yaml:2:34: train.early_stopping.metric: needs validation data"},
      {lm + "train: {early_stopping: {metric: bleu}}\n",
       "exp.yaml:3:34: train.early_stopping.metric: bleu is " + for_metric(Metric::bleu)},
      {copy + "task: tag\nmodel: {tie_embeddings: false}\n",
       "exp.yaml:3:25: model.tie_embeddings: " + for_tokens},
      {copy + "task: tag\ndecode: {beam: 2}\n", "exp.yaml:3:16: decode.beam: " + for_search},
      {copy + "model: {layers: {decoder: 0}}\n",
       "exp.yaml:2:27: model.layers.decoder: 0 is " + without_decoder},
      {copy + "train: {best: bits_per_byte}\n",
       "exp.yaml:2:15: train.best: bits_per_byte is " + for_metric(Metric::bits_per_byte)},
      {lm + "train: {best: chrf}\n",
       "exp.yaml:3:15: train.best: chrf is " + for_metric(Metric::chrf)},
  });
}

BOOST_AUTO_TEST_CASE(edge_cases_of_config_values_are_reported_or_read_exactly) {
  const std::string tag = "task: tag\ndata: {synthetic: {name: brackets}}\n";
  const std::string steps = "is out of range (allowed: 0 to 1000000000000)";
  check_all({
      {copy, "command line: train.steps=1e999: 1e999 " + steps, {"train.steps=1e999"}},
      {copy, "command line: train.steps=1e17: 1e17 " + steps, {"train.steps=1e17"}},
      {copy, "command line: optim.lr=1e999: 1e999 is too large or too small", {"optim.lr=1e999"}},
      {copy, "command line: model: expected key=value, as in decode.beam=4", {"model"}},
      {copy, "command line: model.norm: expected key=value, as in decode.beam=4", {"model.norm"}},
      {copy + "train: {steps: 2000, average: 5, save_every: x}\n",
       "exp.yaml:2:46: train.save_every: expected a whole number, got \"x\""},
      {copy + "optim: {name: adam, decay: all}\n",
       "exp.yaml:2:28: optim.decay: only for name: adamw or sgd"},
      {copy + "model: &", "exp.yaml:2:9: not valid YAML: anchor not found after &"},
      {copy + "model: &a", "accepted"},
      {copy + "name: \"abc", "exp.yaml:2:11: not valid YAML: illegal EOF in scalar"},
      {tag + "model: {positions: learned, max_positions: 64}\n",
       "exp.yaml:3:44: model.max_positions: 64 is less than data.max_length (128)"},
  });
  const auto shared =
      heed::parse_config(tag + "tokenizer: {kind: char, shared: true}\n", "exp.yaml", {});
  BOOST_REQUIRE(shared.warnings.size() == 1u);
  BOOST_TEST(shared.warnings[0] ==
             "exp.yaml:3:33: tokenizer.shared: has no effect: labels have a separate vocabulary");
  // JSON preserves whole numbers of any size and the sign of zero.
  for (const double lr : {1e20, 1e3, 0.5}) {
    heed::Config config;
    config.optim.lr = lr;
    BOOST_TEST(heed::find_field("optim.lr")->get(config).get<double>() == lr);
  }
  heed::Config config;
  config.optim.momentum = -0.0;
  BOOST_TEST(std::signbit(heed::find_field("optim.momentum")->get(config).get<double>()));
}

BOOST_AUTO_TEST_CASE(invalid_overrides_are_refused) {
  check_all({
      {copy,
       "command line: train.stepz=3: unknown key (did you mean train.steps?)",
       {"train.stepz=3"}},
      {copy,
       "command line: trian.steps=3: trian: unknown key (did you mean train?)",
       {"trian.steps=3"}},
      {copy + "train: {steps: 9}\n",
       "command line: train.steps.x=3: unknown key",
       {"train.steps.x=3"}},  // the file contains a value for train.steps
      {copy,
       "command line: seed.x=3: unknown key",
       {"seed=1", "seed.x=3"}},  // an override contains a value for seed
      {copy + "train: [1]\n",
       "exp.yaml:2:8: train: expected keys and values, such as steps: ..., "
       "got a list",
       {"train.steps=3"}},
      {copy,
       "command line: train.steps=many: expected a whole number, got \"many\"",
       {"train.steps=many"}},
      {copy, "command line: train.steps: expected key=value, as in decode.beam=4", {"train.steps"}},
      {copy,
       "command line: test.de: expected key=value, as in decode.beam=4; files are given by "
       "options, as in --input FILE",
       {"test.de"}},
      {copy + "", "command line: =3: expected key=value, as in decode.beam=4", {"=3"}},
      {copy + "", "command line: .a=3: expected key=value, as in decode.beam=4", {".a=3"}},
      {copy,
       "command line: train..steps=3: expected key=value, as in decode.beam=4",
       {"train..steps=3"}},
      {copy + "", "command line: a b=3: expected key=value, as in decode.beam=4", {"a b=3"}},
      {copy, "command line: train.steps=: expected a whole number, got nothing", {"train.steps="}},
      {copy,
       "command line: train=3: expected keys and values, such as steps: ..., got \"3\"",
       {"train=3"}},
      {copy,
       "command line: model={d_modl: 3}: model.d_modl: unknown key (did you mean model.d_model?)",
       {"model={d_modl: 3}"}},
      {copy,
       "command line: model={heads: 2, heads: 2}: model.heads: duplicate key",
       {"model={heads: 2, heads: 2}"}},
      {copy,
       "command line: optim.lr=[: not valid YAML: end of sequence flow not found",
       {"optim.lr=["}},
      {copy,
       "command line: model.heads=3: model.d_model: 256 is not a multiple of heads (3)",
       {"model.heads=3"}},
      {copy + "train: 7\n",
       "exp.yaml:2:8: train: expected keys and values, such as steps: ..., got \"7\"",
       {"train.steps=5"}},
      {copy,
       "command line: train.steps=1\\n---\\n2: text after the end of the document (a config is one "
       "document)",
       {"train.steps=1\n---\n2"}},
      {copy, "command line: name=!!str x: tags (such as !!str) are not allowed", {"name=!!str x"}},
      {copy + "", "command line: name=\\xff: invalid UTF-8", {"name=\377"}},
      {copy + "", "command line: name=\\x01: control character 0x01", {"name=\001"}},
      {copy,
       "command line: model.layers=x: expected a whole number, got \"x\"",
       {"model.layers=x"}},
      {copy,
       "command line: model.layers.encoder=x: expected a whole number, got \"x\"",
       {"model.layers.encoder=x"}},
      {copy + "", "command line: optim.momentum=0.5: only for name: sgd", {"optim.momentum=0.5"}},
      {copy,
       "command line: tokenizer.algorithm=bpe: only for kind: sentencepiece",
       {"tokenizer.kind=char",
        "tokenizer.algorithm=bpe"}},  // both keys are set on the command line
      {copy,
       "command line: seed.x=1: seed: expected a whole number, got keys and values",
       {"seed.x=1"}},
      {copy, "command line: task=lm: data.synthetic.name: " + for_pairs, {"task=lm"}},
  });
}

BOOST_AUTO_TEST_CASE(all_errors_are_reported_in_order_of_position) {
  check_all({
      {copy + "seed: x\ntrain: {steps: y, lable_smoothing: 1}\nmodel: {heads: 3}\n",
       "exp.yaml:2:7: seed: expected a whole number, got \"x\"\n"
       "exp.yaml:3:16: train.steps: expected a whole number, got \"y\"\n"
       "exp.yaml:3:19: train.lable_smoothing: unknown key (did you mean label_smoothing?)\n"
       "exp.yaml:4:16: model.d_model: 256 is not a multiple of heads (3)\n"
       "command line: decode.beam=0: 0 is out of range (allowed: 1 to 1000)\n"
       "command line: foo=1: unknown key",
       {"decode.beam=0", "foo=1"}},
  });
}

BOOST_AUTO_TEST_SUITE_END()
