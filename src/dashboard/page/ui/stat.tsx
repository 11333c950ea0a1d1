import type { ComponentChildren } from 'preact'
import { EXPLANATIONS, type ExplanationId } from '../../model/explanations.ts'
import { Explain } from './explain.tsx'

type StatProps = {
  id: ExplanationId
  label: string
  value: string
  unit?: string
  tone?: string
  /** Minimum width in characters, so that neighbours do not move. */
  width?: number
  note?: ComponentChildren
}

/** A number with its name, its unit and its explanation. */
export function Stat({ id, label, value, unit, tone = 'plain', width = 4, note }: StatProps) {
  return (
    <div class={`stat tone-${tone}`} data-stat={id}>
      <span class="stat-label" title={EXPLANATIONS[id].short}>
        {label}
        <Explain id={id} />
      </span>
      <span class="stat-value" style={{ minWidth: `${width}ch` }}>
        <span class="number">{value}</span>
        {unit && <span class="unit">{unit}</span>}
      </span>
      {note && <span class="stat-note">{note}</span>}
    </div>
  )
}
