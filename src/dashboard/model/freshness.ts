/** The state in the status strip. */
export type LiveState = 'locked' | 'connecting' | 'live' | 'paused' | 'stale' | 'degraded' | 'resuming'

/** Data older than this is late; the service itself reports `degraded` after ten seconds. */
export const STALE_MS = 5000
const DEGRADED_MS = 10_000

export type Freshness = {
  readonly paused: boolean
  /** The service requires a token that this page does not have. */
  readonly locked: boolean
  readonly connection: 'connecting' | 'open' | 'waiting'
  readonly hadData: boolean
  readonly replaying: boolean
  readonly ageMs: number
  readonly serviceStatus: 'healthy' | 'degraded' | undefined
}

export function liveStateOf({
  paused,
  locked,
  connection,
  hadData,
  replaying,
  ageMs,
  serviceStatus,
}: Freshness): LiveState {
  if (locked) return 'locked'
  if (paused) return 'paused'
  if (connection !== 'open') return hadData || connection === 'waiting' ? 'resuming' : 'connecting'
  if (replaying) return 'resuming'
  if (ageMs > DEGRADED_MS || serviceStatus === 'degraded') return 'degraded'
  if (ageMs > STALE_MS) return 'stale'
  return hadData ? 'live' : 'connecting'
}

export const STATE_TEXT: Readonly<Record<LiveState, { label: string; hint: string }>> = {
  locked: {
    label: 'Token required',
    hint: 'This service requires a token. It stays in this tab and is sent in a header, never in a URL.',
  },
  connecting: { label: 'Connecting', hint: 'Waiting for the first data.' },
  live: { label: 'Live', hint: 'New blocks appear as they are executed.' },
  paused: { label: 'Paused', hint: 'The page stands still and keeps what arrives. Press Space to continue.' },
  stale: { label: 'Late', hint: 'No new data for more than 5 seconds.' },
  degraded: {
    label: 'Very late',
    hint: 'No new data for more than 10 seconds: the node may be behind, or the chain may have stopped.',
  },
  resuming: { label: 'Reconnecting', hint: 'The connection was lost; what was missed is being fetched.' },
}
