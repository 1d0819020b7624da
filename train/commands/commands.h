#pragma once
/// The commands, one function each. They return the exit status or throw Error.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "data/options.h"

namespace heed {

/// The arguments of a command that reads a config.
struct ConfigArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

/// The arguments of a command that uses the weights of a run.
struct RunArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string weights;  ///< name for find_weights: best, last, average, a step, a folder, or empty
};

/// The arguments of a command that creates a run folder.
struct NewRunArguments {
  std::string to;  ///< the new run folder; empty: the command's default
  bool overwrite = false;
  std::vector<std::string> command;  ///< command line as typed, for run.json
};

/// By default, the run is in runs/<name>.
struct TrainCommand : ConfigArguments, NewRunArguments {};
int train_command(const TrainCommand& options);

struct ResumeCommand {
  std::string run;
  std::vector<std::string> overrides;
  bool json = false;
};
int resume_command(const ResumeCommand& options);

struct EvalCommand : RunArguments {
  std::string split;          ///< valid or test; empty: test, or valid if there are no test data
  FilesOptions files;         ///< read instead of a split
  bool pretokenised = false;  ///< whether the lines are already tokenised for BLEU
  bool json = false;
  std::string output;  ///< file for the outputs; empty: none
};
int eval_command(const EvalCommand& options);

struct GenerateCommand : RunArguments {
  std::string input = "-", output = "-";
  std::optional<std::string> prompt;  ///< lm: the text to continue, instead of lines of input
  std::optional<std::uint64_t> seed;  ///< seed of sampling; unset: the config's seed
  std::string prefix;                 ///< file whose line i begins output i; empty: none
  std::int64_t nbest = 0;  ///< number of outputs per line, with scores; 0: one, without a score
  std::int64_t chunk = 0;  ///< number of lines read per chunk; 0: 1 at a terminal, else 2048
};
int generate_command(const GenerateCommand& options);

struct ScoreCommand : RunArguments {
  std::string source, target;  ///< lm: target only
  std::string output = "-";
  bool json = false;
};
int score_command(const ScoreCommand& options);

struct AttentionCommand : RunArguments {
  std::string input;  ///< a line of the source; lm: a text
  /// Encoder-decoder models: the output; empty: the model generates it.
  std::string target;
  std::string layer;                 ///< dot-separated parts of layer names; empty: all layers
  std::optional<std::int64_t> head;  ///< head to show, counted from 0; unset: all
  std::string output = "attention.html";
  bool json = false;
  std::string view = "map";           ///< kind of drawing: map, lines, neurons, graph, rollout
  std::optional<std::int64_t> query;  ///< neurons view: row of the query, from 0; unset: the last
  std::optional<double> threshold;    ///< graph and rollout views: minimum weight of an edge
  std::string width;                  ///< width of a drawing on paper: "84mm"; empty: in pixels
};
int attention_command(const AttentionCommand& options);

/// `config` may also be a run folder.
struct TraceCommand : ConfigArguments {
  std::string weights;
  std::string input, target;
  std::string layer;  ///< dot-separated parts of a layer name; empty: the first attention layer
  std::int64_t head = 0;
  bool backward = false;
  std::string output = "-";
};
int trace_command(const TraceCommand& options);

struct CompareCommand {
  std::vector<std::string> runs;
  bool json = false, markdown = false;
  std::string output = "-";
};
int compare_command(const CompareCommand& options);

struct ReportCommand {
  std::vector<std::string> runs;
  std::vector<std::string> csv;  ///< names of curves to print instead of a page
  bool follow = false;           ///< rewrite the page while the runs are in progress
  std::int64_t every = 10;       ///< interval between rewrites, in seconds
  bool profile = false;          ///< measure the time of each op
  std::string output = "report.html";
};
int report_command(const ReportCommand& options);

struct PlotCommand {
  std::string what;    ///< one of plot_names()
  std::string config;  ///< config, or the first override; empty: the defaults
  std::vector<std::string> overrides;
  std::int64_t length = 64;  ///< number of positions
  std::string output;        ///< empty: <what>.svg
};
int plot_command(const PlotCommand& options);

struct SweepCommand {
  std::string config;
  std::vector<std::string> arguments;  ///< key=a,b,c and key=value
  std::optional<std::int64_t> seeds, random;
  bool halving = false;
  std::int64_t jobs = 1;  ///< number of simultaneous runs
  std::string folder;     ///< empty: runs/<name>-sweep
  bool json = false;
};
int sweep_command(const SweepCommand& options);

struct RunsCommand {
  std::string folder = "runs";
  bool json = false;
};
int runs_command(const RunsCommand& options);

struct GradcheckCommand : ConfigArguments {
  /// Number of entries to check per parameter; 0: 4 to 256, as many as fit in about 40 s.
  std::int64_t entries = 0;
};
int gradcheck_command(const GradcheckCommand& options);

/// `config` may also be a run folder.
struct ShowCommand : ConfigArguments {
  bool schema = false;       ///< print the JSON Schema of configs instead
  bool tape = false;         ///< draw the tape of a training step
  std::string output = "-";  ///< output file; .svg: a drawing
};
int show_command(const ShowCommand& options);

struct BenchCommand : ConfigArguments {
  /// Number of steps to measure; 0: 5 to 400, as many as fit in about 10 s.
  std::int64_t steps = 0;
};
int bench_command(const BenchCommand& options);

struct PruneCommand : RunArguments, NewRunArguments {
  std::int64_t heads = 0;  ///< number of heads to remove, the least important first
  double share = 0;        ///< share of the weights to set to zero, the smallest magnitudes first
  bool json = false;
};
int prune_command(const PruneCommand& options);

/// By default, the new run is in RUN-int8.
struct QuantizeCommand : NewRunArguments {
  std::string run;
  std::string weights;
  bool json = false;
};
int quantize_command(const QuantizeCommand& options);

struct FetchCommand {
  std::string name;
  std::string to;    ///< folder of the data set; empty: data/<name>
  std::string from;  ///< folder of the files to copy; empty: download
};
int fetch_command(const FetchCommand& options);

}  // namespace heed
