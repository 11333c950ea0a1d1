import { setTimeout as pause } from 'node:timers/promises'
import { openWsClients } from './ws-clients.ts'

/**
 * The clients of the WebSocket bench as a process: port, token, how many, for how long, and the
 * node's port. Says `"begin"` when the measuring begins, and what was
 * counted when it ends.
 */
const [port = '0', token = '', count = '0', measureMs = '0', nodePort = '0'] = process.argv.slice(2)
const WARM_MS = 1000

using clients = await openWsClients(Number(port), token, Number(count))
await fetch(`http://127.0.0.1:${nodePort}/start`).then((answer) => answer.text())
await pause(WARM_MS)
clients.reset()
process.stdout.write('"begin"\n')
const startMs = performance.now()
await pause(Number(measureMs))
const seconds = (performance.now() - startMs) / 1000
const { messages, agesMs } = clients.counts()
const sorted = agesMs.toSorted((a, b) => a - b)
const at = (share: number) => Number((sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1))
process.stdout.write(`${JSON.stringify({ messages, seconds, ageP50Ms: at(0.5), ageP99Ms: at(0.99) })}\n`)
