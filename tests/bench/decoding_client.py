"""The part of `decoding` that runs in the Python environment of tests/clients/run: CTranslate2.

    decoding_client.py EXPORT SOURCE --type T --beam N --length N --penalty X --inter N --intra N --batch SIZE:TYPE …

Translates the lines of SOURCE once for each --batch (32:examples, 2048:tokens), and prints a JSON object. `seconds` are those
of each call of translate_batch, without tokenisation and without loading; `outputs` are those of the last call.
"""
import argparse
import gzip
import json
import pathlib
import time


def lines_of(path):
    """The lines of a text, which may be compressed."""
    data = pathlib.Path(path).read_bytes()
    return (gzip.decompress(data) if path.endswith(".gz") else data).decode().splitlines()


def translate(options):
    """The report of CTranslate2."""
    import ctranslate2
    import tokenizers
    begin = time.monotonic()
    tokenizer = tokenizers.Tokenizer.from_file(f"{options.export}/tokenizer.json")
    target = pathlib.Path(options.export, "target_tokenizer.json")
    writer = tokenizers.Tokenizer.from_file(str(target)) if target.exists() else tokenizer
    model = ctranslate2.Translator(options.export, compute_type=options.type, inter_threads=options.inter,
                                   intra_threads=options.intra)
    loaded = time.monotonic()
    sources = [e.tokens for e in tokenizer.encode_batch(lines_of(options.source))]
    seconds = []
    for batch in options.batch:
        size, kind = batch.split(":")
        start = time.monotonic()
        found = model.translate_batch(sources, beam_size=options.beam, max_decoding_length=options.length, disable_unk=True,
                                      length_penalty=options.penalty, max_batch_size=int(size), batch_type=kind)
        seconds.append(time.monotonic() - start)
    best = [f.hypotheses[0] for f in found]
    return {"load_seconds": loaded - begin, "seconds": seconds, "input_tokens": sum(map(len, sources)),
            "output_tokens": sum(map(len, best)), "version": f"CTranslate2 {ctranslate2.__version__}",
            "outputs": [writer.decode(list(map(writer.token_to_id, pieces))) for pieces in best]}


def main():
    """Prints the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export")
    parser.add_argument("source")
    parser.add_argument("--type", default="float32")
    parser.add_argument("--batch", action="append", required=True)
    for name, kind in (("--beam", int), ("--length", int), ("--penalty", float), ("--inter", int), ("--intra", int)):
        parser.add_argument(name, type=kind, required=True)
    print(json.dumps(translate(parser.parse_args())))


if __name__ == "__main__":
    main()
