import type { Json } from './json.ts'

/** The error of a method. Codes and messages are Agave's (`rpc-client-api/custom_error.rs`, jsonrpc-core). */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: Json | undefined

  constructor(code: number, message: string, data?: Json) {
    super(message)
    this.code = code
    this.data = data
  }
}

export const parseError = () => new RpcError(-32700, 'Parse error')
export const invalidRequest = (message = 'Invalid request') => new RpcError(-32600, message)
export const methodNotFound = () => new RpcError(-32601, 'Method not found')
export const invalidParams = (message: string, data?: Json) => new RpcError(-32602, message, data)
export const internalError = (message = 'Internal error') => new RpcError(-32603, message)

export const blockCleanedUp = (slot: Slot, firstAvailable: number) =>
  new RpcError(-32001, `Block ${slot} cleaned up, does not exist on node. First available block: ${firstAvailable}`)
export const preflightFailure = (sentence: string, simulation: Json) =>
  new RpcError(-32002, `Transaction simulation failed: ${sentence}`, simulation)
export const blockNotAvailable = (slot: Slot) => new RpcError(-32004, `Block not available for slot ${slot}`)
/** Returned while the engine is down or its queue is full. */
export const nodeUnhealthy = () => new RpcError(-32005, 'Node is unhealthy', { numSlotsBehind: null })
export const slotSkipped = (slot: Slot) =>
  new RpcError(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`)
export const noSnapshot = () => new RpcError(-32008, 'No snapshot')
export const unsupportedVersion = (version: number) =>
  new RpcError(
    -32015,
    `Transaction version (${version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`,
  )
export const minContextSlotNotReached = (contextSlot: number) =>
  new RpcError(-32016, 'Minimum context slot has not been reached', { contextSlot })

/** Slots in requests may exceed the safe integers. */
type Slot = number | bigint
