import { credentials, Client as GrpcClient } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { createListener } from '../../../src/shreds/tools/listen.ts'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import {
  SubscribeDeshredRequestSchema,
  SubscribeRequestSchema,
  SubscribeUpdateDeshredSchema,
  SubscribeUpdateSchema,
} from '../../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../src/solana/geyser/protobuf.ts'
import { decodeBatch } from '../../../src/solana/shred/entry.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../../support/gateway/grpc.ts'
import { openSink } from '../../support/shreds/rig.ts'
import type { ServedChain } from './served-chain.ts'

/** Signatures by slot, in the order of arrival. */
export type Seen = Map<number, string[]>

type Report = (violation: string) => void

/** A connection that has to stay open until it is disposed. */
export type Watched = Disposable & { readonly seen: Seen; readonly isReady: Promise<unknown> }

const CONFIRMED = 1
const DEAD = 6
const DESHRED = '/geyser.Geyser/SubscribeDeshred'

function add(seen: Seen, slot: number, signature: string): void {
  const list = seen.get(slot)
  if (list === undefined) seen.set(slot, [signature])
  else list.push(signature)
}

/** Logs of all transactions and slots over one WebSocket. Slots never decrease (with several banks one may come again), and no gap is reported. */
export function watchPubSub({ at, token }: ServedChain, report: Report): Watched {
  const seen: Seen = new Map()
  const socket = new WebSocket(`ws://${at.ws}/?gaps=1`, { headers: { 'x-token': token } })
  const ready = Promise.withResolvers<void>()
  let isOver = false
  let lastSlot = 0
  const ask = (id: number, method: string, params: unknown[]): void =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  socket.on('open', () => {
    ask(1, 'slotSubscribe', [])
    ask(2, 'logsSubscribe', ['allWithVotes', { commitment: 'confirmed' }])
  })
  socket.on('error', (error) => report(`ws: ${error.message}`))
  socket.on('close', (code) => void (isOver || report(`ws: closed with ${code}`)))
  socket.on('message', (data: Buffer) => {
    const { id, method, params } = JSON.parse(data.toString()) as {
      id?: number
      method?: string
      params: { result: { slot: number; context: { slot: number }; value: { signature: string } } }
    }
    if (id === 2) ready.resolve()
    if (method === 'gapNotification') report('ws: a gap is reported')
    if (method === 'logsNotification') add(seen, params.result.context.slot, params.result.value.signature)
    if (method !== 'slotNotification') return
    if (params.result.slot < lastSlot) report(`ws: slot ${params.result.slot} after ${lastSlot}`)
    lastSlot = params.result.slot
  })
  return {
    seen,
    isReady: ready.promise,
    [Symbol.dispose]() {
      isOver = true
      socket.terminate()
    },
  }
}

/** Confirmed transactions over one gRPC stream. */
export function watchGeyser(served: ServedChain, report: Report): Watched {
  const request = encodeMessage(SubscribeRequestSchema, { transactions: { all: {} }, commitment: CONFIRMED })
  return watchStream(served, { name: 'grpc', path: SUBSCRIBE, request }, report, (bytes, seen) => {
    const update = decodeMessage(SubscribeUpdateSchema, bytes)?.updateOneof
    if (update?.case !== 'transaction') return
    const { slot, transaction } = update.value
    add(seen, Number(slot), encodeBase58(transaction?.signature ?? new Uint8Array()))
  })
}

/** Transactions from shreds over one gRPC stream; a slot that is reported as dead has lost some. */
export function watchDecoded(served: ServedChain, report: Report): Watched {
  const filters = { deshredTransactions: { all: {} }, slots: { all: {} } }
  const request = encodeMessage(SubscribeDeshredRequestSchema, filters)
  return watchStream(served, { name: 'decoded', path: DESHRED, request }, report, (bytes, seen) => {
    const update = decodeMessage(SubscribeUpdateDeshredSchema, bytes)?.updateOneof
    if (update?.case === 'slot' && (Number(update.value.status) === DEAD || update.value.deadError !== undefined))
      report(`decoded: slot ${update.value.slot} ${update.value.deadError ?? 'is dead'}`)
    if (update?.case !== 'deshredTransaction') return
    const { slot, transaction } = update.value
    add(seen, Number(slot), encodeBase58(transaction?.signature ?? new Uint8Array()))
  })
}

function watchStream(
  { at, token }: ServedChain,
  { name, path, request }: { name: string; path: string; request: Uint8Array },
  report: Report,
  take: (bytes: Buffer, seen: Seen) => void,
): Watched {
  const seen: Seen = new Map()
  const client = new GrpcClient(at.grpc, credentials.createInsecure())
  const stream = openStream(client, path, tokenMetadata(token))
  stream.call.removeAllListeners('data')
  stream.call.on('data', (bytes: Buffer) => take(bytes, seen))
  let isOver = false
  void stream.ended.then(({ code, details }) => isOver || report(`${name}: ended with ${code} ${details}`))
  stream.send(request)
  return {
    seen,
    isReady: stream.headers,
    [Symbol.dispose]() {
      isOver = true
      stream.call.cancel()
      client.close()
    },
  }
}

/** Raw shreds at a UDP port, with the blocks that can be rebuilt from them. */
export async function watchShreds(): Promise<Watched & { readonly port: number }> {
  const seen: Seen = new Map()
  const sink = await openSink()
  const first = Promise.withResolvers<void>()
  const listener = createListener({
    onBlock(slot, batches) {
      const found = batches.flatMap((bytes) => {
        const batch = decodeBatch(bytes)
        return batch.ok && batch.kind === 'entries' ? batch.entries.flatMap(({ transactions }) => transactions) : []
      })
      seen.set(
        slot,
        found.map(({ signatures }) => encodeBase58(signatures[0] as Uint8Array)),
      )
    },
  })
  sink.socket.removeAllListeners('message')
  sink.socket.on('message', (packet, from) => {
    const reply = listener.receive(packet, performance.now())
    if (reply !== undefined) sink.socket.send(reply, from.port, from.address)
    listener.lines()
    first.resolve()
  })
  return { seen, port: sink.port, isReady: first.promise, [Symbol.dispose]: () => sink[Symbol.dispose]() }
}

/** The default subscription of the execution stream: its numbers never decrease. */
export function watchExecution({ at }: ServedChain, report: Report): Disposable & { readonly frames: number } {
  const socket = new WebSocket(`ws://${at.execution}/`)
  let isOver = false
  let last: number | undefined
  let frames = 0
  socket.on('error', (error) => report(`execution: ${error.message}`))
  socket.on('close', (code) => void (isOver || report(`execution: closed with ${code}`)))
  socket.on('message', (data: Buffer) => {
    const { seq } = JSON.parse(data.toString()) as { seq: number }
    if (!(seq > 0)) return
    frames += 1
    if (last !== undefined && seq < last) report(`execution: number ${seq} after ${last}`)
    last = seq
  })
  return {
    get frames() {
      return frames
    },
    [Symbol.dispose]() {
      isOver = true
      socket.terminate()
    },
  }
}
