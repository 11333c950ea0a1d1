import type { ExitCode } from './exit-codes.ts'

/**
 * Every error that Sluice itself returns: the code in each protocol, a sentence, and a fix.
 * Upstream errors pass through unchanged and are not listed. -32001 to -32021 are Solana's: used only where a node would return the same error.
 */
export type ErrorEntry = {
  readonly http?: number
  readonly jsonRpc?: number
  /** gRPC status number. */
  readonly grpc?: number
  /** WebSocket close code on an open connection. */
  readonly close?: number
  readonly exit?: ExitCode
  readonly sentence: string
  readonly fix: string
  readonly retryable: boolean
}
