import { once } from 'node:events'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { type Random, randomInt } from '../../src/core/random.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { openStream, PING, SUBSCRIBE, tokenMetadata, unary } from '../support/gateway/grpc.ts'

export type StormTarget = { readonly url: string; readonly ws: string; readonly grpc: string }

export type StormDeps = {
  readonly random: Random
  readonly token: () => string
  readonly isOver: () => boolean
  /** Errors that a killed gateway causes; the storm ignores them. */
  readonly outcomes: Map<string, number>
}

/** Calls in one batch. */
export const BATCH_MAX = 8

/** Methods of several costs; the last one is unknown. */
export const METHODS = ['getBalance', 'getAccountInfo', 'getMultipleAccounts', 'getTransaction', 'noSuchMethod']
let unique = 0
/** Equal subscriptions share one at the node; the storm needs each to be forwarded. */
const nextName = () => `${process.pid}-${(unique += 1)}`

export const callGetBalance = () => call('getBalance', 1)

const pick = <T>(random: Random, list: readonly T[]): T => list[randomInt(random, list.length)] as T
/** Each under a unique name, so that a call received twice is distinguished from two calls. */
const call = (method: string, id: number | undefined) =>
  `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${id}`},"method":"${method}","params":["${nextName()}"]}`

/** One caller: does one thing after another, each chosen by chance, until the storm is over. */
export async function runCaller(target: StormTarget, deps: StormDeps): Promise<void> {
  const { random, outcomes } = deps
  const things = [post, post, postBatch, postAndLeave, askTheFree, onWebSocket, onGrpc, ping]
  while (!deps.isOver()) {
    const thing = pick(random, things)
    const outcome = await thing(target, deps).catch(
      (error: NodeJS.ErrnoException) => `failed ${error.code ?? error.name}`,
    )
    outcomes.set(`${thing.name} ${outcome}`, (outcomes.get(`${thing.name} ${outcome}`) ?? 0) + 1)
  }
}

type Thing = (target: StormTarget, deps: StormDeps) => Promise<string>

const headersOf = (token: string) => ({ 'content-type': 'application/json', 'x-token': token })
/** A killed gateway must not block the storm. */
const within = () => AbortSignal.timeout(5000)

const post: Thing = async ({ url }, { random, token }) => {
  const body = call(pick(random, METHODS), 1)
  const response = await fetch(url, { method: 'POST', body, headers: headersOf(token()), signal: within() })
  await response.text()
  return String(response.status)
}

/** With notifications and invalid items among the calls. */
const postBatch: Thing = async ({ url }, { random, token }) => {
  const items = Array.from({ length: 1 + randomInt(random, BATCH_MAX) }, (_, id) => {
    const kind = randomInt(random, 6)
    return kind === 0 ? '5' : call(pick(random, METHODS), kind === 1 ? undefined : id)
  })
  const body = `[${items.join(',')}]`
  const response = await fetch(url, { method: 'POST', body, headers: headersOf(token()), signal: within() })
  await response.text()
  return String(response.status)
}

/** Closes the connection before the response. */
const postAndLeave: Thing = async ({ url }, { random, token }) => {
  const leaving = new AbortController()
  setTimeout(() => leaving.abort(), randomInt(random, 4))
  const body = call(pick(random, METHODS), 1)
  const response = await fetch(url, { method: 'POST', body, headers: headersOf(token()), signal: leaving.signal })
  await response.text()
  return String(response.status)
}

/** Requests that cost nothing and reach no node. */
const askTheFree: Thing = async ({ url }, { random, token }) => {
  const [method, path, headers] = pick(random, [
    ['OPTIONS', '/', {}],
    ['HEAD', '/', headersOf(token())],
    ['GET', '/v1/whoami', headersOf(token())],
    ['POST', '/nowhere', headersOf(token())],
    ['POST', '/', { ...headersOf(token()), 'x-api-key': 'another' }],
    ['POST', '/v1/ws-ticket', headersOf(token())],
  ] as const)
  const response = await fetch(url + path, {
    method,
    headers,
    ...(method === 'POST' ? { body: call('getBalance', 1) } : {}),
    signal: within(),
  })
  await response.arrayBuffer()
  return String(response.status)
}

/** Connects, sends calls and subscriptions, alone and in batches, and disconnects: with a close frame or without one, before or after the responses. */
const onWebSocket: Thing = async ({ ws }, { random, token }) => {
  const socket = new WebSocket(ws, { headers: { 'x-token': token() } })
  socket.on('error', () => {})
  const ended = once(socket, 'close')
  const isOpen = await Promise.race([once(socket, 'open').then(() => true), ended.then(() => false)])
  if (!isOpen) return 'refused'
  const wanted = 1 + randomInt(random, 5)
  let responded = 0
  const all = Promise.withResolvers<void>()
  socket.on('message', () => {
    responded += 1
    if (responded >= wanted) all.resolve()
  })
  for (let at = 0; at < wanted; at++) {
    const subscribe = `{"jsonrpc":"2.0","id":${at},"method":"logsSubscribe","params":[{"mentions":["${nextName()}"]}]}`
    socket.send(pick(random, [subscribe, call(pick(random, METHODS), at), `[${subscribe},${call('getBalance', 7)}]`]))
  }
  if (randomInt(random, 3) === 0) socket.terminate()
  await Promise.race([all.promise, ended])
  if (randomInt(random, 2) === 0) socket.terminate()
  else socket.close()
  await ended
  return responded >= wanted ? 'answered' : 'left'
}

/** A stream with some changes of its filters. */
const onGrpc: Thing = async ({ grpc }, { random, token }) => {
  const client = new Client(grpc, credentials.createInsecure())
  try {
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token()))
    const request = Buffer.from(encodeMessage(SubscribeRequestSchema, { slots: { [nextName()]: {} } }))
    const requests = randomInt(random, 4)
    for (let at = 0; at < requests; at++) stream.send(request)
    const enough = new Promise<void>((resolve) => {
      let echoes = 0
      stream.call.on('data', () => {
        echoes += 1
        if (echoes >= requests) resolve()
      })
      if (requests === 0) void stream.headers.then(() => resolve())
    })
    if (randomInt(random, 4) === 0) stream.call.cancel()
    const over = await Promise.race([enough.then(() => 'answered'), stream.ended.then(({ code }) => `ended ${code}`)])
    stream.call.cancel()
    await stream.ended
    return over
  } finally {
    client.close()
  }
}

const ping: Thing = async ({ grpc }, { token }) => {
  const client = new Client(grpc, credentials.createInsecure())
  try {
    const { error } = await unary(client, PING, Buffer.alloc(0), tokenMetadata(token()))
    return `ended ${error?.code ?? 0}`
  } finally {
    client.close()
  }
}
