/// Drawings of models and tapes: their numbers equal those of `heed show` and of the tape.
#include <fmt/format.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <set>
#include <sstream>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/reduce.h"
#include "tests/train/small_run.h"
#include "tests/train/support.h"
#include "train/views/report/model_drawing.h"
#include "train/views/report/tape_drawing.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(drawings)

namespace {

using Xml = boost::property_tree::ptree;

Xml parsed(const std::string& svg) {
  std::istringstream text(svg);
  Xml tree;
  boost::property_tree::read_xml(text, tree);
  return tree.get_child("svg");
}

bool is(const Xml& element, const std::string& kind) {
  return element.get("<xmlattr>.class", "") == kind;
}

/// The content of a drawing of a model.
struct Numbers {
  std::map<std::string, std::string> shapes;  ///< name of the parameter → shape
  std::int64_t values = 0;                    ///< number of values, repeated blocks included
  std::vector<std::pair<std::int64_t, std::int64_t>> frames;  ///< (blocks, values per block)
  std::map<std::string, double> heights;                      ///< name of a box → y of its text
  int additions = 0, ties = 0;
};

std::int64_t product(const std::string& shape) {
  std::int64_t n = 1;
  std::istringstream text(shape.substr(1));
  for (std::int64_t size = 0; text >> size; text.ignore(1)) n *= size;
  return n;
}

/// Returns the number of values in a box, computed from the shapes in its title. Checks that the
/// box shows this number.
std::int64_t read_box(const Xml& box, Numbers& numbers) {
  std::istringstream title(box.get<std::string>("title"));
  std::int64_t listed = 0, printed = 0;
  for (std::string name, shape; title >> name && std::getline(title, shape);) {
    if (!shape.starts_with(" [")) break;  // a box without parameters
    BOOST_TEST(numbers.shapes.emplace(name, shape.substr(1)).second, name << " is drawn twice");
    listed += product(shape.substr(1));
  }
  for (const auto& [tag, text] : box) {
    if (tag == "text" && is(text, "name"))
      numbers.heights[text.data()] = text.get<double>("<xmlattr>.y");
    if (tag == "text" && text.data().ends_with(" parameters")) printed = std::stoll(text.data());
  }
  BOOST_TEST(listed == printed, box.get<std::string>("title"));
  return listed;
}

std::int64_t read(const Xml& group, Numbers& numbers) {
  std::int64_t values = 0;
  for (const auto& [tag, element] : group) {
    numbers.ties += tag == "path" && is(element, "line tie") ? 1 : 0;
    numbers.additions += tag == "circle" ? 1 : 0;
    if (tag != "g") continue;
    if (is(element, "box")) {
      values += read_box(element, numbers);
    } else if (is(element, "blocks")) {
      std::int64_t n = 0, printed = 0;
      for (const auto& [kind, text] : element) {
        if (kind != "text") continue;
        if (text.data().ends_with(" ×")) n = std::stoll(text.data());
        if (text.data().find_first_not_of("0123456789") == std::string::npos)
          printed = std::stoll(text.data());
      }
      const std::int64_t each = read(element, numbers);
      BOOST_TEST(each == printed);
      numbers.frames.emplace_back(n, each);
      values += n * each;
    } else {
      values += read(element, numbers);
    }
  }
  return values;
}

Numbers numbers_of(const Config& config, const Vocabulary& vocabulary) {
  Numbers numbers;
  numbers.values = read(parsed(model_drawing(config, vocabulary)), numbers);
  return numbers;
}

/// Checks that every parameter is drawn with its shape and that the drawing contains the right
/// number of values. Of repeated blocks, only the first is drawn.
void check_drawing(const Config& config, const Vocabulary& vocabulary) {
  const Numbers drawn = numbers_of(config, vocabulary);
  std::int64_t values = 0;
  std::size_t repeated = 0;
  for (const NamedTensor& p : build_uninitialised(config, vocabulary.sizes)->parameters()) {
    values += p.tensor.size();
    const std::size_t layers = p.name.find(".layers.");
    if (layers != std::string::npos && !p.name.substr(layers).starts_with(".layers.0.") &&
        !p.name.substr(0, layers).ends_with("input")) {
      ++repeated;
      continue;
    }
    const auto at = drawn.shapes.find(p.name);
    BOOST_TEST((at != drawn.shapes.end()), p.name << " is not drawn");
    if (at != drawn.shapes.end()) BOOST_TEST(at->second == fmt::format("{}", p.tensor.shape()));
  }
  BOOST_TEST(values == drawn.values);
  BOOST_TEST((repeated > 0 || drawn.frames.front().first == 1));
}

const Vocabulary vocabulary{{123, 45, false}, "made up"}, one_table{{77, 77, true}, "made up"};

Config shipped(const std::string& name, std::vector<std::string> overrides = {}) {
  return read_config(HEED_SOURCE_DIR "/configs/" + name + ".yaml", std::move(overrides));
}

}  // namespace

BOOST_AUTO_TEST_CASE(drawings_of_shipped_models_contain_all_parameters) {
  int configs = 0;
  for (const auto& file : std::filesystem::directory_iterator(HEED_SOURCE_DIR "/configs")) {
    const std::string name = file.path().stem();
    if (file.path().extension() != ".yaml" || name == "reference") continue;
    BOOST_TEST_CONTEXT(name) {
      check_drawing(shipped(name), vocabulary);
      check_drawing(shipped(name), one_table);
    }
    ++configs;
  }
  BOOST_TEST(configs > 15);
}

BOOST_AUTO_TEST_CASE(drawings_of_model_variants_contain_all_parameters) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"dates", {"model.block=parallel", "model.norm=post"}},
      {"dates", {"model.norm=none", "model.tie_embeddings=false"}},
      {"dates", {"model.residual=false", "model.norm_kind=rms", "model.layers.encoder=1"}},
      {"dates", {"model.positions=learned", "model.attention.kv_heads=2"}},
      {"dates", {"model.positions=relative_t5", "model.activation=swiglu"}},
      {"dates", {"model.positions=relative_xl", "model.attention.pattern=window"}},
      {"dates", {"model.positions=relative_shaw", "model.attention.pattern=topk"}},
      {"dates", {"model.mixer=lstm", "model.positions=none"}},
      {"dates", {"model.mixer=conv"}},
      {"tinyshakespeare", {"model.mixer=gru", "model.positions=none"}},
      {"tinyshakespeare", {"model.memory=64", "model.positions=relative_xl"}},
      {"grammar", {"model.attention.pattern=bigbird", "model.norm=post", "model.norm_kind=batch"}},
      {"vit-mnist", {"data.image.patch=4", "model.front_end.kind=linear", "model.pool=first"}},
      {"captions", {"data.image.patch=1", "model.front_end.kind=conv"}},
      {"tones", {"data.features.stack=1", "model.front_end.kind=conv", "model.front_end.layers=3"}},
      {"swin-mnist", {"model.norm=post", "model.final_norm=false", "model.block=parallel"}},
  };
  for (const auto& [name, overrides] : cases) {
    BOOST_TEST_CONTEXT(name << " " << overrides.front()) {
      check_drawing(shipped(name, overrides), vocabulary);
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_in_a_drawing_equal_those_of_heed_show) {
  const Config config = small_run();
  const ModelSummary summary = summarize_model(config, std::nullopt);
  const Numbers drawn = numbers_of(config, summary.vocabulary);
  BOOST_TEST(drawn.values == summary.parameters);
  std::map<std::string, std::int64_t> layers;
  for (const LayerSummary& layer : summary.layers) {
    layers[layer.name] = layer.values;
    for (const std::string& parameter : layer.parameters) {  // "weight [96, 96]"
      const std::size_t space = parameter.find(' ');
      const auto at = drawn.shapes.find(layer.name + "." + parameter.substr(0, space));
      BOOST_TEST((at != drawn.shapes.end() && at->second == parameter.substr(space + 1)),
                 layer.name + "." + parameter);
    }
  }
  const std::vector<std::pair<std::int64_t, std::int64_t>> frames{
      {1, layers.at("encoder.layers.0")}, {1, layers.at("decoder.layers.0")}};
  BOOST_TEST((drawn.frames == frames));
}

BOOST_AUTO_TEST_CASE(sublayers_residuals_and_ties_are_drawn_as_configured) {
  // y grows downwards, and data flow upwards: earlier layers have larger y.
  const auto lm = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"model.layers=1", "model.positions=none",
                                       "model.final_norm=true", "model.norm_kind=rms"});
    return numbers_of(shipped("tinyshakespeare", overrides), one_table);
  };
  const Numbers pre = lm({"model.norm=pre"}), post = lm({"model.norm=post"}),
                parallel = lm({"model.block=parallel"}), bare = lm({"model.residual=false"});
  const std::string mixer = "Causal self-attention", feed = "Feed-forward";
  for (const Numbers* drawn : {&pre, &post, &bare})
    BOOST_TEST(drawn->heights.at(mixer) > drawn->heights.at(feed));
  BOOST_TEST(std::abs(parallel.heights.at(mixer) - parallel.heights.at(feed)) < 20);
  BOOST_TEST(pre.additions == 2);
  BOOST_TEST(post.additions == 2);
  BOOST_TEST(parallel.additions == 2);  // one for the two sublayers, one for the residual
  BOOST_TEST(bare.additions == 0);
  BOOST_TEST(pre.ties == 1);
  BOOST_TEST(lm({"model.tie_embeddings=false"}).ties == 0);
  // With one vocabulary, the output and both embedding tables are tied. With two vocabularies, only
  // the output and the target's table are tied.
  BOOST_TEST(numbers_of(shipped("dates"), one_table).ties == 2);
  BOOST_TEST(numbers_of(shipped("dates"), vocabulary).ties == 1);
}

BOOST_AUTO_TEST_CASE(drawing_of_a_tape_contains_all_nodes_and_edges) {
  const Tensor w = Tensor::variable(Array::full({2, 3}, 1)), x(Array::full({2, 3}, 2));
  const Tensor y = mul(w, x), loss = sum(add(y, mul(y, w)));
  const Xml svg = parsed(tape_drawing(loss, {{"encoder.layers.0.w<", w}}, {"head & line"}));
  std::multiset<std::string> titles;
  int arrows = 0;
  for (const auto& [tag, element] : svg) {
    if (tag == "g") titles.insert(element.get<std::string>("title"));
    arrows += tag == "path" && is(element, "edge") ? 1 : 0;
  }
  const std::multiset<std::string> expected{"Add [2, 3]", "Mul [2, 3]", "Mul [2, 3]", "Reduce []",
                                            "encoder.layers.0.w< [2, 3]"};
  BOOST_TEST(titles == expected, boost::test_tools::per_element());
  BOOST_TEST(arrows == 6);  // edges from w: 2, y: 2, the second product: 1, the sum: 1
}

BOOST_AUTO_TEST_CASE(tape_of_more_than_400_nodes_is_refused) {
  const Tensor w = Tensor::variable(Array::full({1}, 1));
  Tensor y = w;
  for (std::size_t i = 1; i < max_drawn_nodes; ++i) y = add(y, y);
  BOOST_TEST(!tape_drawing(y, {}, {}).empty());
  y = add(y, y);
  HEED_CHECK_ERROR(Exit::usage, "the tape has 401 nodes, and a drawing shows at most 400",
                   tape_drawing(y, {}, {}));
  HEED_CHECK_ERROR(Exit::failed, "depends on no variable",
                   tape_drawing(Tensor(Array::full({1}, 1)), {}, {}));
}

BOOST_AUTO_TEST_SUITE_END()
