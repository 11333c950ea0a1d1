import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { cpus } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { createSeededRandom } from '../src/core/random.ts'
import { parseLocalnetOptions } from '../src/localnet/options.ts'
import { startLocalnet } from '../src/localnet/service.ts'
import { systemClock } from '../src/platform/process/clock.ts'
import { silentLogger } from '../src/platform/telemetry/logger.ts'
import { decodeBase58, encodeBase58 } from '../src/solana/crypto/base58.ts'
import { createSigningKey, type SigningKey } from '../src/solana/crypto/ed25519.ts'
import { buildLegacyMessage, signMessage, transferInstruction } from '../src/solana/transaction/build.ts'

/**
 * The embedded chain in its own process, its engine in a child, this process as the client. Measures the time to the
 * first response, idle memory (no traffic), and pre-signed transfers per second with signature checks: through
 * `submit` inside the process, and through `sendTransaction` with skipPreflight over HTTP. Prints one JSON line.
 *   node bench/localnet.ts [transactions]
 */
const SUBMITS_AT_ONCE = 500
const CONNECTIONS = 64
const REST_MS = 5_000

if (process.argv[2] === 'node') await runNode()
else await runClient(Number(process.argv[2] ?? 5000))

async function runNode(): Promise<void> {
  const at = { host: '127.0.0.1', port: 0 }
  const options = parseLocalnetOptions({ rpc: at, ws: at, grpc: at, traffic: { enabled: false } })
  await using localnet = await startLocalnet(options, { log: silentLogger, clock: systemClock })
  process.send?.({ port: localnet.rpc.port, engine: localnet.chain.enginePid() })
  const done = Promise.withResolvers<void>()
  process.on('message', (request: { count: number } | 'end') => {
    if (request === 'end') return done.resolve()
    void submitAll(localnet.chain, request.count).then((rate) => process.send?.({ rate }))
  })
  await done.promise
  process.disconnect?.()
}

async function submitAll(chain: Awaited<ReturnType<typeof startLocalnet>>['chain'], count: number): Promise<number> {
  const payer = createSigningKey(new Uint8Array(32).fill(9))
  await chain.airdrop(encodeBase58(payer.publicKey), 10n ** 15n)
  const wires = makeTransfers(payer, decodeBase58(chain.latestBlockhash('processed').blockhash), count)
  const startMs = performance.now()
  await inParallel(SUBMITS_AT_ONCE, count, async (i) => {
    const outcome = await chain.submit(wires[i] as Uint8Array)
    if (!outcome.ok) throw new Error(`refused: ${JSON.stringify(outcome)}`)
  })
  return (count * 1000) / (performance.now() - startMs)
}

async function runClient(count: number): Promise<void> {
  const startMs = performance.now()
  const node: ChildProcess = fork(import.meta.filename, ['node'])
  const [{ port, engine }] = (await once(node, 'message')) as [{ port: number; engine: number }]
  const call = await openCaller(port)
  await call('getHealth', '[]')
  const firstResponseMs = performance.now() - startMs
  await pause(REST_MS)
  const restMb = (rssOf(node.pid as number) + rssOf(engine)) / 1024

  node.send({ count })
  const [{ rate: submitsPerSecond }] = (await once(node, 'message')) as [{ rate: number }]

  const payer = createSigningKey(new Uint8Array(32).fill(8))
  await call('requestAirdrop', `["${encodeBase58(payer.publicKey)}",1000000000000000]`)
  const { value } = (await call('getLatestBlockhash', '[{"commitment":"processed"}]')) as {
    value: { blockhash: string }
  }
  const params = makeTransfers(payer, decodeBase58(value.blockhash), count).map(
    (wire) => `["${Buffer.from(wire).toString('base64')}",{"encoding":"base64","skipPreflight":true}]`,
  )
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => openCaller(port)))
  const sendsMs = performance.now()
  await inParallel(CONNECTIONS, count, async (i, lane) => {
    await callers[lane]?.('sendTransaction', params[i] as string)
  })
  const sendsPerSecond = (count * 1000) / (performance.now() - sendsMs)
  node.send('end')
  await once(node, 'exit')
  const round = Math.round
  console.log(
    JSON.stringify({
      bench: 'localnet',
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      node: process.version,
      count,
      firstResponseMs: round(firstResponseMs),
      restMb: round(restMb),
      submitsPerSecond: round(submitsPerSecond),
      sendTransactionsPerSecond: round(sendsPerSecond),
    }),
  )
  process.exit()
}

function makeTransfers(payer: SigningKey, recentBlockhash: Uint8Array, count: number): Uint8Array[] {
  const random = createSeededRandom(count)
  return Array.from({ length: count }, () => {
    const instructions = [transferInstruction({ from: payer.publicKey, to: random.bytes(32), lamports: 1_000_000n })]
    return signMessage(buildLegacyMessage({ feePayer: payer.publicKey, recentBlockhash, instructions }), [payer])
  })
}

async function inParallel(
  lanes: number,
  count: number,
  run: (index: number, lane: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const work = async (lane: number) => {
    while (next < count) await run(next++, lane)
  }
  await Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)))
}

/** One connection, one call at a time, with a minimal HTTP client so that the client's own cost is small. */
async function openCaller(port: number): Promise<(method: string, params: string) => Promise<unknown>> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.setNoDelay()
  let received = ''
  let response: ((body: string) => void) | undefined
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
    const bodyAt = received.indexOf('\r\n\r\n') + 4
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1])
    if (bodyAt < 4 || received.length < bodyAt + length) return
    const body = received.slice(bodyAt)
    received = ''
    response?.(body)
  })
  return async (method, params) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
    const { promise, resolve } = Promise.withResolvers<string>()
    response = resolve
    socket.write(
      `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const reply = JSON.parse(await promise) as { result?: unknown; error?: unknown }
    if (reply.error) throw new Error(`${method}: ${JSON.stringify(reply.error)}`)
    return reply.result
  }
}

/** Resident kilobytes of a process. */
function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
