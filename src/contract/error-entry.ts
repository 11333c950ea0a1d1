import type { ExitCode } from './exit-codes.ts'

/**
 * Every error Sluice itself makes, once: what each protocol answers, the sentence a person reads, and what to do.
 * Errors of an upstream pass through untouched and are not here; -32001 to -32021 are Solana's.
 */
export type ErrorEntry = {
  readonly http?: number
  readonly jsonRpc?: number
  /** gRPC status number. */
  readonly grpc?: number
  /** WebSocket close code once the connection stands. */
  readonly close?: number
  readonly exit?: ExitCode
  readonly sentence: string
  readonly fix: string
  readonly retryable: boolean
}
