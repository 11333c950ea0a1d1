import { formatAge, formatCount, formatTime, NONE } from '../../../ui/format.ts'
import { liveStateOf, STALE_MS, STATE_TEXT } from '../../model/freshness.ts'
import { useStore } from '../store.ts'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { TokenForm } from '../ui/token-form.tsx'

/** Part 1: connection state and age of the data. */
export function StatusStrip() {
  const { model, version, nowMs, paused, heldBlocks, togglePause } = useStore()
  void version.value
  const facts = model.facts()
  const ageMs = facts.lastDataMs === undefined ? undefined : nowMs.value - facts.lastDataMs
  const state = liveStateOf({
    paused: paused.value,
    locked: facts.locked,
    connection: facts.connection,
    hadData: facts.lastDataMs !== undefined,
    replaying: facts.replaying,
    ageMs: ageMs ?? 0,
    serviceStatus: facts.status?.status,
  })
  const isLate = ageMs !== undefined && ageMs > STALE_MS
  const newest = model.blocks.newest()
  const timeMs = newest === undefined ? undefined : model.blocks.timeMs(newest)
  const { label, hint } = STATE_TEXT[state]
  const retryMs =
    facts.connection === 'waiting' && facts.retryAtMs !== undefined ? facts.retryAtMs - nowMs.value : undefined
  return (
    <section class="strip" aria-label="Status">
      <div class={`state state-${state}`} data-state={state} title={hint}>
        <span class="dot" aria-hidden="true" />
        <span role="status">{label}</span>
        {retryMs !== undefined && state !== 'locked' && <span class="retry">retry in {formatAge(retryMs)}</span>}
      </div>
      <button type="button" class="pause" aria-pressed={paused.value} onClick={togglePause} title="Space">
        {paused.value ? 'Resume' : 'Pause'}
        <kbd>Space</kbd>
      </button>
      {state === 'locked' && <TokenForm label={hint} />}
      {/* Over the page, not in the strip, so that pausing moves nothing. */}
      {paused.value && (
        <button type="button" class="chip" onClick={togglePause} data-held={heldBlocks.value}>
          <span class="number">{formatCount(heldBlocks.value)}</span> new blocks
        </button>
      )}
      <div class="strip-stats">
        <ExplainedStat id="block" label="block" value={formatBlock(newest)} width={8} />
        <ExplainedStat id="time" label="at" value={timeMs === undefined ? NONE : formatTime(timeMs)} width={8} />
        <ExplainedStat
          id="age"
          label={isLate ? 'late' : 'last data'}
          value={paused.value ? NONE : formatAge(ageMs)}
          width={5}
          tone={isLate ? 'poor' : 'plain'}
        />
        <ExplainedStat id="seq" label="position" value={formatBlock(facts.seq)} width={16} />
        <ExplainedStat
          id="gaps"
          label="gaps"
          value={formatCount(facts.gaps)}
          width={2}
          tone={facts.gaps > 0 ? 'fair' : 'plain'}
        />
        <ExplainedStat id="replayed" label="came late" value={formatCount(facts.replayed)} width={4} />
        <ExplainedStat id="clients" label="clients" value={formatCount(facts.status?.connected_clients)} width={2} />
        <ExplainedStat
          id="uptime"
          label="running"
          value={formatAge(secondsToMs(facts.status?.uptime_secs))}
          width={6}
        />
      </div>
    </section>
  )
}

/** Identifiers are shown without separators, as they are searched for. */
function formatBlock(value: number | undefined): string {
  return value === undefined ? NONE : String(value)
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000
}
