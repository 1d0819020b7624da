#pragma once
/// The attention of a trained model for one line, as pages and drawings.
#include <cstdint>
#include <optional>
#include <string>

#include "train/commands/trained_model.h"
#include "train/views/report/attention/page.h"

namespace heed {

struct AttentionRequest {
  std::string input;  ///< a line of the source; lm: a text
  /// Encoder-decoder models: the output; empty: the model generates it.
  std::string target;
  std::string layer;                 ///< dot-separated parts of layer names; empty: all layers
  std::optional<std::int64_t> head;  ///< head to show, counted from 0; unset: all
};

struct LineAttention {
  AttentionMaps maps;
  std::string output;  ///< the target, or the output of a model that is not a language model
  PageHead head;       ///< the top of the page
};

/// The attention weights of the chosen layers and heads. Prints a note if the model reads only the
/// end of the input. Throws Error(usage) if the request does not fit the model, or if there are no
/// tokens.
LineAttention attention_of(const TrainedModel& trained, Team& team,
                           const AttentionRequest& request);

/// The drawing of a view. Throws Error(usage) if an option does not fit the view, if one that it
/// requires is missing, if `maps` contains more layers than it can draw, if the row of the query does
/// not exist, or if it requires self-attention and `maps` contains none.
struct FigureRequest {
  std::string view = "map";           ///< kind of drawing: map, lines, neurons, graph, rollout
  std::optional<std::int64_t> query;  ///< neurons view: row of the query, from 0; unset: the last
  std::optional<double> threshold;    ///< graph and rollout views: minimum weight of an edge
};
Drawing attention_figure(const AttentionMaps& maps, bool one_head, const FigureRequest& request);

}  // namespace heed
