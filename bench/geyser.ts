import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { cpus } from 'node:os'
import { Client, credentials } from '@grpc/grpc-js'
import { startChainGeyserServer } from '../src/localnet/geyser/grpc.ts'
import { createMessageReader, frameMessage } from '../src/platform/grpc/framing.ts'
import { systemClock } from '../src/platform/process/clock.ts'
import { silentLogger } from '../src/platform/telemetry/logger.ts'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../src/solana/geyser/protobuf.ts'
import { createChainDouble } from '../test/support/solana/chain-double.ts'

/**
 * Geyser to one client: transaction updates of about 1 KB, encoded when they are sent (a replay from the ledger, nothing
 * cached), with the client in its own process. One JSON line per client: a minimal HTTP/2 reader that counts messages,
 * and @grpc/grpc-js.
 *   node bench/geyser.ts [blocks] [transactions per block]
 */
const [, , first = '100', second = '2000'] = process.argv
if (first === 'client') await runClient(process.argv[3] as string, Number(process.argv[4]), Number(process.argv[5]))
else await runServer(Number(first), Number(second))

async function runServer(blocks: number, perBlock: number): Promise<void> {
  const double = createChainDouble()
  await using server = await startChainGeyserServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    { chain: double.chain, log: silentLogger, clock: systemClock },
  )
  const logMessages = Array.from({ length: 8 }, (_, line) => `Program log: ${String(line).repeat(40)}`)
  const transactions = Array.from({ length: perBlock }, () =>
    double.transaction({ memo: 'm'.repeat(300), meta: { logMessages } }),
  )
  for (let block = 0; block < blocks; block++) double.produce({ transactions })
  for (const kind of ['http2', 'grpc-js']) {
    const child: ChildProcess = fork(import.meta.filename, [
      'client',
      kind,
      String(server.address.port),
      String(blocks * perBlock),
    ])
    const cpu = process.cpuUsage()
    const [result] = (await once(child, 'message')) as [{ messages: number; bytes: number; seconds: number }]
    const used = process.cpuUsage(cpu)
    const perSecond = Math.round(result.messages / result.seconds)
    console.log(
      JSON.stringify({
        bench: 'geyser',
        client: kind,
        messages: result.messages,
        bytesPerMessage: Math.round(result.bytes / result.messages),
        messagesPerSecond: perSecond,
        serverCpuMicrosPerMessage: Number(((used.user + used.system) / result.messages).toFixed(2)),
        goal: 50_000,
        ratio: Number((perSecond / 50_000).toFixed(2)),
        cores: cpus().length,
        node: process.version,
      }),
    )
    await once(child, 'exit')
  }
}

async function runClient(kind: string, port: number, expected: number): Promise<void> {
  const request = encodeMessage(SubscribeRequestSchema, { transactions: { all: {} }, fromSlot: 10n })
  const started = performance.now()
  let messages = 0
  let bytes = 0
  let last: Uint8Array = new Uint8Array(0)
  await new Promise<void>((resolve) => {
    const count = (message: Uint8Array) => {
      bytes += message.length
      last = message
      if (++messages === expected + 1) resolve()
    }
    if (kind === 'http2') readRaw(port, request, count)
    else readGrpcJs(port, request, count)
  })
  const update = decodeMessage(SubscribeUpdateSchema, last)
  if (update?.updateOneof.case !== 'transaction') throw new Error('the last message is not a transaction')
  process.send?.({ messages, bytes, seconds: (performance.now() - started) / 1000 }, () => process.exit(0))
}

function readRaw(port: number, request: Uint8Array, count: (message: Uint8Array) => void): void {
  const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 4 * 1024 * 1024 } })
  session.once('connect', () => session.setLocalWindowSize(16 * 1024 * 1024))
  const stream = session.request({
    ':method': 'POST',
    ':path': '/geyser.Geyser/Subscribe',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  const reader = createMessageReader({ messageBytesMax: 64 * 1024 * 1024 }, count)
  stream.on('data', (chunk: Buffer) => void reader.push(chunk))
  stream.on('trailers', (trailers) => console.error(trailers))
  stream.write(frameMessage(request))
}

function readGrpcJs(port: number, request: Uint8Array, count: (message: Uint8Array) => void): void {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  const plain = (bytes: Buffer) => bytes
  const call = client.makeBidiStreamRequest('/geyser.Geyser/Subscribe', plain, plain)
  call.on('data', count)
  call.on('error', (error: Error) => console.error(error.message))
  call.write(Buffer.from(request))
}
