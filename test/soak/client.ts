import type { SoakService } from './service.ts'

/** What all clients of a soak share: the service, randomness, the stop condition, and counters. */
export type SoakContext = {
  readonly service: SoakService
  readonly random: (below: number) => number
  readonly isOver: () => boolean
  /** Records the violation of an invariant. */
  reportViolation(what: string): void
  count(what: string, by?: number): void
}

export type Client = (context: SoakContext) => Promise<void>

/** The time between two actions of a client; nothing is waited for. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
