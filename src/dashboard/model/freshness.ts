/** The state in the status strip. */
export type LiveState = 'locked' | 'connecting' | 'live' | 'paused' | 'stale' | 'degraded' | 'resuming'

/** Data older than this is called stale; the service itself says degraded after ten seconds. */
export const STALE_MS = 5000
const DEGRADED_MS = 10_000

export type Freshness = {
  readonly paused: boolean
  /** The service asks for a token, which this page has not. */
  readonly locked: boolean
  readonly connection: 'connecting' | 'open' | 'waiting'
  readonly hadData: boolean
  readonly replaying: boolean
  readonly ageMs: number
  readonly serviceMessage: 'healthy' | 'degraded' | undefined
}

export function liveStateOf({
  paused,
  locked,
  connection,
  hadData,
  replaying,
  ageMs,
  serviceMessage,
}: Freshness): LiveState {
  if (locked) return 'locked'
  if (paused) return 'paused'
  if (connection !== 'open') return hadData || connection === 'waiting' ? 'resuming' : 'connecting'
  if (replaying) return 'resuming'
  if (ageMs > DEGRADED_MS || serviceMessage === 'degraded') return 'degraded'
  if (ageMs > STALE_MS) return 'stale'
  return hadData ? 'live' : 'connecting'
}

export const STATE_WORDS: Readonly<Record<LiveState, { label: string; hint: string }>> = {
  locked: {
    label: 'Token needed',
    hint: 'This service answers only those who bring a token. Yours stays in this tab and is sent in a header, never in an address.',
  },
  connecting: { label: 'Connecting', hint: 'Waiting for the first frame.' },
  live: { label: 'Live', hint: 'Frames arrive as blocks are executed.' },
  paused: { label: 'Paused', hint: 'The view stands still; frames are kept. Press Space to go on.' },
  stale: { label: 'Stale', hint: 'No frame for more than 5 seconds.' },
  degraded: {
    label: 'Degraded',
    hint: 'No event for more than 10 seconds: the node may be behind, or the network may have halted.',
  },
  resuming: { label: 'Resuming', hint: 'The connection is gone or just back; what was missed is being fetched.' },
}
