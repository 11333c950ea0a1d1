/**
 * Deno as a QUIC server on quinn and rustls, the stack of Solana's validators. It reads unidirectional streams and responds to commands on
 * standard input. Arguments: certificate file, key file, options as JSON. Each line it prints is one JSON value.
 */
const [certFile, keyFile, optionsText = '{}'] = Deno.args
const options = JSON.parse(optionsText)
const say = (value) => console.log(JSON.stringify(value))

const endpoint = new Deno.QuicEndpoint({ hostname: '127.0.0.1', port: 0 })
const listener = endpoint.listen({
  cert: Deno.readTextFileSync(certFile),
  key: Deno.readTextFileSync(keyFile),
  alpnProtocols: ['solana-tpu'],
  ...options,
})
say({ port: endpoint.addr.port })

const streams = new Map()
const times = new Map()
const connections = new Set()
let streamCount = 0

async function readStream(stream) {
  const atMs = performance.timeOrigin + performance.now()
  const parts = []
  for await (const part of stream) parts.push(part)
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer())
  const id = new DataView(bytes.buffer).getUint32(0)
  streamCount += 1
  if (!times.has(id)) times.set(id, atMs)
  streams.set(id, bytes.length)
}

async function serve(connection) {
  connections.add(connection)
  say({ event: 'session' })
  connection.closed.then(
    ({ closeCode, reason }) => say({ event: 'closed', code: closeCode, reason }),
    (error) => say({ event: 'closed', reason: String(error) }),
  )
  for await (const stream of connection.incomingUnidirectionalStreams) readStream(stream).catch(() => {})
}

async function accept() {
  for await (const incoming of listener) {
    incoming
      .accept()
      .then(serve)
      .catch((error) => say({ event: 'failed', reason: String(error) }))
  }
}
void accept()

let text = ''
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  text += chunk
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
    const word = text.slice(0, end)
    text = text.slice(end + 1)
    if (word === 'report')
      say({
        event: 'report',
        streams: streamCount,
        distinct: streams.size,
        bytes: [...streams.values()].reduce((a, b) => a + b, 0),
      })
    // When each stream began to arrive, by its first four bytes, on the wall clock.
    if (word === 'times') say({ event: 'times', times: [...times] })
    if (word === 'close') for (const connection of connections) connection.close({ closeCode: 4, reason: 'too_many' })
  }
}
