import type { Clock } from '../../core/clock.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { AGAVE_VERSION } from '../../solana/agave-version.ts'
import type { Account, Block, Chain, Commitment } from '../chain/model.ts'
import { minContextSlotNotReached } from './errors.ts'
import type { Json } from './json.ts'
import { createLeaderSchedules, type LeaderSchedules } from './methods/leader-schedules.ts'
import { createPrioritizationFees, type PrioritizationFees } from './methods/prioritization-fees.ts'
import type { ContextConfig } from './request-shapes.ts'

export type RpcDeps = {
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Logger
}

/** The node's addresses for getClusterNodes. Known once the servers are listening. */
export type NodeAddresses = { readonly rpc?: string | undefined; readonly pubsub?: string | undefined }

export type RpcContext = RpcDeps & {
  readonly addresses: NodeAddresses
  /** Caches the fees of recent blocks. */
  readonly prioritizationFees: PrioritizationFees
  /** Caches the schedules of epochs. */
  readonly leaderSchedules: LeaderSchedules
  /** Splits long work: the chain may share its event loop with the control plane of `sluice serve`. */
  readonly createSlices: () => TimeSlices
}

export function createRpcContext(deps: RpcDeps, addresses: NodeAddresses = {}): RpcContext {
  return {
    ...deps,
    addresses,
    prioritizationFees: createPrioritizationFees(),
    leaderSchedules: createLeaderSchedules(),
    createSlices: createTimeSlices,
  }
}

/** A JSON-RPC method: takes the raw text of its params, returns the result or throws RpcError. */
export type RpcMethod = (context: RpcContext, params: string | undefined) => Json | Promise<Json>
export type RpcMethods = Readonly<Record<string, RpcMethod>>

/** The chain at one commitment. All reads within one event loop iteration see the same slot. */
export type BankView = {
  readonly commitment: Commitment
  readonly slot: number
  readAccount(address: string): Account | null
}

export const DEFAULT_COMMITMENT: Commitment = 'finalized'

/** Throws -32016 where the chain has not reached `minContextSlot`. */
export function openBank(chain: Chain, config: ContextConfig = {}): BankView {
  const commitment = config.commitment ?? DEFAULT_COMMITMENT
  const slot = chain.slot(commitment)
  if (config.minContextSlot !== undefined && BigInt(slot) < config.minContextSlot) throw minContextSlotNotReached(slot)
  return { commitment, slot, readAccount: (address) => chain.account(address, commitment) }
}

/** The `{context, value}` of most responses. */
export function withContext(slot: number, value: Json): Json {
  return { context: { apiVersion: AGAVE_VERSION, slot }, value }
}

/** The height of the block at a commitment's slot; the ledger never evicts these blocks. */
export function blockHeightAt(chain: Chain, slot: number): number {
  return blockAt(chain, slot)?.height ?? slot
}

export function blockAt(chain: Chain, slot: number | bigint): Block | undefined {
  return typeof slot === 'number' || slot <= BigInt(Number.MAX_SAFE_INTEGER) ? chain.block(Number(slot)) : undefined
}
