import { useSignal } from '@preact/signals'
import { formatAgo, formatCount, formatTime } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import type { IncidentKind, Severity } from '../../model/incident-log.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { BlockLink } from '../ui/hex.tsx'

const KINDS: readonly IncidentKind[] = ['gap', 'lag', 'rejection', 'connection']
const KIND_LABELS: Readonly<Record<IncidentKind, string>> = {
  gap: 'gaps',
  lag: 'late',
  rejection: 'rejected blocks',
  connection: 'connection',
}
const MARKS: Readonly<Record<Severity, string>> = { good: '✓', note: '·', warn: '!', bad: '✕' }

/** Part 7: incidents and recoveries. */
export function Incidents() {
  const { model, version, nowMs } = useStore()
  const hidden = useSignal<ReadonlySet<IncidentKind>>(new Set())
  void version.value
  const all = model.incidents.list()
  const listed = all.filter(({ kind }) => !hidden.value.has(kind))
  if (all.length === 0)
    return (
      <Panel
        id="incidents"
        title="Incidents"
        aside={
          <p class="legend">
            none
            <Explain id="incidents" />
          </p>
        }
      />
    )
  return (
    <Panel
      id="incidents"
      title="Incidents"
      aside={
        <>
          <div class="filters" role="group" aria-label="Kinds of incidents">
            {KINDS.map((kind) => (
              <button
                key={kind}
                type="button"
                aria-pressed={!hidden.value.has(kind)}
                onClick={() => {
                  const next = new Set(hidden.value)
                  if (!next.delete(kind)) next.add(kind)
                  hidden.value = next
                }}
              >
                {KIND_LABELS[kind]} <span class="number">{formatCount(model.incidents.count(kind))}</span>
              </button>
            ))}
          </div>
          <Explain id="incidents" />
        </>
      }
    >
      {/* Focusable, so that it scrolls by keyboard. */}
      <ol class="incidents" tabIndex={0} aria-label="Incidents, newest first">
        {listed.map(({ id, atMs, severity, text, block }) => (
          <li key={id} class={`severity-${severity}`}>
            <time class="number" dateTime={new Date(atMs).toISOString()}>
              {formatTime(atMs, nowMs.value)}
            </time>
            <span class="ago number">{formatAgo(nowMs.value - atMs)}</span>
            <span class="mark" aria-hidden="true">
              {MARKS[severity]}
            </span>
            <span class="incident-text">
              {text} {block !== undefined && <BlockLink number={block} />}
            </span>
          </li>
        ))}
        {listed.length === 0 && <li class="quiet">None of the selected kinds.</li>}
      </ol>
    </Panel>
  )
}
