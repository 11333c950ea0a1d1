import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { encodeTextFrame } from '../../src/platform/ws/frame.ts'

/**
 * A node for the WebSocket bench: sends slots, and to every logs subscription messages at the given rate or, with 0, as fast as its client reads, each
 * with its creation time. It makes one write per socket and tick, so that the proxy in front of it is measured and not the node.
 */
const [perSecond = 200, payloadBytes = 600] = process.argv.slice(2).map(Number)
const SLOT_MS = 400
const BEAT_MS = 5
/** Messages per write at the maximum rate. */
const BURST = 16
const sockets = new Set<Duplex>()
let slot = 1000

let isStarted = false

const http = createServer((request, response) => {
  // Requested when all clients are connected, so that connecting is not measured.
  if (request.url === '/start') isStarted = true
  request.resume()
  request.on('end', () => response.end(`{"jsonrpc":"2.0","result":${slot},"id":1}`))
})
const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false })
http.on('upgrade', (request, socket, head) => {
  wss.handleUpgrade(request, socket, head, (client) => {
    let slots: NodeJS.Timeout | undefined
    client.on('message', (data) => {
      const { method, id } = JSON.parse((data as Buffer).toString()) as { method: string; id: number }
      client.send(`{"jsonrpc":"2.0","result":${method === 'slotSubscribe' ? 1 : 2},"id":${id}}`)
      if (method === 'logsSubscribe') sockets.add(socket)
      if (method !== 'slotSubscribe') return
      slots = setInterval(() => {
        slot += 1
        const result = `{"parent":${slot - 1},"root":${slot - 32},"slot":${slot}}`
        client.send(`{"jsonrpc":"2.0","method":"slotNotification","params":{"result":${result},"subscription":1}}`)
      }, SLOT_MS)
    })
    client.on('error', () => {})
    client.on('close', () => {
      clearInterval(slots)
      sockets.delete(socket)
    })
  })
})

const startMs = performance.now()
let sent = 0
setInterval(() => {
  const due = perSecond === 0 ? sent + BURST : Math.floor(((performance.now() - startMs) / 1000) * perSecond)
  if (!isStarted) sent = due
  const frames: Buffer[] = []
  for (; sent < due; sent++) frames.push(encodeTextFrame(message()))
  if (frames.length === 0) return
  const bytes = Buffer.concat(frames)
  for (const socket of sockets) if (perSecond > 0 || !socket.writableNeedDrain) socket.write(bytes)
}, BEAT_MS)

function message(): string {
  // From the monotonic clock, which the C clients can read too.
  const madeMs = (Number(process.hrtime.bigint()) / 1e6).toFixed(2)
  const head = `{"jsonrpc":"2.0","method":"logsNotification","params":{"result":{"context":{"slot":${slot}},"value":{"t":${madeMs},"logs":["`
  const tail = '"]}},"subscription":2}}'
  return `${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - tail.length))}${tail}`
}

http.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (http.address() as { port: number }).port })}\n`)
})
