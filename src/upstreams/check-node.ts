import type { Clock } from '../core/clock.ts'
import { openGrpcSession } from '../platform/grpc/client.ts'
import { createMessageReader, frameMessage } from '../platform/grpc/framing.ts'
import { openWsClient } from '../platform/ws/client.ts'
import { GetVersionResponseSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/geyser/protobuf.ts'
import { SLOT_MS_DEFAULT } from '../solana/slot-pace.ts'
import { createNode } from './create-node.ts'
import { lagLimitsOf } from './lag-limits.ts'
import type { Endpoint, EndpointKind, NodeDeps, NodeSpec, UpstreamNode } from './node.ts'
import type { HealthOptions, UpstreamsOptions } from './options.ts'
import { slotMsOfSamples } from './probes/probe.ts'

/** The result of checking one endpoint of a node. */
export type EndpointCheck = {
  readonly server: EndpointKind
  readonly isGood: boolean
  readonly tookMs: number
  /** What it returned, or why it failed; without address and secret. */
  readonly message: string
}

export type NodeCheck = {
  readonly name: string
  readonly servers: readonly EndpointCheck[]
  /** Undefined where JSON-RPC does not work. */
  readonly version: string | undefined
  readonly genesis: string | undefined
  readonly slot: number | undefined
  /** The length of a slot by the node's statistics; undefined where it has none. */
  readonly slotMs: number | undefined
}

const DEADLINE_MS = 5000
const SHOWN_MAX = 120

/** Checks every endpoint of a node in the way the gateway uses it: a call, a subscription with a slot notification, a gRPC call. */
export async function checkNode(spec: NodeSpec, options: UpstreamsOptions, deps: NodeDeps): Promise<NodeCheck> {
  using node = createNode(spec, options, deps)
  const facts: Facts = { version: undefined, genesis: undefined, slot: undefined, slotMs: undefined }
  const checks: Promise<EndpointCheck>[] = []
  const check = (server: EndpointKind, run: () => Promise<string>) => void checks.push(timed(server, run, deps.clock))
  if (node.http !== undefined) check('rpc', () => checkRpc(node, facts))
  const { ws, grpc } = node
  if (ws !== undefined) check('ws', () => checkWs(ws, deps))
  if (grpc !== undefined) check('grpc', () => checkGrpc(grpc, deps))
  return { name: spec.name, servers: await Promise.all(checks), ...facts }
}

/** Reasons why these nodes cannot replace each other; each names the nodes. */
export function findPoolFaults(
  checks: readonly NodeCheck[],
  health: HealthOptions,
): { readonly level: 'bad' | 'warn'; readonly message: string }[] {
  const faults: { level: 'bad' | 'warn'; message: string }[] = []
  const differing = (fact: 'genesis' | 'version') => {
    const groups = Map.groupBy(
      checks.filter((check) => check[fact] !== undefined),
      (check) => check[fact],
    )
    if (groups.size < 2) return undefined
    return [...groups].map(([value, nodes]) => `${nodes.map(({ name }) => name).join(', ')}: ${value}`).join('; ')
  }
  const genesis = differing('genesis')
  if (genesis !== undefined) faults.push({ level: 'bad', message: `the nodes are on different chains (${genesis})` })
  const version = differing('version')
  if (version !== undefined) faults.push({ level: 'warn', message: `the nodes run different versions (${version})` })
  const best = checks.reduce((slot, check) => Math.max(slot, check.slot ?? 0), 0)
  const { lagMsMax } = lagLimitsOf(health)
  const lengths = checks.flatMap(({ slotMs }) => slotMs ?? []).toSorted((a, b) => a - b)
  const slotMs = lengths[lengths.length >> 1] ?? SLOT_MS_DEFAULT
  for (const { name, slot } of checks) {
    if (slot !== undefined && genesis === undefined && (best - slot) * slotMs > lagMsMax) {
      faults.push({ level: 'warn', message: `${name} is ${best - slot} slots behind the best` })
    }
  }
  return faults
}

type Facts = {
  version: string | undefined
  genesis: string | undefined
  slot: number | undefined
  slotMs: number | undefined
}

/** Why an endpoint does not work. */
class Failure extends Error {}

async function timed(server: EndpointKind, run: () => Promise<string>, clock: Clock): Promise<EndpointCheck> {
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

async function checkRpc(node: UpstreamNode, facts: Facts): Promise<string> {
  const version = (await callNode(node, 'getVersion')) as { 'solana-core'?: unknown } | null
  facts.version = textOf(version?.['solana-core'])
  facts.genesis = textOf(await callNode(node, 'getGenesisHash'))
  facts.slot = Number(await callNode(node, 'getSlot'))
  facts.slotMs = slotMsOfSamples(await callNode(node, 'getRecentPerformanceSamples', [1]).catch(() => undefined))
  return `version ${facts.version}, slot ${facts.slot}, genesis ${facts.genesis}`
}

function callNode({ http }: UpstreamNode, method: string, params: readonly unknown[] = []): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...(params.length > 0 && { params }) }))
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

async function checkWs({ address, headers }: Endpoint, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openWsClient({ headers, ca, handshakeTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Failure(opening.loss.message)
  const { client } = opening
  try {
    return await within(clock, 'no slot notification in time', (done, fail) => {
      client.onClose(({ message }) => fail(message))
      client.onMessage((message) => {
        const response = parse(message.toString('utf8'))
        if (response?.error !== undefined) fail(`slotSubscribe: ${response.error.message ?? 'refused'}`)
        if (response?.method !== 'slotNotification') return
        done(`slot ${textOf((response.params?.result as { slot?: unknown } | undefined)?.slot)}`)
      })
      client.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
    })
  } finally {
    client.close()
  }
}

async function checkGrpc({ address, headers }: Endpoint, { clock, ca }: NodeDeps): Promise<string> {
  const opening = await openGrpcSession({ metadata: headers, ca, connectTimeoutMs: DEADLINE_MS }, { clock, address })
  if (!opening.ok) throw new Failure(opening.loss.message)
  using session = opening.session
  return await within(clock, 'no response in time', (done, fail) => {
    const stream = session.open('/geyser.Geyser/GetVersion', {})
    let version: string | undefined
    const reader = createMessageReader({ messageBytesMax: 64 * 1024 }, (message) => {
      version = decodeMessage(GetVersionResponseSchema, message)?.version
    })
    stream.onData((bytes) => void reader.push(bytes))
    stream.onEnd(({ status }) => {
      if (status.code !== 0) fail(`GetVersion: status ${status.code}, ${status.message ?? ''}`)
      else if (version === undefined) fail('GetVersion: the response cannot be decoded')
      else done(`version ${versionOf(version)}`)
    })
    stream.write(frameMessage(new Uint8Array(0)))
    stream.halfClose()
  })
}

/** Nodes give the version as JSON text; anything else is shown as it is. */
function versionOf(text: string): string {
  const { version } = (parse(text) ?? {}) as { version?: { package?: unknown; version?: unknown } }
  return version === undefined ? text : `${textOf(version.package)} ${textOf(version.version)}`
}

function within(
  clock: Clock,
  timeoutReason: string,
  run: (done: (message: string) => void, fail: (message: string) => void) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (message: string) => {
      timer.cancel()
      reject(new Failure(message))
    }
    const timer = clock.setTimer(DEADLINE_MS, () => fail(timeoutReason))
    run((message) => {
      timer.cancel()
      resolve(message)
    }, fail)
  })
}
