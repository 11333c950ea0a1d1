import { join } from 'node:path'
import type { Access } from '../../../access/call-access.ts'
import { proveDestination } from '../../../access/provisioning/destinations.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { offeredProducts } from '../../../contract/product-options.ts'
import type { Clock } from '../../../core/clock.ts'
import { ServiceError } from '../../../core/error.ts'
import { parseAddressPort } from '../../../platform/net/ip-range.ts'
import { ownAddresses } from '../../../platform/udp/socket.ts'
import type { FollowedLookupTables, TableNodes } from '../../../shreds/decoded/node-lookup-tables.ts'
import { type DestinationRules, refusalOf, refusalReason } from '../../../shreds/destinations/rules.ts'
import { parseListen } from '../../../shreds/options.ts'
import { type Shreds, startShreds } from '../../../shreds/service.ts'
import { createCallNode } from '../../../upstreams/call-node.ts'
import type { SlotLengthLearner } from '../../../upstreams/slot-length.ts'
import type { Upstream } from '../../../upstreams/upstream.ts'
import type { Config } from '../config/config.ts'
import { mergedNames } from '../config/merged-nodes.ts'
import { isUnconfigured } from '../config/served.ts'
import type { Settings } from '../config/settings.ts'
import type { ControlMethodsOf } from '../process/control-protocol.ts'
import { currentActor } from '../process/deps.ts'
import type { ProcessContext } from '../process/open-process.ts'
import type { DecodedPart } from './gateway-threads.ts'
import { createLeaderSchedule } from './leader-schedule.ts'

export type ShredsPartDeps = ProcessContext<never> & {
  readonly store: AccessStore
  readonly access: Access
  /** Learns from the nodes of the process where it has some. */
  readonly slotLength: SlotLengthLearner
  readonly hasNodes: boolean
  /** Whether ShredStream Decoded, where it is offered, runs in this process. */
  readonly mayDecode: boolean
}

/** ShredStream Raw with what it needs from nodes. They are opened after it: the embedded chain sends its shreds to it. */
export type ShredsPart = AsyncDisposable & {
  readonly shreds: Shreds
  /** Reads the leader schedule and lookup tables from these nodes, until it is closed. */
  follow(upstream: Upstream): Disposable
}

/** Identifies the shreds that pass among the sources from which the length of a slot is learned. */
const RELAY_AS_SLOT_SOURCE = {}

/** Delivery reports, in the state folder. */
export const REPORT_FILE = ['shreds', 'reports.db'] as const

/** ShredStream Raw as the `shreds` section of the configuration sets it up. */
export async function openShreds(settings: Settings, deps: ShredsPartDeps): Promise<ShredsPart> {
  const { config } = settings
  const { state, store, env, clock, random, slotLength, hasNodes, mayDecode } = deps
  await state.folder(REPORT_FILE[0])
  const leaders = createLeaderSchedule()
  const lookupTables = mayDecode && decodesShreds(config) ? await createLookupTables() : undefined
  const shreds = await startShreds(
    {
      ...config.shreds,
      destinations: { ...config.shreds.destinations, allowLoopback: isLoopbackAllowed(settings) },
      isDecoding: lookupTables !== undefined,
      isMerging: lookupTables !== undefined && mergesNodes(config),
    },
    {
      ...deps,
      leaders,
      lookupTables,
      slotLength: {
        ms: slotLength.ms,
        onChange: slotLength.onChange,
        observe: (slot) => (hasNodes ? undefined : slotLength.observe(RELAY_AS_SLOT_SOURCE, slot)),
      },
      reportFile: join(state.path, ...REPORT_FILE),
      challengeKey: await store.sharedKey('shred-challenge'),
      async prove(subscription, code) {
        const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
        await proveDestination(on, { subscription, code, by: 'echo' })
      },
    },
  )
  return {
    shreds,
    follow(upstream) {
      const log = deps.log.child({ part: 'shreds' })
      using following = new DisposableStack()
      following.use(leaders.follow(upstream, { clock, log }))
      if (lookupTables !== undefined)
        following.use(lookupTables.follow(tableNodesOf(upstream, clock), { ...deps, log }))
      return following.move()
    },
    [Symbol.asyncDispose]: () => shreds[Symbol.asyncDispose](),
  }
}

/** Loaded only where it is used: it brings the protocol of gRPC nodes. */
async function createLookupTables(): Promise<FollowedLookupTables> {
  const { createLookupTableSource } = await import('../../../shreds/decoded/node-lookup-tables.ts')
  return createLookupTableSource()
}

/** Whether ShredStream Decoded is offered and shreds are received. */
function decodesShreds({ shreds, products }: Config): boolean {
  return shreds.enabled && offeredProducts(products).has('shreds-decoded')
}

/** Whether the decoded streams of nodes are merged. */
export function mergesNodes(config: Config): boolean {
  return decodesShreds(config) && mergedNames(config.upstreams.nodes).length > 0
}

/** What the gateway threads need of ShredStream Decoded; undefined where it is off. */
export function decodedPartOf(shreds: Shreds | undefined): DecodedPart | undefined {
  if (shreds?.decoded === undefined) return undefined
  return { output: shreds.decoded.output, nodeStreams: shreds.decoded.nodeStreams, report: shreds.decodedReport }
}

/** Where the lookup tables of decoded transactions are read and followed. */
export function tableNodesOf(upstream: Upstream, clock: Clock): TableNodes {
  return {
    callNode: createCallNode(upstream, clock),
    async open(path) {
      if (!upstream.grpc.hasNodes) return undefined
      const opened = await upstream.grpc.open(path, {}, { isStream: true, isMovable: () => true })
      return opened.ok ? opened.stream : undefined
    },
  }
}

export function shredsMethods(shreds: Shreds | undefined): ControlMethodsOf<'shreds' | 'decoded'> {
  return { shreds: () => shreds?.status() ?? null, decoded: () => shreds?.decodedReport() ?? null }
}

/** Without a configuration Sluice runs as a trial on one machine, where destinations are on loopback. */
function isLoopbackAllowed({ config, loaded }: Pick<Settings, 'config' | 'loaded'>): boolean {
  return config.shreds.destinations.allowLoopback ?? isUnconfigured(loaded)
}

/** The rules of the service, for the command line to apply before it stores a destination. */
export function destinationRulesOf(settings: Pick<Settings, 'config' | 'loaded'>): DestinationRules {
  const { listen, destinations } = settings.config.shreds
  return {
    allowLoopback: isLoopbackAllowed(settings),
    allowPrivate: destinations.allowPrivate,
    ownAddresses: ownAddresses(),
    sourcePort: parseListen(listen).port,
  }
}

/** Throws for a destination that the service would refuse to send to. */
export function checkDestination(text: string, settings: Pick<Settings, 'config' | 'loaded'>): void {
  const address = parseAddressPort(text)
  const refusal = address && refusalOf(address, destinationRulesOf(settings))
  if (refusal === undefined) return
  throw new ServiceError('invalid-value', `the destination ${text} is not allowed: ${refusalReason(refusal)}`)
}
