#!/usr/bin/env python3
"""A slow log-mel spectrogram that follows the formulas in the documentation of librosa.feature.melspectrogram,
librosa.filters.mel and librosa.mel_frequencies. Prints log_mel_golden.json.

    python3 log_mel_reference.py > log_mel_golden.json
"""
import cmath
import json
import math

RATE, HOP, BANDS = 8000, 80, 12


def mel(hertz):
    return hertz / (200 / 3) if hertz < 1000 else 1000 / (200 / 3) + math.log(hertz / 1000) / (math.log(6.4) / 27)


def hertz(m):
    return m * 200 / 3 if m < 15 else 1000 * math.exp(math.log(6.4) / 27 * (m - 15))


def triangle(low, middle, high, f):
    inside = (f - low) / (middle - low) if f <= middle else (high - f) / (high - middle)
    return 2 / (high - low) * max(0, inside)


def log_mel(window):
    samples = [0.5 * math.sin(0.05 * i + 0.0003 * i * i) + 0.1 * (i * 7919 % 100 / 100 - 0.5) for i in range(720)]
    edges = [hertz(mel(RATE / 2) * k / (BANDS + 1)) for k in range(BANDS + 2)]
    rows = []
    for begin in range(0, len(samples) - window + 1, HOP):
        frame = [s * (0.5 - 0.5 * math.cos(2 * math.pi * i / window))
                 for i, s in enumerate(samples[begin:begin + window])]
        power = [abs(sum(x * cmath.exp(-2j * math.pi * i * k / window) for i, x in enumerate(frame))) ** 2
                 for k in range(window // 2 + 1)]
        rows.append([math.log(max(1e-10, sum(triangle(*edges[m:m + 3], k * RATE / window) * p
                                             for k, p in enumerate(power)))) for m in range(BANDS)])
    return rows


# An even and an odd number of samples in a frame.
print(json.dumps({str(window): log_mel(window) for window in (200, 31)}))
