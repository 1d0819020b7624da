#!/usr/bin/python3
"""Loads a heed checkpoint into torch.nn.Transformer by name and compares the logits.

    load_into_torch.py --model RUN/best/model.safetensors --case CASE.safetensors

CASE contains token ids and heed's logits; README.md describes its format. The names of the weights
must match one to one. Exit codes: 0: the logits agree; 1: they differ; 2: wrong usage; 3: the weights or
the case do not fit.
"""
import argparse
import json
import sys

import torch

import tensorfile
from model import Seq2Seq

SETTINGS = {"d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "activation", "norm",
            "norm_eps", "final_norm", "positions", "max_positions", "tie_embeddings",
            "scale_embeddings"}
REQUIRED = {"d_model", "heads", "d_ff", "encoder_layers", "decoder_layers"}


class Misfit(Exception):
    pass


def settings_of(metadata):
    """The model's settings by their YAML keys, from the strings in the metadata."""
    missing = REQUIRED - metadata.keys()
    if missing:
        raise Misfit(f"the case's metadata lacks {', '.join(sorted(missing))}")
    words = {"activation", "norm", "positions"}
    return {key: metadata[key] if key in words else json.loads(metadata[key])
            for key in SETTINGS & metadata.keys()}


def build(weights, settings):
    """The PyTorch model with these weights, whose shapes determine the vocabulary sizes."""
    tied = settings.get("tie_embeddings", True)
    names = ["embedding.weight"] if tied else [
        "source_embedding.weight", "target_embedding.weight", "output.weight"]
    absent = [name for name in names if name not in weights]
    if absent:
        raise Misfit(f"the checkpoint lacks {', '.join(absent)}; it contains " + ", ".join(weights))
    model = Seq2Seq(len(weights[names[0]]), len(weights[names[-1]]),
                    output_bias="output.bias" in weights, **settings)
    places = model.state_dict()
    problems = [f"missing: {name}" for name in places if name not in weights]
    problems += [f"extra: {name}" for name in weights if name not in places]
    problems += [f"shape of {name}: {list(weights[name].shape)}, expected {list(place.shape)}"
                 for name, place in places.items()
                 if name in weights and weights[name].shape != place.shape]
    if problems:
        raise Misfit("\n".join(problems))
    model.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()}, strict=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="heed's model.safetensors")
    parser.add_argument("--case", required=True, help="token ids, logits and settings")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="maximum difference of a logit (default: 1e-4)")
    arguments = parser.parse_args()
    weights, _ = tensorfile.read(arguments.model)
    case, metadata = tensorfile.read(arguments.case)
    try:
        model = build(weights, settings_of(metadata)).train()  # avoids PyTorch's fast path; dropout is 0
        ids = [torch.from_numpy(case[name]).long()
               for name in ("source", "source_offsets", "target_in", "target_offsets")]
        logits = torch.from_numpy(case["logits"])
    except KeyError as error:
        print(f"the case lacks {error}", file=sys.stderr)
        return 3
    except Misfit as problem:
        print(problem, file=sys.stderr)
        return 3
    with torch.no_grad():
        single = model.float().batch_logits(*ids)
        double = model.double().batch_logits(*ids)
    if single.shape != logits.shape:
        print(f"shape of the logits: {list(logits.shape)}, expected {list(single.shape)}", file=sys.stderr)
        return 3
    difference = (logits - single).abs().max().item()
    exact = (logits - double).abs().max().item()
    agree = difference <= arguments.tolerance  # false for NaN
    print(json.dumps({"weights": len(weights), "rows": len(logits), "agree": agree,
                      "difference": difference, "difference_to_float64": exact,
                      "largest_logit": single.abs().max().item()}))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
