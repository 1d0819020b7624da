#include "train/talk.h"

#include <fmt/chrono.h>

#include <ctime>

#include "autograd/error.h"

namespace heed {

void Talk::log_to(const std::filesystem::path& file) {
  log_.open(file, std::ios::app);
  if (!log_) throw Error(Exit::io, "cannot write " + file.string());
}

void Talk::line(const std::string& text) {
  bar_->note(text);
  log(text);
}

void Talk::log(const std::string& text) {
  if (log_.is_open())
    log_ << fmt::format("{:%F %T}  {}", fmt::localtime(std::time(nullptr)), text) << std::endl;
}

void Talk::progress(const TrainingState& state) {
  ProgressState shown;
  shown.step = state.step;
  shown.total = state.total_steps;
  shown.loss = state.loss;
  shown.learning_rate = state.learning_rate;
  shown.tokens_per_second = state.tokens_per_second;
  if (state.share_done > 0)
    shown.seconds_left = state.seconds * (1 - state.share_done) / state.share_done;
  bar_->update(shown);
}

}  // namespace heed
