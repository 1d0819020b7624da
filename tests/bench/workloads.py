"""The workloads of configs/bench/ and the matrix FLOPs of a training step of each."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    name: str
    d: int          # d_model
    heads: int
    ff: int
    layers: int     # of a language model; of each side of an encoder-decoder
    vocab: int
    batch: int      # sequences or pairs
    length: int     # tokens of every sequence, on both sides
    lm: bool = False

    @property
    def tokens(self):
        """Target tokens of a step, as counted by tokens_per_s."""
        return self.batch * self.length

    def flops(self):
        """Matrix FLOPs of a step: 2mnk for each product forward, and twice that backward.

        Attention counts in full, masked or not; the output projection counts; embedding does not.
        Source and target have the same number of rows.
        """
        rows = self.tokens
        projections = 2 * rows * self.d * 4 * self.d           # q, k, v, out
        products = 2 * (2 * rows * self.length * self.d)       # q kT, p v
        feed_forward = 2 * (2 * rows * self.d * self.ff)
        layer = projections + products + feed_forward
        cross = projections + products
        body = self.layers * (layer if self.lm else 2 * layer + cross)
        return 3 * (body + 2 * rows * self.d * self.vocab)


WORKLOADS = {w.name: w for w in (
    Workload("nmt-toy", 64, 4, 256, 2, 64, 32, 16),
    Workload("nmt-small", 256, 4, 1024, 3, 8000, 64, 32),
    Workload("nmt-base", 512, 8, 2048, 6, 8000, 32, 32),
    Workload("gpt-tiny", 128, 4, 512, 4, 65, 12, 64, lm=True),
    Workload("gpt-baby", 384, 6, 1536, 6, 65, 16, 256, lm=True),
    Workload("gpt2-124m", 768, 12, 3072, 12, 50257, 4, 64, lm=True),
)}
