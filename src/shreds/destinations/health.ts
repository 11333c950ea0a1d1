/** How many packets may be sent to a destination now. */
export type Allowance = 'all' | 'one' | 'none'

/** Pauses a destination that ICMP reports as refused or unreachable, and probes it with single packets. */
export type DestinationHealth = {
  allowance(nowMs: number): Allowance
  /** The single packet of a probe was sent. */
  probeSent(nowMs: number): void
  /** ICMP reported that nothing receives packets at the destination. */
  refused(nowMs: number): void
  state(): 'sending' | 'paused' | 'trying'
}

/** This many refusals within REFUSALS_MS pause the destination; a single one may come from a receiver that restarts. */
const REFUSALS = 3
const REFUSALS_MS = 10_000
/** The pause doubles from PAUSE_MS to PAUSE_MS_MAX. */
const PAUSE_MS = 1000
const PAUSE_MS_MAX = 30_000
/** How long a probe waits for a refusal: longer than any round trip on Earth. */
const PROBE_MS = 1000

export function createDestinationHealth(): DestinationHealth {
  let state: 'sending' | 'paused' | 'trying' = 'sending'
  let refusals: number[] = []
  let pauseMs = PAUSE_MS
  let untilMs = 0
  let sendingSinceMs = 0

  function pause(nowMs: number): void {
    state = 'paused'
    refusals = []
    untilMs = nowMs + pauseMs
    pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)
  }

  return {
    allowance(nowMs) {
      if (state === 'sending') return 'all'
      if (nowMs < untilMs) return 'none'
      if (state === 'paused') return 'one'
      state = 'sending'
      sendingSinceMs = nowMs
      return 'all'
    },
    probeSent(nowMs) {
      state = 'trying'
      untilMs = nowMs + PROBE_MS
    },
    refused(nowMs) {
      if (state === 'trying') return pause(nowMs)
      if (state === 'paused') return
      if (nowMs - sendingSinceMs > REFUSALS_MS && refusals.length === 0) pauseMs = PAUSE_MS
      refusals = [...refusals.filter((atMs) => nowMs - atMs < REFUSALS_MS), nowMs]
      if (refusals.length >= REFUSALS) pause(nowMs)
    },
    state: () => state,
  }
}
