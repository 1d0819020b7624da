// Greedy outputs of an export in transformers.js, without a network:
//
//     node transformers_js.mjs NODE_MODULES EXPORT TASK DTYPE < LINES
//
// prints a JSON array with one text per line. onnx.py runs it.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, folder, task, dtype] = process.argv.slice(2);
const library = path.join(modules, '@huggingface/transformers/dist/transformers.node.mjs');
const T = await import(pathToFileURL(library));
T.env.allowRemoteModels = false;
T.env.localModelPath = path.dirname(folder);
const name = path.basename(folder);
const firstLabel = 3; // after <unk>, <s> and </s>

const classes = {
    lm: T.AutoModelForCausalLM, seq2seq: T.AutoModelForSeq2SeqLM, captions: T.AutoModelForVision2Seq,
    classify: T.AutoModelForSequenceClassification, tag: T.AutoModelForTokenClassification,
    mlm: T.AutoModelForMaskedLM, images: T.AutoModelForImageClassification,
};
const model = await classes[task].from_pretrained(name, { dtype, local_files_only: true });
const exists = (file) => fs.existsSync(path.join(folder, file));
const tokenizer = exists('tokenizer.json') ? await T.AutoTokenizer.from_pretrained(name) : null;
const target = exists('target/tokenizer.json') ? await T.AutoTokenizer.from_pretrained(`${name}/target`) : tokenizer;
const processor = exists('preprocessor_config.json') ? await T.AutoImageProcessor.from_pretrained(name) : null;

// The index of the largest number of a row from `first` on.
function largest(row, first) {
    let best = first;
    for (let i = first; i < row.length; ++i) if (row[i] > row[best]) best = i;
    return best;
}

// A PGM file, which the library does not read.
function image(file) {
    const bytes = fs.readFileSync(file), [, width, height] = bytes.toString('latin1').split(/\s/, 3).map(Number);
    return new T.RawImage(new Uint8ClampedArray(bytes.subarray(bytes.length - width * height)), width, height, 1);
}

async function inputs(line) {
    if (processor) return await processor(image(line));
    const [first, second] = line.split('\t');
    return tokenizer(first, second ? { text_pair: second } : {});
}

async function output(line) {
    const given = await inputs(line);
    if (model.can_generate) {
        const options = task === 'lm' ? { max_new_tokens: 24 } : {};
        const ids = await model.generate({ ...given, ...options });
        return target.batch_decode(ids, { skip_special_tokens: true })[0];
    }
    const { logits } = await model(given);
    const width = logits.dims.at(-1), rows = [];
    for (let at = 0; at < logits.data.length; at += width) rows.push(logits.data.slice(at, at + width));
    if (task !== 'mlm') return rows.map((row) => model.config.id2label[largest(row, firstLabel)]).join(' ');
    const mask = Number(tokenizer.mask_token_id), ids = Array.from(given.input_ids.data, Number);
    const filled = ids.map((id, i) => (id === mask ? largest(rows[i], mask + 1) : id));
    return tokenizer.decode(filled.slice(1, -1));
}

const lines = fs.readFileSync(0, 'utf-8').split('\n').filter((line) => line !== '');
const outputs = [];
for (const line of lines) outputs.push(await output(line));
console.log(JSON.stringify(outputs));
