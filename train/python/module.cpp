/// The Python module `heed`: the functions of the program's commands (docs/PYTHON.md).
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "train/commands/failure.h"
#include "train/commands/trained_model.h"
#include "train/commands/training.h"
#include "train/config/trusted_plugins.h"
#include "train/results/history.h"
#include "train/run/version.h"
#include "train/terminal/progress.h"
#include "train/terminal/run_log.h"
#include "train/terminal/signals.h"
#include "train/views/commands/attention.h"
#include "train/views/commands/gradcheck.h"
#include "train/views/commands/report.h"
#include "train/views/commands/view_file.h"
#include "train/views/report/runs/report_page.h"

namespace heed {
namespace {

namespace py = pybind11;
namespace fs = std::filesystem;
using WithoutGil = py::call_guard<py::gil_scoped_release>;
using Lines = std::vector<std::string>;
using Seed = std::optional<std::uint64_t>;  ///< of sampling; unset: the config's

/// A str. Bytes that are not UTF-8, such as those of a character that a token cuts, become U+FFFD.
py::str text_of(std::string_view text) {
  return py::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

py::list texts_of(const Lines& lines) {
  py::list all;
  for (const std::string& line : lines) all.append(text_of(line));
  return all;
}

py::object object_of(const nlohmann::json& value) {
  return py::module_::import("json").attr("loads")(
      text_of(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

/// A read-only array of the same memory, which exists as long as the array.
py::array_t<real> view_of(const Array& values) {
  std::vector<py::ssize_t> shape;
  for (int axis = 0; axis < values.shape().rank(); ++axis) shape.push_back(values.shape()[axis]);
  const py::capsule owner(new Array(values), [](void* copy) { delete static_cast<Array*>(copy); });
  py::array_t<real> view(shape, values.data(), owner);
  view.attr("setflags")(py::arg("write") = false);
  return view;
}

/// The weights of a layer: [heads, queries, keys].
py::array_t<real> weights_of(const LayerWeights& layer) {
  const Shape& shape = layer.heads.front().weights.shape();
  py::array_t<real> all({std::ssize(layer.heads), py::ssize_t{shape[0]}, py::ssize_t{shape[1]}});
  real* at = all.mutable_data();
  for (const HeadWeights& head : layer.heads)
    at = std::copy_n(head.weights.data(), head.weights.size(), at);
  return all;
}

/// Keyword arguments as overrides: optim={"lr": 1e-3} becomes "optim.lr=0.001".
Lines overrides_of(const py::dict& values, const std::string& section = "") {
  const py::object to_json = py::module_::import("json").attr("dumps");
  const py::cpp_function convert([](const py::object& value) -> py::object {  // NumPy's, paths
    return py::hasattr(value, "item") ? value.attr("item")() : py::str(value);
  });
  Lines overrides;
  for (const auto& [key, value] : values) {
    const std::string name = section + py::str(key).cast<std::string>();
    if (py::isinstance<py::dict>(value)) {
      std::ranges::move(overrides_of(value.cast<py::dict>(), name + "."),
                        std::back_inserter(overrides));
    } else {
      const py::object text =
          to_json(value, py::arg("ensure_ascii") = false, py::arg("default") = convert);
      overrides.push_back(name + "=" + text.cast<std::string>());
    }
  }
  return overrides;
}

/// Calls Python's handlers of the signals that have arrived, on Python's main thread only, and
/// throws their exception: KeyboardInterrupt after Ctrl-C.
void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// Writes to sys.stderr, which notebooks show. Failures are ignored, as those of stderr are.
void write_to_python(std::string_view text) {
  const py::gil_scoped_acquire gil;
  try {
    const py::object out = py::module_::import("sys").attr("stderr");
    if (out.is_none()) return;
    out.attr("write")(text_of(text));
    out.attr("flush")();
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // for check_signals
  }
}

/// Computes without the GIL. A signal ends the work of the team.
template <class Work>
auto computed(std::int64_t threads, const Work& work) {
  const py::gil_scoped_release released;
  Team team(threads);
  team.interrupt_when([caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == caller) check_signals();
    return false;
  });
  return work(team);
}

/// A page or a drawing.
struct View {
  std::string content;
  py::str text() const { return text_of(content); }
  void save(const fs::path& file) const { write_view(file.string(), content); }
};
struct Page : View {
  /// The page in a frame, so that its style and its scripts do not mix with those of the notebook.
  py::str html() const {
    return text_of(
        fmt::format("<iframe sandbox=\"allow-scripts\" style=\"width:100%;height:40em;border:0\" "
                    "srcdoc=\"{}\"></iframe>",
                    xml_text(content)));
  }
};
struct Figure : View {
  /// The drawing as an image, for the same reason; exports of notebooks remove most elements of SVG.
  py::str html() const {
    const py::object code = py::module_::import("base64").attr("b64encode")(py::bytes(content));
    return py::str("<img alt=\"\" src=\"data:image/svg+xml;base64,{}\">")
        .format(code.attr("decode")());
  }
};

struct Attention {
  LineAttention line;
  bool one_head = false;

  Figure figure(const std::string& view, std::optional<std::int64_t> query,
                std::optional<double> threshold) const {
    return {svg_file(attention_figure(line.maps, one_head, {view, query, threshold}))};
  }
  Page page() const { return {attention_page(line.maps, line.head)}; }
  template <class Value>
  py::dict by_layer(const Value& value) const {
    py::dict all;
    for (const LayerWeights& layer : line.maps.layers) all[text_of(layer.name)] = value(layer);
    return all;
  }
  py::dict weights() const { return by_layer(weights_of); }
  py::dict queries() const {
    return by_layer([&](const LayerWeights& l) { return texts_of(line.maps.queries(l)); });
  }
  py::dict keys() const {
    return by_layer([&](const LayerWeights& l) { return texts_of(line.maps.keys(l)); });
  }
  py::str output() const { return text_of(line.output); }
};

class Run {
  template <class Work>
  auto with_generator(Seed seed, const Work& work) const {
    return computed(trained_.config.threads, [&](Team& team) {
      return work(
          *trained_.task->make_generator(trained_.with(team), seed.value_or(trained_.config.seed)));
    });
  }

 public:
  Run(const fs::path& folder, const std::string& weights, bool trust_plugins,
      const py::kwargs& overrides)
      : folder_(folder.string()) {
    const Lines all = overrides_of(overrides);
    const py::gil_scoped_release released;
    if (trust_plugins) trust_all_plugins();
    trained_ = TrainedModel::open(folder_, all, weights);
  }

  py::list generate(const Lines& lines, Seed seed) const {
    return texts_of(with_generator(seed, [&](Generator& generator) {
      Lines outputs = generator.lines(lines, 0);
      if (const std::string cut = generator.cut_outputs(); !cut.empty()) print_note("note: " + cut);
      return outputs;
    }));
  }

  py::list nbest(const Lines& lines, std::int64_t n, Seed seed) const {
    if (n < 1) throw Error(Exit::usage, "n: expected at least 1, got {}", n);
    const auto found = with_generator(seed, [&](Generator& generator) {
      return generator.nbest({lines, {}, 0, n});
    });
    py::list all;
    for (const std::vector<GeneratedText>& outputs : found) {
      py::list of_line;
      for (const GeneratedText& output : outputs)
        of_line.append(py::make_tuple(text_of(output.text), output.score));
      all.append(of_line);
    }
    return all;
  }

  py::str continuation(const std::string& prompt, Seed seed) const {
    return text_of(with_generator(seed, [&](Generator& generator) {
      return generator.continuation(prompt, [](std::string_view) { check_signals(); });
    }));
  }

  py::dict score(const std::optional<Lines>& sources, const Lines& targets) const {
    const std::vector<LineScore> scores = computed(trained_.config.threads, [&](Team& team) {
      std::vector<LineScore> found = trained_.task->score(
          trained_.with(team), trained_.task->scored_lines(sources.value_or(Lines()), targets));
      trained_.require_finite(found);
      return found;
    });
    py::array_t<double> log_probs(std::ssize(scores));
    py::array_t<std::int64_t> tokens(std::ssize(scores));
    for (py::ssize_t i = 0; i < std::ssize(scores); ++i) {
      log_probs.mutable_at(i) = scores[i].log_prob;
      tokens.mutable_at(i) = scores[i].tokens;
    }
    return py::dict(py::arg("log_prob") = log_probs, py::arg("tokens") = tokens);
  }

  /// Without the special pieces that a task adds.
  std::vector<std::int32_t> encode(const std::string& line, bool target) const {
    const auto& tokenizer = target ? trained_.tokenizers.target : trained_.tokenizers.source;
    return tokenizer->encode(trained_.config.data.lowercase ? lowercase(line) : line);
  }
  py::str decode(const std::vector<std::int32_t>& ids) const {
    return text_of(trained_.tokenizers.target->decode(ids));
  }

  Attention attention(const std::string& line, const std::string& target, const std::string& layer,
                      std::optional<std::int64_t> head) const {
    return computed(trained_.config.threads, [&](Team& team) {
      return Attention{attention_of(trained_, team, {line, target, layer, head}), head.has_value()};
    });
  }

  py::dict weights() const {
    py::dict all;
    for (const NamedTensor& weight : trained_.model->state())
      all[py::str(weight.name)] = view_of(weight.tensor.value());
    return all;
  }

  py::object metrics() const { return object_of(read_metrics(RunFolder{folder_})); }
  Page report(bool profile) const { return {report_of({folder_}, profile)}; }
  Figure curves() const { return {svg_file(arranged(report_curves({read_history(folder_)}), 2))}; }

  const std::string& folder() const { return folder_; }
  std::string config() const { return write_yaml(trained_.config); }
  py::str text() const {
    return text_of(fmt::format("heed.Run('{}', weights: {})", folder_, trained_.weights.text()));
  }

 private:
  std::string folder_;
  TrainedModel trained_;
};

/// Opens the run of a training. If a signal has stopped it, after its checkpoint, first calls the
/// handler that the process had before the training: Python's throws KeyboardInterrupt for Ctrl-C,
/// that of the system ends the process.
template <class Train>
std::unique_ptr<Run> run_after(const Train& train) {
  static std::mutex training;  // SignalRequests are those of the process
  TrainedRun trained;
  int signal = 0;
  {
    const py::gil_scoped_release released;
    const std::unique_lock lock(training, std::try_to_lock);
    if (!lock.owns_lock()) throw Error(Exit::failed, "this process is already training a run");
    const SignalRequests signals;  // from now on, also while data are loaded
    trained = train();
    signal = signals.stop();
  }
  if (signal != 0) {
    std::raise(signal);
    check_signals();
  }
  if (trained.status != 0)
    throw Error(static_cast<Exit>(trained.status), "stopped by {}; heed.resume('{}') continues it",
                signal_text(trained.status - 128), trained.run.path.string());
  return std::make_unique<Run>(trained.run.path, "", false, py::kwargs());
}

std::unique_ptr<Run> train(const fs::path& config, const std::optional<fs::path>& run,
                           bool overwrite, const py::kwargs& overrides) {
  TrainCommand options;
  options.config = config.string();
  options.overrides = overrides_of(overrides);
  options.to = run.value_or("").string();
  options.overwrite = overwrite;
  options.command = {"heed.train", options.config};
  std::ranges::copy(options.overrides, std::back_inserter(options.command));
  return run_after([&] { return train_new_run(options); });
}

std::unique_ptr<Run> resume(const fs::path& run, bool trust_plugins, const py::kwargs& overrides) {
  const ResumeCommand options{run.string(), overrides_of(overrides)};
  return run_after([&] {
    if (trust_plugins) trust_all_plugins();
    return TrainedRun{resume_run(options), {run}};
  });
}

GradcheckReport gradcheck(const fs::path& config, std::int64_t entries,
                          const py::kwargs& overrides) {
  const Lines all = overrides_of(overrides);
  const py::gil_scoped_release released;
  return gradcheck_of(read_config(config.string(), all), entries, check_signals);
}

}  // namespace
}  // namespace heed

PYBIND11_MODULE(heed, m) {
  using namespace heed;  // NOLINT
  using py::arg;
  m.doc() = "Trains Transformers from a YAML file, on the CPU.";
  m.attr("__version__") = version;
  write_messages_with(write_to_python);
  SignalRequests::second_ends_process = false;

  static const py::handle error_type =
      py::exception<Error>(m, "Error", PyExc_RuntimeError).release();
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const py::builtin_exception&) {  // of pybind11, such as ValueError
      throw;
    } catch (const std::exception& caught) {
      const Error found = error_of(caught);
      const py::object error = error_type(text_of(found.what()));
      error.attr("status") = static_cast<int>(found.code);
      PyErr_SetObject(error_type.ptr(), error.ptr());
    }
  });

  py::class_<Page>(m, "Page", "An HTML page.")
      .def_property_readonly("html", &Page::text)
      .def("save", &Page::save, arg("file"))
      .def("_repr_html_", &Page::html);
  py::class_<Figure>(m, "Figure", "A drawing.")
      .def_property_readonly("svg", &Figure::text)
      .def("save", &Figure::save, arg("file"), "Writes .svg, .png or .pdf.")
      .def("_repr_svg_", &Figure::text)
      .def("_repr_html_", &Figure::html);
  py::class_<GradcheckReport>(m, "Gradcheck", "The result of checking gradients.")
      .def_readonly("passed", &GradcheckReport::passed)
      .def_property_readonly(
          "parameters",
          [](const GradcheckReport& report) { return object_of(report.record.at("parameters")); })
      .def("__repr__", [](const GradcheckReport& report) { return text_of(report.text); });
  py::class_<Attention>(m, "Attention", "Attention weights of one line, by layer.")
      .def_property_readonly("weights", &Attention::weights, "[heads, queries, keys]")
      .def_property_readonly("queries", &Attention::queries)
      .def_property_readonly("keys", &Attention::keys)
      .def_property_readonly("output", &Attention::output)
      .def("figure", &Attention::figure, arg("view") = "map", arg("query") = py::none(),
           arg("threshold") = py::none())
      .def("page", &Attention::page)
      .def("_repr_html_", [](const Attention& a) { return a.page().html(); });
  py::class_<Run>(m, "Run", "A trained model with its run folder.")
      .def(py::init<const fs::path&, const std::string&, bool, const py::kwargs&>(), arg("folder"),
           arg("weights") = "", arg("trust_plugins") = false)
      .def("generate", &Run::generate, arg("lines"), arg("seed") = py::none())
      .def("nbest", &Run::nbest, arg("lines"), arg("n"), arg("seed") = py::none())
      .def("continuation", &Run::continuation, arg("prompt"), arg("seed") = py::none())
      .def("score", &Run::score, arg("sources"), arg("targets"))
      .def("encode", &Run::encode, arg("line"), arg("target") = false)
      .def("decode", &Run::decode, arg("ids"))
      .def("attention", &Run::attention, arg("line"), arg("target") = "", arg("layer") = "",
           arg("head") = py::none())
      .def("report", &Run::report, arg("profile") = false, WithoutGil())
      .def("curves", &Run::curves, WithoutGil())
      .def_property_readonly("weights", &Run::weights, "Read-only arrays by name.")
      .def_property_readonly("metrics", &Run::metrics, "The records of metrics.jsonl.")
      .def_property_readonly("config", &Run::config, "The config, as YAML.")
      .def_property_readonly("folder", &Run::folder)
      .def("__repr__", &Run::text);

  m.def("train", &train, arg("config"), py::kw_only(), arg("run") = py::none(),
        arg("overwrite") = false, "Trains a new run, and opens it.");
  m.def("resume", &resume, arg("run"), py::kw_only(), arg("trust_plugins") = false,
        "Continues a run from its newest checkpoint, and opens it.");
  m.def("gradcheck", &gradcheck, arg("config"), py::kw_only(), arg("entries") = 0,
        "Checks the gradient of every parameter in float64.");
}
