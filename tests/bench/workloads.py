"""The workloads of configs/bench/, and the matrix FLOPs of one training step of each."""
from dataclasses import dataclass

TRANSLATION, LANGUAGE_MODEL, BERT, VIT = "translation", "language model", "bert", "vit"


@dataclass(frozen=True)
class Workload:
    name: str
    d: int          # d_model
    heads: int
    ff: int
    layers: int     # number of layers per side; an encoder-decoder has two sides
    vocab: int      # number of tokens; VIT: number of labels
    batch: int      # number of sequences, pairs or images
    length: int     # number of tokens per sequence, on both sides; VIT: number of patches plus 1 (class token)
    kind: str = TRANSLATION
    patch: int = 0          # VIT: number of values per patch
    relative: bool = False  # T5's biases in place of sinusoids

    @property
    def tokens(self):
        """Number of labels in a step, as counted by tokens_per_s: every seventh token in BERT, one per image in ViT."""
        rows = self.batch * self.length
        return {BERT: (rows + 6) // 7, VIT: self.batch}.get(self.kind, rows)

    def flops(self):
        """Matrix FLOPs of a step: 2mnk for each product forward, and twice that backward.

        Attention counts in full, including masked scores. The output projection counts, the embedding does not. Source
        and target have the same number of rows. The pixels of ViT's patches have no gradient.
        """
        rows = self.batch * self.length
        projections = 2 * rows * self.d * 4 * self.d           # q, k, v, out
        products = 2 * (2 * rows * self.length * self.d)       # q kT, p v
        feed_forward = 2 * (2 * rows * self.d * self.ff)
        layer = projections + products + feed_forward
        cross = projections + products
        body = self.layers * (2 * layer + cross if self.kind == TRANSLATION else layer)
        return 3 * (body + 2 * self.tokens * self.d * self.vocab) + 2 * (2 * rows * self.patch * self.d)


WORKLOADS = {w.name: w for w in (
    Workload("nmt-toy", 64, 4, 256, 2, 64, 32, 16),
    Workload("nmt-small", 256, 4, 1024, 3, 8000, 64, 32),
    Workload("nmt-base", 512, 8, 2048, 6, 8000, 32, 32),
    Workload("gpt-tiny", 128, 4, 512, 4, 65, 12, 64, LANGUAGE_MODEL),
    Workload("gpt-baby", 384, 6, 1536, 6, 65, 16, 256, LANGUAGE_MODEL),
    Workload("gpt2-124m", 768, 12, 3072, 12, 50257, 4, 64, LANGUAGE_MODEL),
    Workload("bert-small", 256, 4, 1024, 4, 8000, 32, 128, BERT),
    Workload("t5-small", 512, 8, 2048, 6, 32128, 8, 64, relative=True),
    Workload("vit-tiny", 96, 4, 384, 4, 13, 96, 50, VIT, patch=16),
)}
