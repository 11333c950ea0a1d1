/**
 * Bun as a QUIC server on lsquic and BoringSSL. It requests the client's certificate, reads unidirectional streams and responds to commands
 * on standard input. Arguments: certificate file, key file, options as JSON. Each line it prints is one JSON value.
 */
import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { listen } from 'node:quic'
import { createInterface } from 'node:readline'

const [certFile, keyFile, optionsText = '{}'] = process.argv.slice(2)
const { endpoint: endpointOptions, ca, ...options } = JSON.parse(optionsText)
const say = (value) => console.log(JSON.stringify(value))

const streams = new Map()
const sessions = new Set()
let streamCount = 0

async function readStream(stream) {
  const parts = []
  for await (const batch of stream) for (const part of Array.isArray(batch) ? batch : [batch]) parts.push(part)
  const bytes = Buffer.concat(parts)
  streamCount += 1
  streams.set(bytes.readUInt32BE(0), bytes.length)
}

const endpoint = await listen(
  (session) => {
    sessions.add(session)
    session.onstream = (stream) => {
      readStream(stream).catch((error) => say({ event: 'stream-failed', reason: String(error) }))
    }
    session.opened?.then?.(
      () => say({ event: 'session', certificate: Buffer.from(session.peerCertificate?.raw ?? '').toString('hex') }),
      (error) => say({ event: 'failed', reason: String(error) }),
    )
    session.closed.then(
      () => say({ event: 'closed' }),
      (error) => say({ event: 'closed', reason: String(error), code: Number(error?.errorCode ?? -1) }),
    )
  },
  {
    alpn: ['solana-tpu'],
    endpoint: { address: '127.0.0.1:0', ...endpointOptions },
    sni: { '*': { keys: [createPrivateKey(readFileSync(keyFile))], certs: [readFileSync(certFile)] } },
    ...(ca === undefined ? {} : { verifyClient: true, ca: [Buffer.from(ca)] }),
    ...options,
  },
)
say({ port: endpoint.address.port })

for await (const word of createInterface({ input: process.stdin })) {
  if (word === 'report') {
    const bytes = [...streams.values()].reduce((sum, length) => sum + length, 0)
    say({ event: 'report', streams: streamCount, distinct: streams.size, bytes })
  }
  if (word === 'close') for (const session of sessions) session.destroy()
}
