import { useSignal } from '@preact/signals'
import { formatCount, formatTime } from '../../model/format.ts'
import type { IncidentKind, Severity } from '../../model/incident-log.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { BlockLink } from '../ui/hex.tsx'
import { Panel } from '../ui/panel.tsx'

const KINDS: readonly IncidentKind[] = ['gap', 'lag', 'rejection', 'connection']
const KIND_LABELS: Readonly<Record<IncidentKind, string>> = {
  gap: 'gaps',
  lag: 'lag',
  rejection: 'rejections',
  connection: 'connection',
}
const MARKS: Readonly<Record<Severity, string>> = { good: '✓', note: '·', warn: '!', bad: '✕' }

/** Part 7: incidents and recoveries. */
export function Incidents() {
  const { model, version } = useStore()
  const hidden = useSignal<ReadonlySet<IncidentKind>>(new Set())
  void version.value
  const listed = model.incidents.list().filter(({ kind }) => !hidden.value.has(kind))
  return (
    <Panel id="incidents" title="Incidents" aside={<Explain id="incidents" />}>
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
      {/* Focusable, so that it scrolls by keyboard. */}
      <ol class="incidents" tabIndex={0} aria-label="Incidents, newest first">
        {listed.map(({ id, atMs, severity, text, block }) => (
          <li key={id} class={`severity-${severity}`}>
            <time class="number">{formatTime(atMs)}</time>
            <span class="mark" aria-hidden="true">
              {MARKS[severity]}
            </span>
            <span class="incident-text">
              {text} {block !== undefined && <BlockLink number={block} />}
            </span>
          </li>
        ))}
        {listed.length === 0 && <li class="quiet">No incidents.</li>}
      </ol>
    </Panel>
  )
}
