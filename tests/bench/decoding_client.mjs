// The part of `decoding` that runs in Node: llama.cpp, through node-llama-cpp, continues a prompt twice.
//
//     node decoding_client.mjs FILE.gguf PROMPT LENGTH THREADS
//
// Prints a JSON object of the second time: the numbers of tokens, the seconds of all, and those until the first token.
import fs from "node:fs";
import {getLlama, LlamaModel} from "node-llama-cpp";
const [file, prompt, length, threads] = process.argv.slice(2);
LlamaModel.prototype.getWarnings = () => [];  // they tokenise a sentence that the vocabulary may lack
const begin = performance.now();
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error"});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: 512, batchSize: 512, threads: Number(threads)});
const sequence = context.getSequence(), ids = model.tokenize(prompt, false, "trimLeadingSpace");
const loaded = performance.now();
let first, start, tokens;
for (let time = 0; time < 2; ++time) {
  await sequence.clearHistory();
  [start, first, tokens] = [performance.now(), null, 0];
  for await (const _ of sequence.evaluate(ids, {temperature: 0, yieldEogToken: true})) {
    first ??= performance.now();
    if (++tokens === Number(length)) break;
  }
}
console.log(JSON.stringify({load_seconds: (loaded - begin) / 1000, input_tokens: ids.length, output_tokens: tokens,
                            seconds: (performance.now() - start) / 1000, first_token_seconds: (first - start) / 1000,
                            version: `node-llama-cpp ${JSON.parse(fs.readFileSync("node_modules/node-llama-cpp/package.json")).version}`}));
process.exit(0);
