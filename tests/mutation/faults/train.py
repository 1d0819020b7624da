"""Faults in the other folders of train/."""
from . import fault

# ---- train ---------------------------------------------------------------------------------------

fault("step: each shard's loss is divided by its number of labels", "train/loop/step.cpp",
      "forward_backward(shards[i], {lanes[i], all_reduce}, i, step, static_cast<double>(tokens));",
      "const Batch& own = shards[i];\n"
      "    forward_backward(own, {lanes[i], all_reduce}, i, step, static_cast<double>(own.labels.size()));",
      "nn_f64:shards", "training:step")

fault("step: every step uses the same dropout masks", "train/loop/step.cpp",
      "static_cast<std::uint64_t>(step),",
      "step < 0 ? 1u : 0u,",
      "training:step,determinism")

fault("step: clipping uses the square of the gradient norm", "train/loop/step.cpp",
      "update(lr, clip_factor(result.gradient_norm, options_.clip_norm));",
      "update(lr, clip_factor(result.gradient_norm * result.gradient_norm, options_.clip_norm));",
      "training:step", "nn_f64:golden")

fault("step: an infinite gradient of a finite loss is accepted", "train/loop/step.cpp",
      " || !std::isfinite(result.gradient_norm)",
      "",
      "training:step")

fault("resume: the optimizer begins at step 0", "train/loop/trainer.cpp",
      "replica_.optimizer().set_steps(",
      "replica_.optimizer().set_steps(0 * ",
      "training:resuming")

fault("resume: starts again at the beginning of the epoch", "train/loop/run_progress.cpp",
      'visit("/batch", p.position.batch, true);',
      "",
      "training:resuming")

fault("best: higher perplexity counts as better", "train/config/tasks.h",
      '"perplexity", "perplexity", false',
      '"perplexity", "perplexity", true',
      "training:trainer")

fault("checkpoints: `best` always points to the last one", "train/run/checkpoint_folder.cpp",
      'if (!is_best) return folder;',
      'if (!is_best && step == 0) return folder;',
      "train:checkpoint_folder")

fault("checkpoints: checkpoints on request count towards keep", "train/run/checkpoint_folder.cpp",
      'return !state.state.contains("on_request");',
      "return true;",
      "train:checkpoint_folder")

fault("run lock: a process that tests the lock stops a starting run", "train/run/run_lock.cpp",
      "if (try_lock(file_.get(), LOCK_SH) < 0 || tries == 1000) refuse(run, file_.get(), use);",
      "refuse(run, file_.get(), use);",
      "train:files_and_folders")

fault("run lock: an empty file always counts as heed's", "train/run/run_lock.cpp",
      "|| (accept_cut && mark.starts_with(text));",
      "|| mark.starts_with(text);",
      "train:files_and_folders")

fault("validation: draws samples if decode.sample is set", "train/tasks/seq2seq.cpp",
      "options.sample = false;",
      "",
      "training:trainer")

fault("average: divides by the requested number of checkpoints", "train/run/average.cpp",
      "static_cast<double>(files.size())",
      "static_cast<double>(train.average)",
      "training:trainer")

fault("moving average: a checkpoint contains the weights instead", "train/loop/checkpoint_content.cpp",
      "&NamedTensor::name)->tensor = mean;",
      "&NamedTensor::name)->tensor = weights[i].tensor;",
      "training:regularisers")

fault("moving average: restored without exchanging weights and means", "train/loop/checkpoint_content.cpp",
      "if (ema && averaged) ema->swap();",
      "",
      "training:regularisers")

fault("cutoff: every step uses the same random numbers", "train/loop/augment.cpp",
      ".index = static_cast<std::uint64_t>(step),",
      ".index = 0 * static_cast<std::uint64_t>(step),",
      "training:regularisers")

fault("fetch: an uncompressed file with the name of a gzip file is kept", "train/fetch/fetch.cpp",
      "    if (is_gzip(bytes) != ends_in_gz(file.name)) return false;\n",
      "",
      "train:fetching")

fault("subprocess: the status of a killed program lacks 128", "train/fetch/subprocess.cpp",
      "128 + WTERMSIG(status)",
      "WTERMSIG(status)",
      "train:fetching")

fault("subprocess: the stream to be discarded reaches the terminal", "train/fetch/subprocess.cpp",
      "keep == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;",
      "keep == STDOUT_FILENO ? STDOUT_FILENO : STDERR_FILENO;",
      "train:fetching")

fault("run lock: processes that test the lock exclude one another", "train/run/run_lock.cpp",
      "return file && try_lock(file->get(), LOCK_SH) < 0 && errno",
      "return file && try_lock(file->get(), LOCK_EX) < 0 && errno",
      "train:files_and_folders")

fault("overwriting: damaged metrics of the previous run remain", "train/run/run_folder.cpp",
      '"metrics.jsonl.damaged",',
      '',
      "commands_folders")

fault("resume: run.json keeps the checksum of the previous config", "train/run/run_record.cpp",
      '    (*record)["files"]["config.yaml"] = sha256_hex(yaml);\n',
      "",
      "commands_resume")

fault("metrics: records after the checkpoint count as damage", "train/run/jsonl.cpp",
      "if (!usable(line, {}) && end + 1 < text.size())",
      "if (end + 1 < text.size())",
      "train:json_lines")

fault("config: a key given on the command line is reset without a message", "train/config/checks.cpp",
      "(condition.chooser) &&\n                        !from_command_line(field.key))) {",
      "(condition.chooser))) {",
      "train:config_checks")

fault("resume: a change is accepted if one value is interchangeable", "train/config/config.cpp",
      "!(is_interchangeable(before) && is_interchangeable(after))",
      "!(is_interchangeable(before) || is_interchangeable(after))",
      "train:config")

fault("pruning: the importance of a head is signed", "train/loop/pruning.cpp",
      "std::abs(values[at])",
      "values[at]",
      "training:pruning")

fault("pruning: weights equal to the limit are kept", "train/loop/pruning.cpp",
      "[&](real w) { return w < limit; }",
      "[&](real w) { return w <= limit; }",
      "training:pruning")

fault("ranks: a rank adds subtrees that begin on another rank", "train/distributed/parts.h",
      "at % (2 * width) == 0 &&",
      "",
      "training:ranks")

fault("ranks: every rank reads its moments at the wrong offset", "optim/optimizer.cpp",
      "real* const m = first_[parameter].read(i, to, first);",
      "real* const m = first_[parameter].read(i + owned_[parameter].begin, to + owned_[parameter].begin, first);",
      "training:ranks")

fault("ranks: the running means of batch norm stay on rank 0", "train/loop/trainer.cpp",
      "if (ema_ || !replica_.model().statistics().empty()) replica_.share_weights();",
      "if (ema_) replica_.share_weights();",
      "training:ranks")

fault("ranks: every round exchanges the pieces of the first", "train/distributed/parameter_exchange.cpp",
      "Part{chunks[round], chunks[round + 1]}",
      "Part{chunks[0], chunks[1]}",
      "training:ranks")

fault("moving average: the first updates have the full decay", "train/loop/trainer.cpp",
      "ema_->update(replica_.optimizer().steps(), ",
      "ema_->update(std::int64_t{1} << 40, ",
      "training:regularisers")

fault("report: quotes in the CSV are not doubled", "autograd/io/message_text.cpp",
      "c == '\"' ? \"\\\"\\\"\" : std::string(1, c);",
      "c;",
      "train:report")

fault("compare: a bar in a value adds a column to the Markdown table", "train/results/comparison.cpp",
      "c == '|' ? escaped += \"\\\\|\" : escaped += c;",
      "escaped += c;",
      "train:comparison")

fault("pruning: the importance is computed from the shortest sequences", "train/loop/pruning.cpp",
      "std::move(all[i * n / wanted])",
      "std::move(all[i])",
      "training:pruning")

fault("resume: a new criterion for the best checkpoint keeps the patience", "train/loop/run_progress.cpp",
      "    p.validations_without_improvement = 0;\n"
      "    p.validation_due",
      "    p.validation_due",
      "training:resuming")

fault("schedule: ends a step before a run of a fractional number of epochs", "train/loop/trainer.cpp",
      "std::ceil(config.train.epochs",
      "std::floor(config.train.epochs",
      "training:trainer")

fault("language model: nats per byte are reported as bits", "train/tasks/lm.cpp",
      "total.nll / std::log(2.0) /",
      "total.nll /",
      "training:trainer")

fault("labels: the confusion is transposed", "train/tasks/labels.cpp",
      "confusion.add(right[k], found[k]);",
      "confusion.add(found[k], right[k]);",
      "training:labels")

fault("masked language model: a special piece fills a mask", "train/tasks/mlm.cpp",
      "std::max_element(z + tokenizer.first_ordinary(), z + logits.cols())",
      "std::max_element(z, z + logits.cols())",
      "training:labels")

fault("moving average: begins with the weights before init_from", "train/loop/trainer.cpp",
      "  if (ema_) ema_->restart();\n",
      "",
      "training:regularisers")

fault("average: begins one checkpoint late", "train/run/average.cpp",
      "(last_step + 4) / 5;",
      "last_step / 5;",
      "training:trainer")

fault("weights: a config edited by hand is not compared with them", "train/commands/trained_model.cpp",
      "    require_fit(folder, trained.config, checkpoint);\n",
      "",
      "commands_belong")

fault("data warnings: the share of a split's own lines instead of the repeated ones", "train/tasks/data_warnings.cpp",
      "if (repeated <= max_share * bytes) return;",
      "if (repeated < bytes) return;",
      "commands_belong")

fault("ranks: processors are shared with ranks on other hosts", "train/distributed/world.cpp",
      "hosts_[r] == hosts_[rank()] && CPU_COUNT(&both) > 0",
      "CPU_COUNT(&both) > 0",
      "training:ranks")

fault("sweep: halving drops the better half of an odd number of points", "train/sweep/sweep.cpp",
      "std::size_t k = (order.size() + 1) / 2;",
      "std::size_t k = order.size() / 2;",
      "commands_sweep")

fault("init_from: the scales of int8 weights are reported as unused", "train/loop/transfer.cpp",
      " &&\n        !is_scale(file, view.name))",
      ")",
      "commands_tasks")

fault("denoise: evaluation accepts more spans than there are sentinels", "train/tasks/seq2seq.cpp",
      "if (spans > span_marks)",
      "if (spans > 2 * span_marks)",
      "training:text2text")

fault("resume counts skipped (non-finite) steps as optimizer steps, so Adam's bias correction and train.ema differ from the undisturbed run", "train/loop/trainer.cpp",
      "replica_.optimizer().set_steps(progress_.step - progress_.skipped);",
      "replica_.optimizer().set_steps(progress_.step);",
      "train", "training", "commands_resume")

fault("train.ema set on resume of a run without it: the means start from the random initial weights instead of the checkpoint's", "train/loop/checkpoint_content.cpp",
      "  if (ema && !averaged) ema->restart();\n",
      "",
      "train", "training", "commands_resume")

fault("compare and report show a later heed eval of the validation split in place of the test result", "train/results/comparison.cpp",
      "if (!usual || (split == \"valid\" && result.where == \"test\")) continue;",
      "if (!usual) continue;",
      "train", "commands", "commands_belong")

fault("sweep --halving ends cosine and linear schedules with the first round, so later rounds train at the minimum rate", "train/sweep/sweep.cpp",
      "words.push_back(fmt::format(\"optim.schedule.steps={}\", round.all));",
      "words.push_back(fmt::format(\"optim.schedule.steps={}\", round.steps));",
      "commands_sweep", "train")

fault("distributed run with model.memory: the ranks exchange the old memory, so rank 0's checkpoint has zeros in the lanes of other ranks", "train/loop/step.cpp",
      "    memory_->advance();\n    if (exchange_ != nullptr) share_memory(*memory_, shards, exchange_->world());\n",
      "    if (exchange_ != nullptr) share_memory(*memory_, shards, exchange_->world());\n    memory_->advance();\n",
      "training", "mpi_openmpi")

fault("an override of one key of a section given as a single value (model.layers: 3, model.layers.encoder=2) resets the other keys to their defaults", "train/config/overrides.cpp",
      "    for (const std::string& name : names_in(key)) map.entries.push_back({name, node.place, node});\n",
      "",
      "train", "command_parts", "commands_sweep")

fault("the number of consecutive skipped steps is not in the checkpoint", "train/loop/run_progress.cpp",
      "  visit(\"/skipped_in_a_row\", p.consecutive_skips, false);\n",
      "",
      "training:nonfinite")

fault("a resumed TensorBoard session discards the step of the checkpoint", "train/run/run_metrics.cpp",
      "  events_.emplace(run.path / \"tensorboard\", step + 1);",
      "  events_.emplace(run.path / \"tensorboard\", step);",
      "event_file")

fault("runs with different seeds on different files are compared", "train/results/comparison.cpp",
      "      const bool generated = run->config.data.synthetic.name != SyntheticKind::none;\n"
      "      const std::uint64_t seed = generated ? run->config.seed : 0;\n",
      "      const std::uint64_t seed = run->config.seed;\n",
      "command_parts", "train")

fault("both copies of a sequence in R-Drop have the same cutoff", "train/loop/augment.cpp",
      "  if (options.rdrop > 0) {\n"
      "    repeat(batch.source);\n"
      "    repeat(batch.target);\n"
      "    repeat(batch.samples);\n"
      "  }\n"
      "  if (options.cutoff > 0) {\n"
      "    Random random({.seed = options.seed,\n"
      "                   .stream = Stream::cutoff,\n"
      "                   .index = static_cast<std::uint64_t>(step),\n"
      "                   .part = static_cast<std::uint32_t>(number)});\n"
      "    cut(batch.source, options.cutoff, random);\n"
      "    cut(batch.target, options.cutoff, random);\n"
      "  }\n",
      "  if (options.cutoff > 0) {\n"
      "    Random random({.seed = options.seed,\n"
      "                   .stream = Stream::cutoff,\n"
      "                   .index = static_cast<std::uint64_t>(step),\n"
      "                   .part = static_cast<std::uint32_t>(number)});\n"
      "    cut(batch.source, options.cutoff, random);\n"
      "    cut(batch.target, options.cutoff, random);\n"
      "  }\n"
      "  if (options.rdrop > 0) {\n"
      "    repeat(batch.source);\n"
      "    repeat(batch.target);\n"
      "    repeat(batch.samples);\n"
      "  }\n",
      "training:regularisers")

fault("exact match of a tagger counts empty lines", "train/tasks/labels.cpp",
      "    if (found.empty()) continue;\n"
      "    const auto right = data.target[i];\n"
      "    for (std::size_t k = 0; k < right.size(); ++k) confusion.add(right[k], found[k]);\n"
      "    ++lines;\n",
      "    ++lines;\n"
      "    if (found.empty()) continue;\n"
      "    const auto right = data.target[i];\n"
      "    for (std::size_t k = 0; k < right.size(); ++k) confusion.add(right[k], found[k]);\n",
      "commands_tasks")

fault("the checkpoint that lies exactly at the beginning of the last fifth of a run is left out of the mean", "train/run/average.cpp",
      "std::ssize(sources) < count && steps.back() >= first;",
      "std::ssize(sources) < count && steps.back() > first;",
      "training:trainer")

fault("the section of a key is cut at the last point of the whole override, so a value with a decimal point loses its key and its whole part in the folder's name", "train/sweep/plan.cpp",
      "const std::size_t equals = override.find('='), dot = override.rfind('.', equals);",
      "const std::size_t dot = override.rfind('.');",
      "train:sweep")

fault("A teacher whose sound features are normalised otherwise than the student's is accepted", "train/loop/teacher.cpp",
      "\"data.features.hop\",   \"data.features.normalise\"};",
      "\"data.features.hop\"};",
      "training:distillation")

fault("the importance of heads is measured on the first sequences in order of length instead of on evenly spaced ones", "train/loop/pruning.cpp",
      "some.push_back(std::move(all[i * n / wanted]));",
      "some.push_back(std::move(all[i]));",
      "training:pruning")

fault("only the first line of a block comment is ignored: from its second line on, a comment of an exercise is read as code", "train/course/rules.cpp",
      "      if (in != In::block) in = In::code;\n",
      "      in = In::code;\n",
      "course")

fault("with fewer shards than ranks, the empty parts come first, so rank 0 may have no shard", "train/distributed/parts.h",
      "return (count * r + ranks - 1) / ranks;",
      "return count * r / ranks;",
      "training")

fault("old checkpoints are removed down to train.keep even if train.average needs more of them", "train/loop/trainer.cpp",
      "checkpoints_.prune(std::max(config_.train.keep, config_.train.average))",
      "checkpoints_.prune(config_.train.keep)",
      "training:trainer")

fault("a single value on the command line of heed sweep no longer replaces the list of values that the config's section sweep has for the key", "train/sweep/plan.cpp",
      """    std::erase_if(plan.axes, [&](const SweepAxis& axis) { return axis.key == key; });
    if (values.size() < 2) {
      plan.overrides.push_back(argument);
    } else {
""",
      """    if (values.size() < 2) {
      plan.overrides.push_back(argument);
    } else {
      std::erase_if(plan.axes, [&](const SweepAxis& axis) { return axis.key == key; });
""",
      "train:sweep")

fault("when a run is resumed, the records of metrics.jsonl of the step of the checkpoint are removed too, although the resumed run does not write them again", "train/run/run_metrics.cpp",
      "    return at <= step && !(validation_due",
      "    return at < step && !(validation_due",
      "training:distillation")

fault("heed sweep --seeds N uses the seeds 1 to N instead of N consecutive seeds from the config's seed on", "train/sweep/plan.cpp",
      """        varied.push_back(fmt::format("seed={}", seed + static_cast<std::uint64_t>(s)));
""",
      """        varied.push_back(fmt::format("seed={}", 1 + s));
""",
      "train:sweep")

fault("the score of a line longer than the context is that of its last window", "train/tasks/lm.cpp",
      "scores[windows.lines[w]].log_prob += log_probs[w];",
      "scores[windows.lines[w]].log_prob = log_probs[w];",
      "training:trainer")

fault("a line of two texts is left out if the longer text exceeds data.max_length, not if both together do", "train/tasks/classify.cpp",
      "if (training && length > config_.data.max_length) {",
      """if (training && std::max(first.source.length(i), second.source.length(i)) >
                          config_.data.max_length) {""",
      "training:labels")

fault("with next sentences, a line follows the last one of the document before it, and a line behind one that was left out", "train/tasks/mlm.cpp",
      "masking.followed.push_back(k + 1 < kept.size() && kept[k + 1] == kept[k] + 1);",
      "masking.followed.push_back(k + 1 < kept.size());",
      "training:labels")

fault("the accuracy of next sentences counts hidden tokens too", "train/tasks/mlm.cpp",
      """      batch.labels = std::move(firsts);
""",
      "",
      "training:labels")
