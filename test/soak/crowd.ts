import type { SoakService } from './service.ts'

/** What all clients of a soak share: whom they talk to, chance, when to stop, and where they write what they saw. */
export type Crowd = {
  readonly service: SoakService
  readonly random: (below: number) => number
  readonly isOver: () => boolean
  /** A promise was broken. */
  object(what: string): void
  count(what: string, by?: number): void
}

export type Client = (crowd: Crowd) => Promise<void>

/** Pacing of clients; they wait as customers do, not for anything. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
