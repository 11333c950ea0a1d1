import type { Clock } from '../core/clock.ts'
import { openGrpcSession } from '../platform/grpc/client.ts'
import { createMessageReader, frameMessage } from '../platform/grpc/framing.ts'
import { openWsClient } from '../platform/ws/client.ts'
import { GetVersionResponseSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/geyser/protobuf.ts'
import { createNode, type NodeDeps, type NodeSpec, type Server, type ServerKind, type UpstreamNode } from './node.ts'
import type { UpstreamsOptions } from './options.ts'

/** What one door of a node said when it was tried. */
export type ServerCheck = {
  readonly server: ServerKind
  readonly isGood: boolean
  readonly tookMs: number
  /** What it told, or what went wrong, in words without address and secret. */
  readonly message: string
}

export type NodeCheck = {
  readonly name: string
  readonly servers: readonly ServerCheck[]
  /** Undefined where the node could not be asked over JSON-RPC. */
  readonly version: string | undefined
  readonly genesis: string | undefined
  readonly slot: number | undefined
}

const DEADLINE_MS = 5000
const SHOWN_MAX = 120

/** Tries every door a node has the way the gateway uses it: a call, a subscription that tells a slot, a gRPC call. */
export async function checkNode(spec: NodeSpec, options: UpstreamsOptions, deps: NodeDeps): Promise<NodeCheck> {
  using node = createNode(spec, options, deps)
  const facts: Facts = { version: undefined, genesis: undefined, slot: undefined }
  const tries: Promise<ServerCheck>[] = []
  const time = (server: ServerKind, run: () => Promise<string>) => void tries.push(timed(server, run, deps.clock))
  if (node.http !== undefined) time('rpc', () => tryRpc(node, facts))
  const { ws, grpc } = node
  if (ws !== undefined) time('ws', () => tryWs(ws, deps))
  if (grpc !== undefined) time('grpc', () => tryGrpc(grpc, deps))
  return { name: spec.name, servers: await Promise.all(tries), ...facts }
}

/** What is wrong with nodes that are to stand in for each other; each sentence names the nodes. */
export function findPoolFaults(
  checks: readonly NodeCheck[],
  { lagSlotsMax }: { readonly lagSlotsMax: number },
): { readonly level: 'bad' | 'warn'; readonly message: string }[] {
  const faults: { level: 'bad' | 'warn'; message: string }[] = []
  const differing = (what: 'genesis' | 'version') => {
    const groups = Map.groupBy(
      checks.filter((check) => check[what] !== undefined),
      (check) => check[what],
    )
    if (groups.size < 2) return undefined
    return [...groups].map(([value, nodes]) => `${nodes.map(({ name }) => name).join(', ')}: ${value}`).join('; ')
  }
  const genesis = differing('genesis')
  if (genesis !== undefined) faults.push({ level: 'bad', message: `the nodes are on different chains (${genesis})` })
  const version = differing('version')
  if (version !== undefined) faults.push({ level: 'warn', message: `the nodes run different versions (${version})` })
  const best = checks.reduce((slot, check) => Math.max(slot, check.slot ?? 0), 0)
  for (const { name, slot } of checks) {
    if (slot !== undefined && genesis === undefined && best - slot > lagSlotsMax) {
      faults.push({ level: 'warn', message: `${name} is ${best - slot} slots behind the best` })
    }
  }
  return faults
}

type Facts = { version: string | undefined; genesis: string | undefined; slot: number | undefined }

/** The result of a door that works is its last word; one that does not throws what it says. */
class Failure extends Error {}

async function timed(server: ServerKind, run: () => Promise<string>, clock: Clock): Promise<ServerCheck> {
  const beganMs = clock.monotonicMs()
  const outcome = await run().then(
    (message) => ({ isGood: true, message }),
    (error: unknown) => {
      if (error instanceof Failure) return { isGood: false, message: error.message }
      throw error
    },
  )
  const message = outcome.message.length > SHOWN_MAX ? `${outcome.message.slice(0, SHOWN_MAX)}…` : outcome.message
  return { server, ...outcome, message, tookMs: Math.round(clock.monotonicMs() - beganMs) }
}

async function tryRpc(node: UpstreamNode, facts: Facts): Promise<string> {
  const version = (await ask(node, 'getVersion')) as { 'solana-core'?: unknown } | null
  facts.version = textOf(version?.['solana-core'])
  facts.genesis = textOf(await ask(node, 'getGenesisHash'))
  facts.slot = Number(await ask(node, 'getSlot'))
  return `version ${facts.version}, slot ${facts.slot}, genesis ${facts.genesis}`
}

function ask({ http }: UpstreamNode, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`)
    http?.call({ body, deadlineMs: DEADLINE_MS }, (outcome) => {
      if (outcome.kind !== 'reply') return reject(new Failure(outcome.message))
      outcome.rest?.abort()
      const { status } = outcome.head
      if (status !== 200) return reject(new Failure(`${method}: HTTP ${status}`))
      const response = parse(outcome.body.toString('utf8'))
      if (response?.result === undefined)
        return reject(new Failure(`${method}: ${response?.error?.message ?? 'no JSON'}`))
      resolve(response.result)
    })
  })
}

type Response = { result?: unknown; error?: { message?: string }; method?: string; params?: { result?: unknown } }

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'unknown'
}

function parse(text: string): Response | undefined {
  try {
    return JSON.parse(text) as Response
  } catch {
    return undefined
  }
}

async function tryWs({ address, headers }: Server, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openWsClient({ headers, ca, handshakeTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Failure(opening.loss.message)
  const { client } = opening
  try {
    return await within(clock, 'it took the subscription and told no slot in time', (done, fail) => {
      client.onClose(({ message }) => fail(message))
      client.onMessage((message) => {
        const response = parse(message.toString('utf8'))
        if (response?.error !== undefined) fail(`slotSubscribe: ${response.error.message ?? 'refused'}`)
        if (response?.method !== 'slotNotification') return
        done(`slot ${textOf((response.params?.result as { slot?: unknown } | undefined)?.slot)} told`)
      })
      client.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
    })
  } finally {
    client.close()
  }
}

async function tryGrpc({ address, headers }: Server, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openGrpcSession({ metadata: headers, ca, connectTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Failure(opening.loss.message)
  using session = opening.session
  return await within(clock, 'no answer in time', (done, fail) => {
    const stream = session.open('/geyser.Geyser/GetVersion', {})
    let version: string | undefined
    const reader = createMessageReader({ messageBytesMax: 64 * 1024 }, (message) => {
      version = decodeMessage(GetVersionResponseSchema, message)?.version
    })
    stream.onData((bytes) => void reader.push(bytes))
    stream.onEnd(({ status }) => {
      if (status.code !== 0) fail(`GetVersion: status ${status.code}, ${status.message ?? ''}`)
      else if (version === undefined) fail('GetVersion: the answer cannot be read')
      else done(`version ${versionOf(version)}`)
    })
    stream.write(frameMessage(new Uint8Array(0)))
    stream.halfClose()
  })
}

/** A node tells its version as JSON text; what is not that is shown as it is. */
function versionOf(text: string): string {
  const { version } = (parse(text) ?? {}) as { version?: { package?: unknown; version?: unknown } }
  return version === undefined ? text : `${textOf(version.package)} ${textOf(version.version)}`
}

function within(
  clock: Clock,
  tooLate: string,
  run: (done: (message: string) => void, fail: (message: string) => void) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (message: string) => {
      timer.cancel()
      reject(new Failure(message))
    }
    const timer = clock.setTimer(DEADLINE_MS, () => fail(tooLate))
    run((message) => {
      timer.cancel()
      resolve(message)
    }, fail)
  })
}
