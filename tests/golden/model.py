"""heed's encoder-decoder in PyTorch: torch.nn.Transformer between embeddings and an output layer."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from cases import rows_of
from layers import ACTIVATIONS, sinusoids


class Seq2Seq(nn.Transformer):
    """Weights have heed's names: the names of nn.Transformer; embedding.weight or, if untied,
    source_embedding.weight, target_embedding.weight, output.weight and, with output_bias, output.bias;
    and, for learned positions, source_positions.weight and target_positions.weight.
    """

    def __init__(self, source_vocab, target_vocab, d_model, heads, d_ff, encoder_layers,
                 decoder_layers, activation="relu", norm="pre", norm_eps=1e-5, tie_embeddings=True,
                 scale_embeddings=True, positions="sinusoidal", max_positions=1024,
                 output_bias=False, final_norm=True):
        super().__init__(d_model, heads, encoder_layers, decoder_layers, d_ff, dropout=0.0,
                         activation=ACTIVATIONS[activation], layer_norm_eps=norm_eps,
                         batch_first=True, norm_first=norm == "pre")
        if not final_norm:
            self.encoder.norm = self.decoder.norm = None
        if tie_embeddings:
            self.embedding = nn.Embedding(target_vocab, d_model)
        else:
            self.source_embedding = nn.Embedding(source_vocab, d_model)
            self.target_embedding = nn.Embedding(target_vocab, d_model)
            self.output = nn.Linear(d_model, target_vocab, bias=output_bias)
        if positions == "learned":
            self.source_positions = nn.Embedding(max_positions, d_model)
            self.target_positions = nn.Embedding(max_positions, d_model)
        self.tied, self.positions = tie_embeddings, positions
        self.scale = math.sqrt(d_model) if scale_embeddings else 1.0

    def embed(self, ids, side):
        table = self.embedding if self.tied else getattr(self, f"{side}_embedding")
        x = table(ids) * self.scale
        if self.positions == "sinusoidal":
            return x + sinusoids(len(ids), x.shape[1]).to(x.dtype)
        if self.positions == "learned":
            return x + getattr(self, f"{side}_positions").weight[:len(ids)]
        return x

    def forward(self, source, target_in):
        """Logits [len(target_in), vocab] of one pair of token sequences."""
        memory = self.encoder(self.embed(source, "source")[None])
        length = len(target_in)
        mask = torch.full((length, length), float("-inf"), dtype=memory.dtype).triu(1)
        x = self.decoder(self.embed(target_in, "target")[None], memory, tgt_mask=mask)[0]
        return F.linear(x, self.embedding.weight) if self.tied else self.output(x)

    def batch_logits(self, source, source_offsets, target_in, target_offsets):
        """Logits of concatenated sequences, as rows in the order of target_in."""
        return torch.cat([self(s, t) for s, t in zip(rows_of(source, source_offsets),
                                                     rows_of(target_in, target_offsets))])
