import assert from 'node:assert/strict'
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import { Client, type ClientDuplexStream, credentials, Metadata, type StatusObject } from '@grpc/grpc-js'
import { createManualClock } from '../../../src/core/clock.ts'
import { type GeyserServerOptions, startChainGeyserServer } from '../../../src/localnet/geyser/grpc.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import {
  SubscribeRequestSchema,
  type SubscribeUpdate,
  SubscribeUpdateSchema,
} from '../../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../src/solana/geyser/protobuf.ts'
import { createChainDouble } from './chain-double.ts'

export type Request = MessageInitShape<typeof SubscribeRequestSchema>
export type Call = ClientDuplexStream<Request, SubscribeUpdate>

/** A geyser server over a chain double, on a manual clock, and a client of it. */
export async function startGeyserNode(
  options: Partial<GeyserServerOptions> = {},
  chain: { confirmedSlots?: number; finalizedSlots?: number } = {},
) {
  const double = createChainDouble(chain)
  const clock = createManualClock()
  const server = await startChainGeyserServer(
    { listen: { host: '127.0.0.1', port: 0 }, ...options },
    { chain: double.chain, log: silentLogger, clock },
  )
  const target = `127.0.0.1:${server.address.port}`
  const client = new Client(target, credentials.createInsecure())
  return {
    ...double,
    server,
    clock,
    target,
    client,
    async subscribe(request: Request | undefined, { metadata = new Metadata(), through = client } = {}) {
      const call: Call = through.makeBidiStreamRequest(
        '/geyser.Geyser/Subscribe',
        (message: Request) => Buffer.from(encodeMessage(SubscribeRequestSchema, message)),
        (bytes: Buffer) => decodeMessage(SubscribeUpdateSchema, bytes) as SubscribeUpdate,
        metadata,
      )
      const stream = read(call)
      assert.equal((await stream.next()).updateOneof.case, 'ping')
      if (request) stream.send(request)
      return stream
    },
    async unary<Q extends DescMessage, A extends DescMessage>(
      path: string,
      [question, init]: [Q, MessageInitShape<Q>],
      response: A,
    ): Promise<MessageShape<A>> {
      return new Promise((resolve, reject) =>
        client.makeUnaryRequest(
          path,
          (bytes: Buffer) => bytes,
          (bytes: Buffer) => bytes,
          Buffer.from(encodeMessage(question, init)),
          (error, bytes) =>
            error ? reject(error) : resolve(decodeMessage(response, bytes as Buffer) as MessageShape<A>),
        ),
      )
    },
    async [Symbol.asyncDispose]() {
      client.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

function read(call: Call) {
  const updates: SubscribeUpdate[] = []
  const waiting: ((update: SubscribeUpdate) => void)[] = []
  const status = new Promise<StatusObject>((resolve) => call.on('status', resolve))
  call.on('error', () => {})
  call.on('data', (update: SubscribeUpdate) => {
    const next = waiting.shift()
    if (next) next(update)
    else updates.push(update)
  })
  let pings = 0
  const next = () => {
    const ready = updates.shift()
    return ready ? Promise.resolve(ready) : new Promise<SubscribeUpdate>((resolve) => waiting.push(resolve))
  }
  return {
    call,
    status,
    next,
    send: (request: Request) => void call.write(request),
    /** A line per update received until the pong of a ping sent now. */
    async rest(): Promise<string[]> {
      const id = ++pings
      call.write({ ping: { id } })
      const reported: string[] = []
      for (;;) {
        const update = await next()
        if (update.updateOneof.case === 'pong' && update.updateOneof.value.id === id) return reported
        reported.push(show(update))
      }
    },
  }
}

const STATUSES = ['processed', 'confirmed', 'finalized', 'firstShred', 'completed', 'createdBank', 'dead']

/** One line per update: the names of its filters, its kind, its slot. */
export function show({ filters, updateOneof }: SubscribeUpdate): string {
  const names = filters.join('+')
  switch (updateOneof.case) {
    case 'slot':
      return `${names}: ${STATUSES[updateOneof.value.status]} ${updateOneof.value.slot}<${updateOneof.value.parent}`
    case 'account':
      return `${names}: account ${updateOneof.value.account?.lamports} ${updateOneof.value.slot}`
    case 'transaction':
      return `${names}: transaction ${updateOneof.value.transaction?.index} ${updateOneof.value.slot}`
    case 'transactionStatus':
      return `${names}: status ${updateOneof.value.index} ${updateOneof.value.slot}`
    case 'block':
      return `${names}: block ${updateOneof.value.transactions.length}/${updateOneof.value.accounts.length} ${updateOneof.value.slot}`
    case 'blockMeta':
      return `${names}: meta ${updateOneof.value.slot}`
    case 'entry':
      return `${names}: entry ${updateOneof.value.slot}`
    default:
      return String(updateOneof.case)
  }
}
