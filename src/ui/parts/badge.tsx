const TONES: Readonly<Record<string, string>> = {
  active: 'good',
  ok: 'good',
  open: 'good',
  sending: 'good',
  up: 'good',
  healthy: 'good',
  running: 'good',
  proven: 'good',
  vouched: 'good',
  verified: 'good',
  delivered: 'good',
  offered: 'good',
  preview: 'fair',
  loopback: 'fair',
  idle: 'none',
  suspended: 'fair',
  retiring: 'fair',
  expired: 'fair',
  unproven: 'fair',
  paused: 'fair',
  degraded: 'fair',
  drained: 'fair',
  draining: 'fair',
  behind: 'fair',
  starting: 'fair',
  waiting: 'fair',
  cancelled: 'none',
  removed: 'none',
  revoked: 'none',
  'customer-suspended': 'fair',
  closed: 'fair',
  'given-up': 'poor',
  down: 'poor',
  failing: 'poor',
  failed: 'poor',
  broken: 'poor',
  stopped: 'poor',
  unreachable: 'poor',
  'dead letter': 'poor',
}

/** A state in words, with a dot in its tone. */
export function Badge({ state }: { state: string }) {
  const tone = TONES[state] ?? 'none'
  return (
    <span class={`badge tone-${tone}`}>
      <span class="dot" aria-hidden="true" />
      {state}
    </span>
  )
}
