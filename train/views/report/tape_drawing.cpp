#include "train/views/report/tape_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "train/views/draw/svg.h"

HEED_BEGIN

namespace {

constexpr double box_height = 28, row_height = 58, box_gap = 10, margin = 12;
constexpr std::string_view style =
    R"(<style>.edge{fill:none;stroke:var(--quiet)}.leaf{rx:12px}</style>
)";

struct Link {
  std::size_t item;
  double port = 0;  ///< position where the arrow enters, from −1/2 to 1/2 of the width
};

/// A node or, without a name, a point where the arrows of a node pass a row.
struct Item {
  std::string name, shape;
  std::array<std::string, 2> label = {};
  bool leaf = false;
  std::size_t row = 0;
  std::vector<Link> above = {}, below = {};
  double x = 0, width = 8;
  double place = 0;  ///< index in its row
};

/// An arrow from a node to an input of an op: the items on its way, including both ends.
using Arrow = std::vector<Link>;

/// A label of two lines: "encoder.layers.0" and "norm1.weight [96]", or the name and the shape.
std::array<std::string, 2> label_of(const std::string& name, const std::string& shape) {
  const std::size_t layers = name.find(".layers.");
  if (layers == std::string::npos) return {name, shape};
  const std::size_t end = name.find('.', layers + 8);
  return {name.substr(0, end), name.substr(end + 1) + " " + shape};
}

class TapeDrawing {
 public:
  TapeDrawing(const Tensor& result, const Parameters& parameters) {
    for (const NamedTensor& p : parameters) names_.emplace(p.tensor.node().get(), p.name);
    collect(result.node().get());
    for (const Node* node : nodes_) add_item(*node);
    place_leaves();
    for (const Node* node : nodes_) add_arrows(*node);
    fill_rows();
    find_order();
    for (int sweep = 0; sweep < 400; ++sweep) place_rows(sweep % 2 == 0);
  }

  std::string file(const std::vector<std::string>& head) {
    double left = std::numeric_limits<double>::max(), right = 0, top = margin;
    for (const Item& item : items_) left = std::min(left, item.x - item.width / 2);
    for (Item& item : items_) {
      item.x -= left - 2 * margin;
      right = std::max(right, item.x + item.width / 2 + 2 * margin);
    }
    std::string body(style);
    for (const std::string& line : head) {
      top += 15;
      body += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", margin, top, xml_text(line));
      right = std::max(right, 6 * static_cast<double>(character_count(line)));
    }
    top_ = top + 2 * margin;
    return svg_file(
        {right + margin,
         top_ + row_height * static_cast<double>(rows_.size() - 1) + box_height + margin,
         body + arrows() + boxes()});
  }

 private:
  /// Collects the nodes that `last` depends on, in the order of the tape.
  void collect(const Node* last) {
    std::vector<const Node*> found{last};
    index_.emplace(last, 0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const NodeRef& input : found[i]->inputs())
        if (input && index_.emplace(input.get(), 0).second) found.push_back(input.get());
    }
    if (found.size() > max_drawn_nodes) {
      throw Error(Exit::usage,
                  "--tape: the tape has {} nodes, and a drawing shows at most {}. Draw a "
                  "smaller model, for example with model.layers=1 (widths, lengths and the "
                  "vocabulary size do not change the number of nodes)",
                  found.size(), max_drawn_nodes);
    }
    std::ranges::stable_sort(found, {}, &Node::order);
    for (std::size_t i = 0; i < found.size(); ++i) index_[found[i]] = i;
    nodes_ = std::move(found);
  }

  void add_item(const Node& node) {
    const auto known = names_.find(&node);
    Item item{known != names_.end() ? known->second
              : node.leaf()         ? "variable"
                                    : op_name(node.op()),
              fmt::format("{}", node.shape())};
    item.leaf = node.leaf();
    item.label = label_of(item.name, item.shape);
    for (const NodeRef& input : node.inputs())
      if (input) item.row = std::max(item.row, items_[index_[input.get()]].row + 1);
    for (const std::string& line : item.label)
      item.width = std::max(item.width, 12 + 5.6 * static_cast<double>(character_count(line)));
    items_.push_back(std::move(item));
  }
  /// Places each leaf in the row above the first op that reads it.
  void place_leaves() {
    std::unordered_map<const Node*, std::size_t> first;
    for (const Node* node : nodes_) {
      for (const NodeRef& input : node->inputs()) {
        if (!input || !input->leaf()) continue;
        const std::size_t row = items_[index_[node]].row - 1;
        const auto [at, is_new] = first.emplace(input.get(), row);
        at->second = std::min(at->second, row);
      }
    }
    for (const auto& [leaf, row] : first) items_[index_[leaf]].row = row;
  }

  void add_arrows(const Node& node) {
    const std::size_t to = index_[&node], last = items_[to].row, n = node.inputs().size();
    for (std::size_t i = 0; i < n; ++i) {
      if (!node.inputs()[i]) continue;
      const std::size_t from = index_[node.inputs()[i].get()];
      Arrow arrow{{from}};
      for (std::size_t row = items_[from].row + 1; row < last; ++row)
        arrow.push_back({passing(from, row)});
      arrow.push_back({to, (static_cast<double>(i) + 1) / static_cast<double>(n + 1) - 0.5});
      for (std::size_t k = 1; k < arrow.size(); ++k) {
        items_[arrow[k - 1].item].below.push_back(arrow[k]);
        items_[arrow[k].item].above.push_back(arrow[k - 1]);
      }
      arrows_.push_back(std::move(arrow));
    }
  }
  /// The item where the arrows of a node pass a row.
  std::size_t passing(std::size_t from, std::size_t row) {
    const auto [at, is_new] = passing_.emplace(std::pair(from, row), items_.size());
    if (is_new) items_.emplace_back().row = row;
    return at->second;
  }

  void fill_rows() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      rows_.resize(std::max(rows_.size(), items_[i].row + 1));
      rows_[items_[i].row].push_back(i);
    }
    for (const auto& row : rows_) place(row, [](const Item&) { return Mean{0, 1}; });
  }
  /// The weight of the horizontal distance between two linked items in the layout: small for arrows
  /// from leaves, large between points where an arrow passes rows.
  static double pull(const Item& a, const Item& b) {
    if (a.leaf || b.leaf) return 0.1;
    return a.name.empty() && b.name.empty() ? 4 : 1;
  }
  /// A weighted mean of the positions of arrow ends: the weighted sum and the sum of the weights.
  struct Mean {
    double sum = 0, weight = 0;
  };
  /// Places the items in the order of `row` such that the sum of weighted squared distances from
  /// the positions that `wanted` returns is minimal. Pools neighbours that would overlap.
  template <class Wanted>
  void place(const std::vector<std::size_t>& row, Wanted wanted) {
    struct Pool {
      Mean of;
      std::size_t items;
      double mean() const { return of.sum / of.weight; }
    };
    std::vector<Pool> pools;
    std::vector<double> offsets;
    for (const std::size_t i : row) {
      const Item& item = items_[i];
      offsets.push_back(offsets.empty() ? 0
                                        : offsets.back() + box_gap + item.width / 2 +
                                              items_[row[offsets.size() - 1]].width / 2);
      const Mean mean = wanted(item);
      pools.push_back({{mean.sum - mean.weight * offsets.back(), mean.weight}, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        Pool& pool = pools.back();
        pool = {{pool.of.sum + last.of.sum, pool.of.weight + last.of.weight},
                pool.items + last.items};
      }
    }
    std::size_t at = 0;
    for (const Pool& pool : pools)
      for (std::size_t k = 0; k < pool.items; ++k, ++at) {
        items_[row[at]].x = pool.mean() + offsets[at];
        items_[row[at]].place = static_cast<double>(at);
      }
  }
  /// Chooses the order with the fewest crossings among the results of barycentre sweeps and
  /// exchanges of neighbours.
  void find_order() {
    std::vector<std::vector<std::size_t>> best = rows_;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (int sweep = 0; sweep < 12; ++sweep) {
      order_rows(sweep % 2 == 0);
      for (int round = 0; round < 20 && exchange_neighbours(); ++round) {
      }
      std::int64_t now = 0;
      for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i)
          for (std::size_t j = i + 1; j < row.size(); ++j)
            now += crossings(items_[row[i]].below, items_[row[j]].below);
      if (now >= fewest) continue;
      fewest = now;
      best = rows_;
    }
    rows_ = best;
  }
  /// The number of crossings between the arrows above (or below) an item and those above (or below)
  /// an item to its right.
  std::int64_t crossings(const std::vector<Link>& left, const std::vector<Link>& right) const {
    const auto place = [&](const Link& link) { return items_[link.item].place + 0.9 * link.port; };
    std::int64_t count = 0;
    for (const Link& a : left)
      for (const Link& b : right) count += place(a) > place(b) ? 1 : 0;
    return count;
  }
  /// Exchanges neighbours if this removes crossings. Returns whether it exchanged any.
  bool exchange_neighbours() {
    bool fewer = false;
    for (auto& row : rows_) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) {
        Item &a = items_[row[i]], &b = items_[row[i + 1]];
        if (crossings(a.above, b.above) + crossings(a.below, b.below) <=
            crossings(b.above, a.above) + crossings(b.below, a.below))
          continue;
        std::swap(row[i], row[i + 1]);
        std::swap(a.place, b.place);
        fewer = true;
      }
    }
    return fewer;
  }
  void order_rows(bool downwards) {
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      std::vector<std::size_t>& row = rows_[downwards ? k : rows_.size() - 1 - k];
      const auto wanted = [&](const Item& item) {
        Mean mean;
        for (const Link& link : downwards ? item.above : item.below) {
          mean.sum += items_[link.item].x + link.port * items_[link.item].width;
          mean.weight += 1;
        }
        return mean.weight > 0 ? mean : Mean{item.x, 1};
      };
      std::ranges::stable_sort(row, {}, [&](std::size_t i) {
        const Mean mean = wanted(items_[i]);
        return mean.sum / mean.weight;
      });
      place(row, wanted);
    }
  }
  /// A step of descent on the sum of pull · (horizontal distance)² over all arrows.
  void place_rows(bool downwards) {
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      place(rows_[downwards ? k : rows_.size() - 1 - k], [&](const Item& item) {
        Mean mean{1e-6 * item.x, 1e-6};
        for (const auto* links : {&item.above, &item.below}) {
          for (const Link& link : *links) {
            const double weight = pull(item, items_[link.item]);
            mean.sum += weight * items_[link.item].x;
            mean.weight += weight;
          }
        }
        return mean;
      });
    }
  }

  double y_of(const Item& item) const { return top_ + row_height * static_cast<double>(item.row); }

  std::string arrows() const {
    std::string body;
    for (const Arrow& arrow : arrows_) {
      double x = items_[arrow[0].item].x, y = y_of(items_[arrow[0].item]) + box_height;
      std::string path = svg("M{} {}", x, y);
      for (const Link& link : std::span(arrow).subspan(1)) {
        const Item& to = items_[link.item];
        const double middle = (y + y_of(to)) / 2;
        path += svg("C{} {}", x, middle);
        x = to.x + link.port * to.width;
        y = y_of(to);
        path += svg(" {} {} {} {}", x, middle, x, y);
        if (to.name.empty()) path += "V" + svg_number(y += box_height);
      }
      body += fmt::format("<path class=\"edge\" d=\"{}\"/>\n", path);
    }
    return body;
  }
  std::string boxes() const {
    std::string body;
    for (const Item& item : items_) {
      if (item.name.empty()) continue;
      const double y = y_of(item);
      body +=
          svg("<g class=\"box\"><title>{} {}</title>\n<rect class=\"heat {}\" x=\"{}\" y=\"{}\" "
              "width=\"{}\" height=\"{}\"/>\n",
              xml_text(item.name), xml_text(item.shape), item.leaf ? "leaf l1" : "l3",
              item.x - item.width / 2, y, item.width, box_height);
      for (std::size_t i = 0; i < 2; ++i)
        body += svg("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", item.x,
                    y + 12 + 12 * static_cast<double>(i), xml_text(item.label[i]));
      body += "</g>\n";
    }
    return body;
  }

  std::unordered_map<const Node*, std::string> names_;
  std::unordered_map<const Node*, std::size_t> index_;  ///< index of each node's item in items_
  std::vector<const Node*> nodes_;
  std::vector<Item> items_;
  std::vector<Arrow> arrows_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> passing_;
  std::vector<std::vector<std::size_t>> rows_;
  double top_ = 0;
};

}  // namespace

std::string tape_drawing(const Tensor& result, const Parameters& parameters,
                         const std::vector<std::string>& head) {
  if (!result.needs_grad()) fail("[tape_drawing] the result depends on no variable");
  return TapeDrawing(result, parameters).file(head);
}

HEED_END
