import type { Clock } from '../core/clock.ts'
import { openGrpcSession } from '../platform/grpc/client.ts'
import { createMessageReader, frameMessage } from '../platform/grpc/framing.ts'
import { openWsClient } from '../platform/ws/client.ts'
import { GetVersionResponseSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/geyser/protobuf.ts'
import { createNode, type Door, type DoorKind, type NodeDeps, type NodeSpec, type UpstreamNode } from './node.ts'
import type { UpstreamsOptions } from './options.ts'

/** What one door of a node said when it was tried. */
export type DoorCheck = {
  readonly door: DoorKind
  readonly isGood: boolean
  readonly tookMs: number
  /** What it told, or what went wrong, in words without address and secret. */
  readonly says: string
}

export type NodeCheck = {
  readonly name: string
  readonly doors: readonly DoorCheck[]
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
  const tries: Promise<DoorCheck>[] = []
  const time = (door: DoorKind, run: () => Promise<string>) => void tries.push(timed(door, run, deps.clock))
  if (node.http !== undefined) time('rpc', () => tryRpc(node, facts))
  const { ws, grpc } = node
  if (ws !== undefined) time('ws', () => tryWs(ws, deps))
  if (grpc !== undefined) time('grpc', () => tryGrpc(grpc, deps))
  return { name: spec.name, doors: await Promise.all(tries), ...facts }
}

/** What is wrong with nodes that are to stand in for each other; each sentence names the nodes. */
export function findPoolFaults(
  checks: readonly NodeCheck[],
  { lagSlotsMax }: { readonly lagSlotsMax: number },
): { readonly level: 'bad' | 'warn'; readonly says: string }[] {
  const faults: { level: 'bad' | 'warn'; says: string }[] = []
  const differing = (what: 'genesis' | 'version') => {
    const groups = Map.groupBy(
      checks.filter((check) => check[what] !== undefined),
      (check) => check[what],
    )
    if (groups.size < 2) return undefined
    return [...groups].map(([value, nodes]) => `${nodes.map(({ name }) => name).join(', ')}: ${value}`).join('; ')
  }
  const genesis = differing('genesis')
  if (genesis !== undefined) faults.push({ level: 'bad', says: `the nodes are on different chains (${genesis})` })
  const version = differing('version')
  if (version !== undefined) faults.push({ level: 'warn', says: `the nodes run different versions (${version})` })
  const best = checks.reduce((slot, check) => Math.max(slot, check.slot ?? 0), 0)
  for (const { name, slot } of checks) {
    if (slot !== undefined && genesis === undefined && best - slot > lagSlotsMax) {
      faults.push({ level: 'warn', says: `${name} is ${best - slot} slots behind the best` })
    }
  }
  return faults
}

type Facts = { version: string | undefined; genesis: string | undefined; slot: number | undefined }

/** The result of a door that works is its last word; one that does not throws what it says. */
class Trouble extends Error {}

async function timed(door: DoorKind, run: () => Promise<string>, clock: Clock): Promise<DoorCheck> {
  const beganMs = clock.monotonicMs()
  const outcome = await run().then(
    (says) => ({ isGood: true, says }),
    (error: unknown) => {
      if (error instanceof Trouble) return { isGood: false, says: error.message }
      throw error
    },
  )
  const says = outcome.says.length > SHOWN_MAX ? `${outcome.says.slice(0, SHOWN_MAX)}…` : outcome.says
  return { door, ...outcome, says, tookMs: Math.round(clock.monotonicMs() - beganMs) }
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
      if (outcome.kind !== 'reply') return reject(new Trouble(outcome.says))
      outcome.rest?.abort()
      const { status } = outcome.head
      if (status !== 200) return reject(new Trouble(`${method}: HTTP ${status}`))
      const answer = parse(outcome.body.toString('utf8'))
      if (answer?.result === undefined) return reject(new Trouble(`${method}: ${answer?.error?.message ?? 'no JSON'}`))
      resolve(answer.result)
    })
  })
}

type Answer = { result?: unknown; error?: { message?: string }; method?: string; params?: { result?: unknown } }

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'unknown'
}

function parse(text: string): Answer | undefined {
  try {
    return JSON.parse(text) as Answer
  } catch {
    return undefined
  }
}

async function tryWs({ address, headers }: Door, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openWsClient({ headers, ca, handshakeTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Trouble(opening.loss.says)
  const { client } = opening
  try {
    return await within(clock, 'it took the subscription and told no slot in time', (done, fail) => {
      client.onClose(({ says }) => fail(says))
      client.onMessage((message) => {
        const answer = parse(message.toString('utf8'))
        if (answer?.error !== undefined) fail(`slotSubscribe: ${answer.error.message ?? 'refused'}`)
        if (answer?.method !== 'slotNotification') return
        done(`slot ${textOf((answer.params?.result as { slot?: unknown } | undefined)?.slot)} told`)
      })
      client.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
    })
  } finally {
    client.close()
  }
}

async function tryGrpc({ address, headers }: Door, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openGrpcSession({ metadata: headers, ca, connectTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Trouble(opening.loss.says)
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
  run: (done: (says: string) => void, fail: (says: string) => void) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (says: string) => {
      timer.cancel()
      reject(new Trouble(says))
    }
    const timer = clock.setTimer(DEADLINE_MS, () => fail(tooLate))
    run((says) => {
      timer.cancel()
      resolve(says)
    }, fail)
  })
}
