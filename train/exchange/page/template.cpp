#include "train/exchange/page/template.h"

#include <fmt/format.h>

#include "autograd/io/formats/base64.h"
#include "autograd/io/formats/gzip.h"

namespace heed {

namespace {

std::string element_start(const std::string& name) {
  return fmt::format("<script type=\"text/plain\" data-file=\"{}\">", name);
}
constexpr std::string_view element_end = "</script>\n";

}  // namespace

std::string page_element(const std::string& name, std::string_view bytes) {
  return fmt::format("{}{}{}", element_start(name), base64(pack_gzip(bytes)), element_end);
}

std::optional<std::string> page_file(std::string_view page, const std::string& name) {
  const std::string start = element_start(name);
  const std::size_t at = page.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  page.remove_prefix(at + start.size());
  const std::optional<std::string> packed = from_base64(page.substr(0, page.find(element_end)));
  if (!packed) return std::nullopt;
  return unpack_gzip(*packed, 1U << 30, name);
}

const std::string_view page_mark =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"heed export --to page\">\n";

// The policy makes the browser refuse every request to a network. Data of data: and blob: URLs are in the page.
const std::string_view page_start =
    R"html(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; style-src 'unsafe-inline'; connect-src data:; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>heed</title>
<style>
:root{color-scheme:light dark;--ink:#1f2328;--quiet:#5d6670;--line:#c9ced6;--back:#fff;--field:#f6f8fa;--accent:#0b5fa5;--on-accent:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--quiet:#9aa4b0;--line:#3d444d;--back:#0f1216;--field:#181c22;--accent:#5cb3ff;--on-accent:#0f1216}}
*{box-sizing:border-box}[hidden]{display:none!important}
body{margin:3em auto;max-width:46em;padding:0 1.2em;font:16px/1.5 system-ui,sans-serif;background:var(--back);color:var(--ink);overflow-wrap:anywhere}
h1{font-size:1.6em;line-height:1.2;margin:0}p{margin:.4em 0 1em}.quiet,footer{color:var(--quiet);font-size:.875em}
form{display:grid;gap:1em}label>span,.name{display:block;font-weight:600;margin-bottom:.3em}
textarea,#output{width:100%;min-height:6em;padding:.7em .8em;border:1px solid var(--line);border-radius:8px;background:var(--field);color:inherit;font:inherit;resize:vertical}
#output{white-space:pre-wrap;min-height:4em}#output:empty::before{content:"…";color:var(--quiet)}
.row{display:flex;flex-wrap:wrap;gap:.8em 1.5em;align-items:center}.row label{display:flex;flex-wrap:wrap;gap:.5em;align-items:center}.row span{margin:0!important;font-weight:400!important}
button,input{font:inherit;padding:.45em 1.1em;border:1px solid var(--line);border-radius:8px;background:var(--field);color:inherit}
button{cursor:pointer;font-weight:600}button.main{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}button:disabled{opacity:.5;cursor:default}
input[type=number]{width:5.5em;padding:.45em .6em}input[type=file]{max-width:100%;min-width:0;padding:.3em .5em}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.draw{display:grid;grid-template-columns:minmax(0,20em) minmax(12em,1fr);gap:1.5em 2em;align-items:start}@media(max-width:36em){.draw{grid-template-columns:minmax(0,1fr)}}
#canvas{display:block;width:100%;border:1px solid var(--line);border-radius:8px;cursor:crosshair;touch-action:none;image-rendering:auto}
::file-selector-button{font:inherit;font-size:.9em}#seen{width:4.5em;margin-top:1em;border:1px solid var(--line);image-rendering:pixelated}
#labels{list-style:none;margin:0;padding:0;display:grid;gap:.25em}#labels li{display:grid;grid-template-columns:minmax(2em,max-content) 1fr 4.5em;gap:.6em;align-items:center}
#labels li:first-child{font-weight:700}#labels:empty::before{content:"…";color:var(--quiet)}#labels i{display:block;height:.65em;min-width:1px;border-radius:3px;background:var(--accent)}#labels b{font:inherit;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
footer{margin-top:2.5em;border-top:1px solid var(--line);padding-top:.8em}
</style>
<body>
<h1 id="title">A model of heed</h1>
<p id="about" class="quiet"></p>
<p id="status" role="status">Loading the model …</p>
<form id="text" hidden>
<label><span id="asks"></span><textarea id="input" autofocus spellcheck="false"></textarea></label>
<div class="row">
<button id="start" class="main" disabled></button>
<label><span>at most</span><input id="limit" type="number" min="1" required><span>tokens</span></label>
<label id="heat"><span>temperature</span><input id="temperature" type="number" min="0" step="any" value="0" title="0: always the most probable token" required></label>
<span class="quiet">start: Ctrl+Enter</span>
</div>
<div><span id="gives" class="name"></span><div id="output" role="log" tabindex="0" aria-labelledby="gives"></div></div>
</form>
<form id="image" hidden>
<div class="draw">
<div><span class="name">Draw with the mouse or a finger</span><canvas id="canvas"></canvas></div>
<div><span class="name">Labels and their probabilities</span><ol id="labels" aria-live="polite"></ol><p class="quiet"><canvas id="seen"></canvas><br>what the model reads</p></div>
</div>
<div class="row"><button id="clear" type="button">Clear</button><label><input id="centre" type="checkbox" checked><span>centre the drawing</span></label><label><span>or an image:</span><input id="file" type="file" accept="image/*"></label></div>
</form>
<footer>Model and program are in this file, which loads and sends nothing. It contains ONNX Runtime Web (© Microsoft Corporation, MIT licence)<span id="tokenizers"> and tokenizers.js (© Hugging Face, Apache licence 2.0)</span>.</footer>
<noscript>The model needs JavaScript.</noscript>
)html";

const std::string_view page_end = R"html(<script type="module">
const element = id => document.getElementById(id);
const say = text => element('status').textContent = text;
addEventListener('unhandledrejection', event => say(`This does not work here: ${event.reason?.message ?? event.reason}`));

// ---- files: base64 of gzip ------------------------------------------------------------------------
const packed = name => document.querySelector(`script[data-file="${name}"]`);
const bytes = async name => {
  const {body} = await fetch('data:;base64,' + packed(name).textContent);
  return new Response(body.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
};
const json = async name => JSON.parse(new TextDecoder().decode(await bytes(name)));
const module = async name => import(URL.createObjectURL(new Blob([await bytes(name)], {type: 'text/javascript'})));

const page = await json('page.json');
document.title = element('title').textContent = page.name;
element('about').textContent = page.about;
element('tokenizers').hidden = page.kind === 'image';
const ort = await module('ort.wasm.bundle.min.mjs');
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = await bytes('ort-wasm-simd-threaded.wasm');
// int8: weights are dequantised once, when a graph is loaded.
const session = async name => {
  const graph = new Blob(await Promise.all((await json(`${name}.json`)).map(bytes)));
  return ort.InferenceSession.create(await graph.arrayBuffer(), {logSeverityLevel: 3, extra: {session: {disable_quant_qdq: '1'}}});
};
const int64 = ids => new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]);
const ones = ids => int64(ids.map(() => 1));
const largest = values => values.reduce((best, value, i) => value > values[best] ? i : best, 0);
const shown = () => new Promise(done => setTimeout(done));  // lets the browser draw and handle events

// ---- text ---------------------------------------------------------------------------------------
async function text() {
  const pairs = page.kind === 'pairs', {Tokenizer} = await module('tokenizers.min.mjs');
  const tokenizer = async folder => new Tokenizer(await json(folder + 'tokenizer.json'), await json(folder + 'tokenizer_config.json'));
  const source = await tokenizer(''), target = packed('target/tokenizer.json') ? await tokenizer('target/') : source;
  const encoder = pairs && await session('encoder_model');
  const decoder = await session(pairs ? 'decoder_model_merged' : 'model');
  const {eos_token_id: end, suppress_tokens: never, decoder_start_token_id: begin} = await json('generation_config.json');
  // tokenizers.js has no pieces for bytes in a unigram vocabulary: an unknown piece becomes those of its bytes.
  const unknown = source.token_to_id('<0x00>') === undefined ? null : source.token_to_id('<unk>');
  const byte = value => source.token_to_id(`<0x${value.toString(16).toUpperCase().padStart(2, '0')}>`);
  const encode = text => {
    const {ids, tokens} = source.encode(text);
    return ids.flatMap((id, i) => id === unknown ? Array.from(new TextEncoder().encode(tokens[i]), byte) : id);
  };
  const decode = ids => ids.length ? target.decode(ids, {skip_special_tokens: true, clean_up_tokenization_spaces: false}) : '';

  const empty = () => Object.fromEntries(decoder.inputMetadata.filter(({name}) => name.startsWith('past')).map(({name, shape}) =>
    [name, new ort.Tensor('float32', [], [1, shape[1], 0, shape[3]])]));

  const choose = (logits, temperature) => {
    for (const id of never) logits[id] = -Infinity;
    const best = largest(logits);
    if (temperature === 0) return best;
    const weights = logits.map(value => Math.exp((value - logits[best]) / temperature));
    let rest = Math.random() * weights.reduce((sum, weight) => sum + weight, 0);
    const drawn = weights.findIndex(weight => (rest -= weight) < 0);
    return drawn < 0 ? best : drawn;  // rounding may leave a rest
  };

  // Yields the tokens that follow `ids`, up to the end token. Each call of the decoder reads the last token and the cache of
  // keys and values. A text beyond the context continues from its second half, as in `heed generate`.
  async function* tokens(ids, encoded, temperature) {
    for (let past = null; ;) {
      if (page.context && ids.length > page.context) [ids, past] = [ids.slice(-Math.max(page.context >> 1, 1)), null];
      const inputs = {...encoded, ...past ?? empty(), input_ids: int64(past ? ids.slice(-1) : ids)};
      if (pairs) inputs.use_cache_branch = new ort.Tensor('bool', [past !== null], [1]);
      else inputs.attention_mask = ones(ids);
      const {logits, ...cache} = await decoder.run(inputs);
      past = Object.fromEntries(Object.entries(cache).map(([name, value]) => [name.replace('present', 'past_key_values'), value]));
      const id = choose(logits.data.slice(-logits.dims[2]), temperature);
      if (id === end) return;
      yield id;
      ids = [...ids, id];
    }
  }

  // A line of a source is a sequence. A language model continues the whole text.
  async function* outputs(input, temperature) {
    if (!pairs) {
      const ids = encode(input), given = ids.length ? ids : encode('\n');
      return yield {ids: [...ids], more: tokens(given.length ? given : [end], {}, temperature)};
    }
    for (const line of input.split('\n')) {
      const input_ids = encode(line), mask = ones(input_ids);
      const {last_hidden_state} = line.trim() ? await encoder.run({input_ids: int64(input_ids), attention_mask: mask}) : {};
      const encoded = {encoder_hidden_states: last_hidden_state, encoder_attention_mask: mask};
      yield {ids: [], more: last_hidden_state ? tokens([begin], encoded, temperature) : []};
    }
  }

  let running = false;
  const limit = element('limit'), start = element('start'), idle = pairs ? 'Translate' : 'Continue';
  const run = async () => {
    const began = performance.now(), done = [];
    let count = 0;
    running = element('output').ariaBusy = true;
    start.textContent = 'Stop';
    try {
      for await (const {ids, more} of outputs(element('input').value, pairs ? 0 : element('temperature').valueAsNumber)) {
        let left = limit.valueAsNumber;
        done.push(decode(ids));
        for await (const id of more) {
          ids.push(id);
          ++count;
          done[done.length - 1] = decode(ids);
          element('output').textContent = done.join('\n');
          await shown();
          if (!running || --left === 0) break;
        }
        if (!running) break;
      }
      element('output').textContent = done.join('\n');
      say(`${count} tokens in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    } finally {
      running = element('output').ariaBusy = false;
      start.textContent = idle;
    }
  };
  element('text').onsubmit = event => {
    event.preventDefault();
    if (running) running = false;
    else run();
  };
  element('input').onkeydown = event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) element('text').requestSubmit();
  };
  element('asks').textContent = pairs ? 'Source, one sentence per line' : 'Beginning of the text';
  element('gives').textContent = pairs ? 'Output' : 'The text and its continuation';
  element('heat').hidden = pairs;
  limit.value = page.max_length;
  start.textContent = idle;
  start.disabled = false;
}

// ---- images -------------------------------------------------------------------------------------
async function image() {
  const model = await session('model'), processor = await json('preprocessor_config.json');
  const {id2label} = await json('config.json');
  const reads = {willReadFrequently: true}, {size: {width, height}, image_mean: [mean], image_std: [deviation], do_convert_rgb: colour} = processor;
  const canvas = element('canvas'), pen = canvas.getContext('2d', reads), seen = element('seen'), small = seen.getContext('2d', reads);
  const zoom = Math.max(1, Math.floor(320 / Math.max(width, height))), channels = colour ? 3 : 1;
  [canvas.width, canvas.height, seen.width, seen.height] = [width * zoom, height * zoom, width, height];
  const grey = value => `rgb(${value},${value},${value})`, [paper, ink] = mean > 0.5 ? [255, 0] : [0, 255];  // as in the training data

  // What the model reads: each pixel is the mean of a square of the canvas, rounded to eight bits. A drawing is moved by whole
  // pixels until its centre of mass is in the middle, as in MNIST.
  let content = 'nothing';  // or a drawing, or a file
  const reduced = () => {
    const from = pen.getImageData(0, 0, canvas.width, canvas.height).data, to = new ImageData(width, height);
    const sums = new Float64Array(width * height * 4);
    for (let y = 0, at = 0; y < canvas.height; ++y)
      for (let x = 0; x < canvas.width; ++x)
        for (let c = 0; c < 4; ++c) sums[(Math.floor(y / zoom) * width + Math.floor(x / zoom)) * 4 + c] += from[at++];
    to.data.set(sums.map(sum => Math.round(sum / zoom ** 2)));
    if (!colour)
      for (let i = 0; i < sums.length; i += 4)
        to.data.fill(Math.round(0.299 * to.data[i] + 0.587 * to.data[i + 1] + 0.114 * to.data[i + 2]), i, i + 3);
    const inks = Array.from({length: width * height}, (_, i) => Math.abs(to.data[4 * i] - paper));
    const mass = inks.reduce((a, b) => a + b), centred = mass > 0 && content === 'a drawing' && element('centre').checked;
    const shift = (size, place) =>
      centred ? Math.round((size - 1) / 2 - inks.reduce((sum, ink, i) => sum + ink * place(i), 0) / mass) : 0;
    small.fillStyle = grey(paper);
    small.fillRect(0, 0, width, height);
    small.putImageData(to, shift(width, i => i % width), shift(height, i => Math.floor(i / width)));
    return small.getImageData(0, 0, width, height);
  };

  // The ten most probable labels, each with its probability.
  const probabilities = async pixels => {
    const values = Float32Array.from({length: channels * width * height}, (_, i) =>
      (pixels.data[i % (width * height) * 4 + Math.floor(i / (width * height))] / 255 - mean) / deviation);
    const {logits} = await model.run({pixel_values: new ort.Tensor('float32', values, [1, channels, height, width])});
    const scores = logits.data, top = scores[largest(scores)];
    const weights = Array.from(scores, score => Math.exp(score - top)), sum = weights.reduce((a, b) => a + b);
    return weights.map((weight, i) => [id2label[i], weight / sum]).slice(page.first_label).sort((a, b) => b[1] - a[1]).slice(0, 10);
  };
  const row = ([label, share]) => {
    const item = document.createElement('li'), [name, bar, number] = ['span', 'i', 'b'].map(tag => document.createElement(tag));
    [name.textContent, bar.style.width, number.textContent] = [label, `${100 * share}%`, `${(100 * share).toFixed(1)} %`];
    item.append(name, bar, number);
    return item;
  };
  const classify = async () => {
    const pixels = reduced(), began = performance.now();
    const found = content === 'nothing' ? [] : await probabilities(pixels);
    element('labels').replaceChildren(...(content === 'nothing' ? [] : found.map(row)));
    element('labels').ariaBusy = waiting;
    say(content === 'nothing' ? 'Ready' : `classified in ${(performance.now() - began).toFixed(0)} ms`);
  };

  // One classification at a time; while one runs, the next begins with the newest drawing.
  let waiting = false, last = Promise.resolve();
  const changed = () => {
    if (!waiting) last = last.then(shown).then(() => (waiting = false, classify()));
    waiting = element('labels').ariaBusy = true;
  };
  const clear = () => {
    pen.fillStyle = grey(paper);
    pen.fillRect(0, 0, canvas.width, canvas.height);
    content = 'nothing';
    Object.assign(pen, {strokeStyle: grey(ink), lineWidth: Math.min(canvas.width, canvas.height) / 12, lineCap: 'round', lineJoin: 'round'});
    changed();
  };
  const place = event => [event.offsetX * canvas.width / canvas.clientWidth, event.offsetY * canvas.height / canvas.clientHeight];
  canvas.onpointerdown = event => {
    canvas.setPointerCapture(event.pointerId);
    pen.beginPath();
    const [x, y] = place(event);
    pen.moveTo(x - 0.1, y);  // so that a click draws a dot
    canvas.onpointermove(event);
  };
  canvas.onpointermove = event => {
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    pen.lineTo(...place(event));
    pen.stroke();
    content = 'a drawing';
    changed();
  };
  element('clear').onclick = clear;
  element('centre').onchange = changed;
  element('file').onchange = async () => {
    clear();
    pen.drawImage(await createImageBitmap(element('file').files[0]), 0, 0, canvas.width, canvas.height);
    content = 'a file';
    changed();
  };
  clear();
}

await (page.kind === 'image' ? image() : text());
element(page.kind === 'image' ? 'image' : 'text').hidden = false;
element('input').focus();
say('Ready');
</script>
</html>
)html";

}  // namespace heed
