/** How much may be sent to a destination now. */
export type Allowance = 'all' | 'one' | 'none'

/** Whether anybody listens there: what the network answers decides how much is sent. */
export type DestinationHealth = {
  allowance(nowMs: number): Allowance
  /** The one packet of a trial has left. */
  tried(nowMs: number): void
  /** The network said that nobody takes packets there. */
  refused(nowMs: number): void
  state(): 'sending' | 'paused' | 'trying'
}

/** So many refusals within this time pause the destination: a single one may belong to a restart. */
const REFUSALS = 3
const REFUSALS_MS = 10_000
/** Pauses grow from the first to the last of these. */
const PAUSE_MS = 1000
const PAUSE_MS_MAX = 30_000
/** After the packet of a trial, the time in which a refusal would come back from anywhere on Earth. */
const TRIAL_MS = 1000

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
    tried(nowMs) {
      state = 'trying'
      untilMs = nowMs + TRIAL_MS
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
