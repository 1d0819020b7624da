#include "train/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "data/inputs/input_info.h"
#include "train/config/field_rows.h"

namespace heed {
namespace {

void add_run(Table& table) {
  add(table,
      {
          row(HEED_KEY(name),
              "The run's name, by default the config file's name without .yaml. The run's folder "
              "is runs/<name> unless --run names another."),
          row(HEED_KEY(seed), Range{0, 0x1p64},
              "Seed of all random numbers: initial weights, order of the data, dropout, sampling."),
          row(HEED_KEY(threads), Range{1, 1024},
              "Number of worker threads; auto: one for each processor that heed may use. The "
              "result does not depend on this number."),
          row(HEED_KEY(plugins),
              "Shared libraries that register tasks, mixers and activations by name "
              "(docs/PLUGINS.md). heed runs their code; heed gradcheck also loads their float64 "
              "builds.")
              .in_words("a library or a list of libraries"),
          row(HEED_KEY(task), meanings_of(task_table()) + ".")
              .keep_on_resume(fixed_by_weights("task")),
      });
  Field& threads = find(table, "threads");
  threads.reported_on_resume = false;
  threads.choices = {"auto"};
  threads.get = [](const Config& config) -> nlohmann::json {
    return config.threads == 0 ? nlohmann::json("auto") : nlohmann::json(config.threads);
  };
  threads.set = [](Config& config, const nlohmann::json& json) {
    config.threads = json == "auto" ? 0 : json.get<std::int64_t>();
  };
}

void add_data(Table& table) {
  const Range pairs{1, billion}, pairs_or_none{0, billion}, length{1, million}, side{1, 65536};
  const std::string source =
                        "Input lines, UTF-8; .gz files are decompressed. Line i corresponds to "
                        "line i of target.",
                    target = "Output lines.",
                    text_help = "Running text; src/**/*.py, for example, names all such files.",
                    as_in_train = "As in train.", column = "a column or a list of columns";
  const std::string name = "data.synthetic.name";
  add(table,
      {
          row(HEED_KEY(data.train.source), source),
          row(HEED_KEY(data.train.target), target),
          row(HEED_KEY(data.train.text), text_help),
          row(HEED_KEY(data.valid.source), as_in_train),
          row(HEED_KEY(data.valid.target), as_in_train),
          row(HEED_KEY(data.valid.text), as_in_train),
          row(HEED_KEY(data.test.source), as_in_train),
          row(HEED_KEY(data.test.target), as_in_train),
          row(HEED_KEY(data.test.text), as_in_train),
          row(HEED_KEY(data.valid_fraction), fraction,
              "Share of the training data, cut from its end, for validation; only if data.valid "
              "names no file.")
              .only(name, {"none"}, "otherwise set data.synthetic.valid"),
          row(HEED_KEY(data.test_fraction), fraction,
              "Share of the training data that is cut from its end for testing; the share for "
              "validation precedes it.")
              .only(name, {"none"}, "otherwise set data.synthetic.test"),
          row(HEED_KEY(data.format),
              "Format of the files (docs/DATA.md). auto: the extension of a file determines "
              "it (.csv or .csv.gz, for example); other files contain lines. All formats but lines "
              "have columns and contain both sides, so target may be omitted; a line of conll is a "
              "token and its label.")
              .only(name, {"none"}),
          row(HEED_KEY(data.columns.source),
              "Columns of the source, joined by tabs: names or, without a header, numbers. The "
              "default is source or, if there is none, text; in a CoNLL file, it is 1.")
              .in_words(column)
              .only(name, {"none"}),
          row(HEED_KEY(data.columns.target),
              "Columns of the target. The default is target or, if there is none, label; in a CoNLL "
              "file, it is the last.")
              .in_words(column)
              .only(name, {"none"}),
          row(HEED_KEY(data.columns.text),
              "Columns of the text. The default is text; in a CoNLL file, it is 1.")
              .in_words(column),
          row(HEED_KEY(data.synthetic.name),
              "Generated data instead of files. dates: dates in everyday formats, to be converted "
              "to ISO 8601; brackets: the nesting depth of each bracket; recall: keys with values, "
              "then a key whose value is the target; summary: the main clause of each sentence; "
              "mixture: several of these tasks, whose names precede the lines; captions: images of "
              "two shapes, to be described in words; tones: sounds that encode digits; motion: "
              "videos of a moving square, with its first direction and its number of turns as the "
              "label; grammar: sentences, with the part of speech of each word."),
          row(HEED_KEY(data.synthetic.of),
              "The tasks of a mixture. The numbers in this section apply to each of them.")
              .in_words("a name or a list of names")
              .only(name, {"mixture"}),
          row(HEED_KEY(data.synthetic.train), pairs,
              "Number of training pairs. No source line occurs in two splits."),
          row(HEED_KEY(data.synthetic.valid), pairs_or_none, "Number of validation pairs."),
          row(HEED_KEY(data.synthetic.test), pairs_or_none, "Number of test pairs."),
          row(HEED_KEY(data.synthetic.min_length), length,
              "Minimum number of symbols (copy, reverse, sort), digits of a summand (addition), "
              "pairs of brackets (brackets), keys (recall), sentences (summary), digits (tones) or "
              "clauses (grammar)."),
          row(HEED_KEY(data.synthetic.max_length), length,
              "Maximum number of symbols (copy, reverse, sort), digits of a summand (addition), "
              "pairs of brackets (brackets), keys (recall), sentences (summary), digits (tones) or "
              "clauses (grammar)."),
          row(HEED_KEY(data.synthetic.symbols), Range{1, 62},
              "copy, reverse, sort: size of the alphabet (a-z, A-Z, 0-9); recall: number of "
              "different keys (maximum 52)."),
          row(HEED_KEY(data.synthetic.distance), Range{0, million},
              "Position of the queried key, counted from the end (1: the last key); 0: any.")
              .only(name, {"recall"}),
          row(HEED_KEY(data.input), "What a source contains. " + meanings_of(input_table()) + "."),
          row(HEED_KEY(data.image.height), side, "Height in pixels."),
          row(HEED_KEY(data.image.width), side, "Width in pixels."),
          row(HEED_KEY(data.image.channels), Range{1, 3}, "1: grey; 3: red, green, blue."),
          row(HEED_KEY(data.image.patch), side,
              "Side of a patch in pixels, a divisor of height and width. The encoder reads one row "
              "for each patch."),
          row(HEED_KEY(data.image.shift), Range{0, million},
              "Maximum shift of a training image in each direction, in pixels."),
          row(HEED_KEY(data.image.crop),
              "Crop larger images: in training at a random position, otherwise in the centre; "
              "false: a larger image is an error."),
          row(HEED_KEY(data.image.flip),
              "In training, mirror each image left to right with probability 1/2."),
          row(HEED_KEY(data.image.mean), Range{0.0, 1.0},
              "Pixel values v, from 0 to 1, are normalised to (v - mean) / deviation."),
          row(HEED_KEY(data.image.deviation), positive,
              "Divisor of the pixel values after the subtraction of the mean."),
          row(HEED_KEY(data.video.frames), Range{1, 65536}, "Number of frames of each video."),
          row(HEED_KEY(data.video.tubelet), Range{1, 65536},
              "Number of frames of a tubelet, a divisor of frames. The encoder reads one row for "
              "each tubelet, a patch over this number of frames."),
          row(HEED_KEY(data.features.width), side,
              "Number of values of a frame: columns of the .npy files, or mel bands of sound."),
          row(HEED_KEY(data.features.stack), Range{1, 1000},
              "Number of consecutive frames that form one row of the encoder's input."),
          row(HEED_KEY(data.features.normalise),
              "Normalise each column of an input to mean 0 and standard deviation 1."),
          row(HEED_KEY(data.features.rate), Range{1, 10 * million},
              "Sampling rate of the .wav files, in Hz."),
          row(HEED_KEY(data.features.window), positive, "Length of a frame, in milliseconds."),
          row(HEED_KEY(data.features.hop), positive,
              "Milliseconds from the start of a frame to that of the next."),
          row(HEED_KEY(data.lowercase), "Convert text to lower case before tokenising."),
          row(HEED_KEY(data.cutoff), dropout,
              "Probability that training replaces an input token, on either side, with <unk>."),
          row(HEED_KEY(data.mask.rate), {0.0, 1.0, false, true},
              "Share of the tokens of a line that are hidden (at least one) and must be predicted. "
              "The model reads 80 % of them as <mask>, 10 % as random tokens and 10 % unchanged. "
              "Each epoch hides different tokens."),
          row(HEED_KEY(data.mask.whole_words), "Hide all pieces of a word together.")
              .only("tokenizer.kind", {"sentencepiece", "word"}),
          row(HEED_KEY(data.mask.next_sentence),
              "A sample has two lines, and the model also predicts whether the second line follows "
              "the first in the text. Empty lines separate documents."),
          row(HEED_KEY(data.spans.rate), {0.0, 0.5, false, true},
              "Share of the tokens of a line that are hidden (at least one). Each epoch hides "
              "different tokens."),
          row(HEED_KEY(data.spans.length), {1.0, 1000.0},
              "Mean length of a hidden span, in tokens."),
          row(HEED_KEY(data.mixture.prefixes),
              "One prefix for each source file, put before each line of the file, for example "
              "\"translate: \". In every split, the number of source files must equal the "
              "number of prefixes.")
              .in_words("a string or a list of strings"),
          row(HEED_KEY(data.mixture.limit), Range{0, billion},
              "Samples of a part (a file or a synthetic task) are drawn in proportion to its size "
              "or, if smaller, to this limit; 0: no limit."),
          row(HEED_KEY(data.mixture.temperature), {1.0, 1000.0},
              "Temperature T: parts are drawn in proportion to size^(1/T). 1: in proportion to the "
              "size; large: all parts equally often."),
          row(HEED_KEY(data.max_length), length,
              "Training samples with more tokens than this on either side are left out."),
      });
  restrict_own_keys(table, "data.", "data.input", input_table());
  for (const char* key : {"train", "valid", "test", "min_length", "max_length", "symbols"}) {
    Field& field = find(table, fmt::format("data.synthetic.{}", key));
    field.only(name, all_but(find(table, name), "none"));
  }
}

void add_tokenizer(Table& table) {
  const std::string file = "a file", kind = "tokenizer.kind", shared = "tokenizer.shared";
  const std::vector<std::string> with_file{"sentencepiece", "char", "word", "imported"};
  add(table,
      {
          row(HEED_KEY(tokenizer.kind),
              "What a token is: a learned piece of a word, a character, a byte, or a word; imported: a "
              "piece of a word in the vocabulary of a run that heed import made."),
          row(HEED_KEY(tokenizer.algorithm),
              "How pieces are learned: by a unigram language model or by byte-pair encoding.")
              .only(kind, {"sentencepiece"}),
          row(HEED_KEY(tokenizer.byte_fallback),
              "Characters outside the vocabulary become pieces for their bytes, 256 in all.")
              .only(kind, {"sentencepiece"}),
          row(HEED_KEY(tokenizer.vocab_size), Range{5, 10 * million},
              "sentencepiece, word: maximum size of the vocabulary, special pieces included."),
          row(HEED_KEY(tokenizer.specials),
              "Further special pieces, such as <pad> and <mask>, with ids from 3 on. Most models "
              "need none.")
              .in_words("a name or a list of names"),
          row(HEED_KEY(tokenizer.sample.alpha), fraction,
              "Each epoch draws a new segmentation of each line. unigram: one of the most "
              "likely, with probability proportional to p^alpha; bpe: each possible merge is "
              "dropped from a merge step with probability alpha; 0: the deterministic "
              "segmentation.")
              .only(kind, {"sentencepiece"}),
          row(HEED_KEY(tokenizer.sample.nbest), Range{2, 10000},
              "unigram: the number of most likely segmentations to draw from.")
              .only(kind, {"sentencepiece"}),
          row(HEED_KEY(tokenizer.shared),
              "One vocabulary for source and target. Labels always have a separate one."),
          row(HEED_KEY(tokenizer.model),
              "An existing tokenizer (a SentencePiece .model or a vocabulary file) instead of a "
              "learned one.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"true"}, "otherwise give source_model and target_model"),
          row(HEED_KEY(tokenizer.source_model), "An existing tokenizer for the source.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"false"}, "otherwise give model"),
          row(HEED_KEY(tokenizer.target_model), "An existing tokenizer for the target.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"false"}, "otherwise give model"),
      });
}

void add_optim(Table& table) {
  const std::string name = "optim.name", schedule = "optim.schedule.name";
  const std::vector<std::string> adam{"adam", "adamw"}, decays{"cosine", "linear"};
  add(table,
      {
          row(HEED_KEY(optim.name),
              "The optimizer. heed resume can change it only between adam and adamw.")
              .keep_on_resume("a run keeps its moments, which Adam and SGD do not share", adam),
          row(HEED_KEY(optim.lr), positive,
              "The peak learning rate, reached at the end of warmup."),
          row(HEED_KEY(optim.betas), fraction,
              "Decay rates of the two moments: the moving averages of the gradient and of its "
              "square.")
              .only(name, adam),
          row(HEED_KEY(optim.eps), positive, "Added to the square root of the second moment.")
              .only(name, adam),
          row(HEED_KEY(optim.weight_decay), not_negative,
              "Weight decay: decoupled (adamw) or L2 (sgd).")
              .only(name, {"adamw", "sgd"}),
          row(HEED_KEY(optim.decay),
              "Which parameters weight_decay shrinks. matrices: weights and embeddings; all: norms "
              "and biases, too.")
              .only(name, {"adamw", "sgd"}),
          row(HEED_KEY(optim.momentum), fraction,
              "Factor by which each step multiplies the momentum before it adds the gradient.")
              .only(name, {"sgd"}),
          row(HEED_KEY(optim.moments),
              "Type of the moments: 4, 2 or 1 bytes per value; bf16 and float8 round at random."),
          row(HEED_KEY(optim.clip_norm), not_negative,
              "Maximum norm of all gradients together; larger gradients are scaled down to it. "
              "0: no clipping."),
          row(HEED_KEY(optim.schedule.name),
              "How the learning rate changes after warmup. noam and inverse_sqrt are the same."),
          row(HEED_KEY(optim.schedule.warmup), steps,
              "Number of steps in which the learning rate rises; auto: a tenth of the run's "
              "steps, at most 1000."),
          row(HEED_KEY(optim.schedule.steps), steps,
              "The step at which the decay ends; 0: the last step according to train.steps and "
              "train.epochs.")
              .only(schedule, decays),
          row(HEED_KEY(optim.schedule.min_lr), not_negative,
              "The learning rate at the end of the decay.")
              .only(schedule, decays),
      });
  Field& warmup = find(table, "optim.schedule.warmup");
  warmup.choices = {"auto"};
  warmup.get = [](const Config& config) -> nlohmann::json {
    const std::int64_t n = config.optim.schedule.warmup;
    return n == ScheduleOptions::automatic ? nlohmann::json("auto") : nlohmann::json(n);
  };
  warmup.set = [](Config& config, const nlohmann::json& json) {
    config.optim.schedule.warmup =
        json == "auto" ? ScheduleOptions::automatic : json.get<std::int64_t>();
  };
}

void add_train(Table& table) {
  const Range every{1, billion};
  add(table,
      {
          row(HEED_KEY(train.steps), steps,
              "Maximum number of steps; 0: no limit. The first limit that is reached (steps, "
              "epochs or minutes) ends the run."),
          row(HEED_KEY(train.epochs), not_negative,
              "Maximum number of passes over the training data; 0: no limit."),
          row(HEED_KEY(train.minutes), not_negative,
              "Maximum training time in minutes; 0: no limit."),
          row(HEED_KEY(train.batch_tokens), tokens,
              "Maximum number of tokens on the larger side of a batch or, for a language model, of "
              "target tokens."),
          row(HEED_KEY(train.batch_sequences), Range{0, million},
              "Number of sequences in a batch, whatever their lengths; replaces batch_tokens. "
              "0: batch_tokens applies."),
          row(HEED_KEY(train.shards), Range{1, 4096},
              "Number of parts of a batch whose gradients are computed separately, each on one "
              "thread, and then summed (gradient accumulation). More shards need less memory. The "
              "result's bits depend on this number."),
          row(HEED_KEY(train.precision),
              "Type of the operands of large matrix products in training. bf16 is faster on "
              "processors with instructions for it, and as fast as float32 on others."),
          row(HEED_KEY(train.recompute),
              "Gradient checkpointing: keep only the input of each block and recompute the rest in "
              "the backward pass. Needs less memory and about a third more time; the result has "
              "the same bits."),
          row(HEED_KEY(train.on_nonfinite),
              "What happens if the loss or the gradients of a step are not finite. stop: the "
              "run ends with exit status 5; skip: the step is skipped, and more than 20 such "
              "steps in a row end the run."),
          row(HEED_KEY(train.label_smoothing), fraction,
              "Probability that is taken from the true token and spread over all tokens."),
          row(HEED_KEY(train.rdrop), Range{0.0, 1000.0},
              "R-Drop: each step runs the model twice with different dropout and adds w / 4 (KL(p, "
              "q) + KL(q, p)) to the loss, where p and q are the two outputs and w is this weight; "
              "0: a single pass."),
          row(HEED_KEY(train.distill.teacher),
              "The teacher: a run with the same task and vocabulary, whose outputs this run learns "
              "to imitate.")
              .in_words("a run folder"),
          row(HEED_KEY(train.distill.weight), Range{0.0, 1.0},
              "Weight λ of the divergence from the teacher's outputs; the loss of the labels has "
              "weight 1 - λ."),
          row(HEED_KEY(train.distill.temperature), Range{0.01, 1000.0},
              "Divisor of the logits of teacher and student in the divergence."),
          row(HEED_KEY(train.ema), fraction,
              "Decay of a moving average of the weights, which is validated and saved in place of "
              "the weights; 0: none."),
          row(HEED_KEY(train.log_every), every,
              "Steps from one training record in metrics.jsonl to the next."),
          row(HEED_KEY(train.tensorboard),
              "Also write the records of metrics.jsonl as event files for TensorBoard, in the run "
              "folder's tensorboard/."),
          row(HEED_KEY(train.validate_every), every, "Steps from one validation to the next."),
          row(HEED_KEY(train.save_every), every, "Steps from one checkpoint to the next."),
          row(HEED_KEY(train.keep), Range{1, million},
              "Number of newest checkpoints that are kept besides the best: at least two, and "
              "at least the value of average."),
          row(HEED_KEY(train.early_stopping.metric),
              "Stop when this metric has not improved for `patience` validations. It also selects "
              "the best checkpoint."),
          row(HEED_KEY(train.early_stopping.patience), Range{1, million},
              "Number of validations without an improvement after which the run stops."),
          row(HEED_KEY(train.best),
              "The metric that selects the best checkpoint, unless early_stopping.metric is set."),
          row(HEED_KEY(train.average), Range{1, 1000},
              "Number of checkpoints to average: the last ones, within the last fifth of the run. "
              "Their mean is used if it is better than the best checkpoint, or if there are no "
              "validation data."),
      });
  const Field& metric = find(table, "train.early_stopping.metric");
  find(table, "train.early_stopping.patience").only(metric.key, all_but(metric, "none"));
}

void add_decode(Table& table) {
  add(table,
      {
          row(HEED_KEY(decode.beam), Range{1, 1000},
              "Number of hypotheses that beam search keeps; 1: greedy."),
          row(HEED_KEY(decode.length_penalty), {0.0, 100.0},
              "alpha: the log-probability of an output of n tokens is divided by ((5 + n) / "
              "6)^alpha."),
          row(HEED_KEY(decode.max_length), Range{1, million},
              "Maximum number of tokens in an output."),
          row(HEED_KEY(decode.min_length), Range{0, million},
              "Minimum number of tokens in an output."),
          row(HEED_KEY(decode.repetition_penalty), {1.0, 100.0},
              "Logits of tokens that the output already contains are divided by this penalty, or "
              "multiplied by it where they are negative; 1: no penalty."),
          row(HEED_KEY(decode.batch_sequences), sequences,
              "Maximum number of hypotheses decoded together: lines times beam."),
          row(HEED_KEY(decode.precision),
              "Type of the operands of matrix products in decoding, as in train.precision; int8: "
              "weights and rows of activations as 8-bit integers with a scale for each row."),
          row(HEED_KEY(decode.cached),
              "Keep keys and values of earlier tokens; false: recompute all of them at each "
              "step, as a check."),
          row(HEED_KEY(decode.sample), "Sample tokens instead of searching."),
          row(HEED_KEY(decode.temperature), positive, "sample: divisor of the logits."),
          row(HEED_KEY(decode.top_k), Range{0, 10 * million},
              "sample: draw only from the k most likely tokens; 0: all."),
          row(HEED_KEY(decode.top_p), {0.0, 1.0, false, true},
              "sample: draw only from the smallest set of most likely tokens whose "
              "probabilities add up to at least this value."),
          row(HEED_KEY(decode.bleu),
              "Tokenizer of BLEU, as in sacreBLEU. 13a: mteval-v13a; none: split at white "
              "space; zh: 13a, with each Chinese character as a word; char: each character is a "
              "word."),
      });
}

void add_distributed(Table& table) {
  add(table,
      {row(HEED_KEY(distributed.timeout), Range{1.0, 1e6},
           "Seconds that a process waits for another process before the run ends (ten times as "
           "many while one of them loads data or saves a checkpoint); heed resume continues the "
           "run from its last checkpoint.")});
}

void add_bench(Table& table) {
  add(table,
      {
          row(HEED_KEY(bench.sequences), Range{0, million},
              "Number of sequences in a step; 0: use batches of the config's data."),
          row(HEED_KEY(bench.source_length), tokens,
              "Number of tokens in each source sequence; ignored for images and videos, whose "
              "number of rows follows from the section data."),
          row(HEED_KEY(bench.target_length), tokens, "Number of tokens in each target sequence."),
          row(HEED_KEY(bench.vocabulary), Range{4, 10 * million}, "Size of the vocabulary."),
      });
}

/// Restricts a key or, if `of` is not empty, this value of the key to the tasks for which `holds` is
/// true.
template <class Holds>
void restrict_to_tasks(Table& table, const std::string& key, const Holds& holds,
                       std::string_view of = "") {
  const std::vector<std::string> tasks = names_where(task_table(), holds);
  if (tasks.size() == task_table().size()) return;
  std::vector<Condition>& conditions = find(table, key).conditions;
  auto condition = std::ranges::find(conditions, tasks, &Condition::values);
  if (of.empty() || condition == conditions.end())
    condition = conditions.insert(conditions.end(), Condition{"task", tasks, "", {}, true});
  if (!of.empty()) condition->of.emplace_back(of);
}

/// The conditions that follow from the table of tasks (train/config/tasks.h).
void add_task_conditions(Table& table) {
  const auto needs = [&table](const std::initializer_list<std::string>& keys, const auto& holds,
                              std::string_view of = "") {
    for (const std::string& key : keys) restrict_to_tasks(table, key, holds, of);
  };
  const auto text = [](const TaskInfo& task) { return task.reads == Reads::text; };
  const auto pairs = [](const TaskInfo& task) { return task.reads == Reads::pairs; };
  const auto encodes = [](const TaskInfo& task) { return has_encoder(task.architecture); };
  const auto decodes = [](const TaskInfo& task) { return has_decoder(task.architecture); };
  const auto is = [](Architecture architecture) {
    return [=](const TaskInfo& task) { return task.architecture == architecture; };
  };
  for (const std::string split : {"data.train", "data.valid", "data.test"}) {
    needs({split + ".source", split + ".target"}, pairs);
    needs({split + ".text"}, std::not_fn(pairs));
  }
  needs({"data.columns.source", "data.columns.target"}, pairs);
  needs({"data.columns.text"}, std::not_fn(pairs));
  needs({"data.synthetic.name", "tokenizer.shared"}, pairs);
  for (const InputInfo& input : input_table())
    if (input.read != nullptr) needs({"data.input"}, &TaskInfo::inputs, input.name);
  needs({"data.mixture.prefixes", "data.mixture.limit", "data.mixture.temperature"},
        &TaskInfo::mixes);
  needs({"data.synthetic.name"}, &TaskInfo::mixes, "mixture");
  const auto reads_complete_inputs = [](const TaskInfo& task) {
    return task.inputs && task.architecture != Architecture::encoder;
  };
  needs({"data.synthetic.name"}, reads_complete_inputs, "motion");
  needs({"model.front_end.kind"}, reads_complete_inputs, "conv");
  const auto describes_inputs = [&](const TaskInfo& task) { return task.inputs && decodes(task); };
  for (const char* kind : {"captions", "tones"})
    needs({"data.synthetic.name"}, describes_inputs, kind);
  needs({"data.spans.rate", "data.spans.length"}, &TaskInfo::hides_spans);
  needs({"tokenizer.sample.alpha", "tokenizer.sample.nbest"},
        [&](const TaskInfo& task) { return encodes(task) && decodes(task) && !task.hides_spans; });
  needs({"model.context", "model.memory"}, text);
  const auto masks = is(Architecture::encoder_of_tokens);
  needs({"data.mask.rate", "data.mask.whole_words", "data.mask.next_sentence"}, masks);
  needs({"model.head_transform"}, masks);
  needs({"model.tie_embeddings", "model.tie_output", "model.output_bias"},
        [&](const TaskInfo& task) { return decodes(task) || masks(task); });
  needs({"model.segments"}, std::not_fn(decodes));
  needs({"model.pool", "model.kind"}, is(Architecture::encoder_of_sequences));
  needs({"model.norm_kind"}, std::not_fn(decodes), "batch");
  find(table, "model.norm_kind").conditions.back().remark =
      "in a decoder, the statistics of a batch would depend on later tokens; use layer or rms";
  needs({"model.layers.encoder"}, std::not_fn(encodes), "0");
  needs({"model.layers.decoder"}, std::not_fn(decodes), "0");
  for (std::size_t i = 0; i < metric_table.size(); ++i) {
    const auto metric = static_cast<Metric>(i);
    needs(
        {"train.best", "train.early_stopping.metric"},
        [=](const TaskInfo& task) { return task.has(metric); }, name_of(metric));
  }
  for (const Field& field : table)
    if (field.key.starts_with("decode.") && field.key != "decode.bleu")
      needs({field.key}, &TaskInfo::searches);
  needs({"decode.bleu"}, [](const TaskInfo& task) { return task.has(Metric::bleu); });
}

Table make_table() {
  Table table;
  add_run(table);
  add_data(table);
  add_tokenizer(table);
  add_model(table);
  add_optim(table);
  add_train(table);
  add_decode(table);
  add_distributed(table);
  add_bench(table);
  add_task_conditions(table);
  find(table, "optim.decay").in_old_runs = "all";
  for (Field& field : table) {
    if (field.type.empty()) field.type = type_of(field);
    if (field.kind == FieldKind::files || field.key == "data.synthetic.name")
      field.resettable = false;
    for (const std::string part : {"tokenizer", "model"}) {
      if (field.key.starts_with(part + ".") && !field.key.starts_with("model.dropout.") &&
          !field.key.starts_with("tokenizer.sample."))
        field.keep_on_resume(fixed_by_weights(part));
    }
  }
  return table;
}

}  // namespace

bool Field::is_default(const Config& config) const {
  static const Config defaults;
  return get(config) == get(defaults);
}

std::string Field::sentence(const Condition& condition) const {
  const std::size_t section = key.rfind('.') + 1;
  const bool neighbours =
      condition.chooser.substr(0, condition.chooser.rfind('.') + 1) == key.substr(0, section);
  return fmt::format("only for {}: {}{}", condition.chooser.substr(neighbours ? section : 0),
                     either(condition.values),
                     condition.remark.empty() ? "" : " (" + condition.remark + ")");
}

Field& Field::only(std::string chooser, std::vector<std::string> values, std::string remark) {
  conditions.push_back({std::move(chooser), std::move(values), std::move(remark)});
  return *this;
}

Field& Field::keep_on_resume(std::string reason, std::vector<std::string> values) {
  resume_refusal = std::move(reason);
  interchangeable = std::move(values);
  return *this;
}

Field& Field::in_words(std::string words) {
  type = std::move(words);
  return *this;
}

std::string either(const std::vector<std::string>& words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

const std::vector<Field>& fields() {
  static std::mutex mutex;
  static std::list<Table> tables;  // callers hold pointers to rows, so every table is kept
  static std::size_t growth = 0;   // OpenNames::growth when the newest table was made
  const std::lock_guard lock(mutex);
  if (tables.empty() || growth != OpenNames::growth) {
    growth = OpenNames::growth;
    tables.push_back(make_table());
  }
  return tables.back();
}

const Field* find_field(std::string_view key) {
  const std::vector<Field>& table = fields();
  const auto found = std::ranges::find(table, key, &Field::key);
  return found == table.end() ? nullptr : &*found;
}

std::vector<std::string> names_in(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> names;
  const auto add = [&](const std::string& key) {
    if (!key.starts_with(prefix)) return;
    const std::string name = key.substr(prefix.size());
    const std::string first = name.substr(0, name.find('.'));
    if (std::ranges::find(names, first) == names.end()) names.push_back(first);
  };
  for (const Field& field : fields()) add(field.key);
  return names;
}

}  // namespace heed
