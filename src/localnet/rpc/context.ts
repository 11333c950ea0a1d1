import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Account, Block, Chain, Commitment } from '../chain/model.ts'
import { minContextSlotNotReached } from './errors.ts'
import type { Json } from './json.ts'
import type { PrioritizationFees } from './methods/prioritization-fees.ts'
import type { ContextConfig } from './request-shapes.ts'

/** The Agave release whose behaviour is shown, that of the engine's own crates. */
export const API_VERSION = '4.2.1'

export type RpcDeps = {
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Logger
}

/** Where the node is reached, for getClusterNodes. Known once the doors are open. */
export type NodeAddresses = { readonly rpc?: string | undefined; readonly pubsub?: string | undefined }

export type RpcContext = RpcDeps & {
  readonly addresses: NodeAddresses
  /** Remembers what it has found in blocks. */
  readonly prioritizationFees: PrioritizationFees
}

/** A method of the API: gets the raw text of its params, gives the result or throws RpcError. */
export type RpcMethod = (context: RpcContext, params: string | undefined) => Json | Promise<Json>
export type RpcMethods = Readonly<Record<string, RpcMethod>>

/** The chain at one commitment. All reads within one turn of the event loop see the same slot. */
export type BankView = {
  readonly commitment: Commitment
  readonly slot: number
  readAccount(address: string): Account | null
}

export const DEFAULT_COMMITMENT: Commitment = 'finalized'

/** Throws -32016 where the chain has not reached the slot that the client has already seen. */
export function openBank(chain: Chain, config: ContextConfig = {}): BankView {
  const commitment = config.commitment ?? DEFAULT_COMMITMENT
  const slot = chain.slot(commitment)
  if (config.minContextSlot !== undefined && BigInt(slot) < config.minContextSlot) throw minContextSlotNotReached(slot)
  return { commitment, slot, readAccount: (address) => chain.account(address, commitment) }
}

/** The `{context, value}` of most answers. */
export function withContext(slot: number, value: Json): Json {
  return { context: { apiVersion: API_VERSION, slot }, value }
}

/** The block of a slot that the chain names as a commitment; the ledger never drops those. */
export function blockHeightAt(chain: Chain, slot: number): number {
  return blockAt(chain, slot)?.height ?? slot
}

export function blockAt(chain: Chain, slot: number | bigint): Block | undefined {
  return typeof slot === 'number' || slot <= BigInt(Number.MAX_SAFE_INTEGER) ? chain.block(Number(slot)) : undefined
}
