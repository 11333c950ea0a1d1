import type { ComponentChildren } from 'preact'

type StatProps = {
  id: string
  label: string
  value: string
  unit?: string | undefined
  tone?: string | undefined
  /** Minimum width in characters, so that neighbours do not move. */
  width?: number | undefined
  note?: ComponentChildren
  /** The tooltip of the label. */
  title?: string
  /** Beside the label. */
  mark?: ComponentChildren
}

/** A number with its name and its unit. */
export function Stat({ id, label, value, unit, tone = 'plain', width = 4, note, title, mark }: StatProps) {
  return (
    <div class={`stat tone-${tone}`} data-stat={id}>
      <span class="stat-label" title={title}>
        {label}
        {mark}
      </span>
      <span class="stat-value" style={{ minWidth: `${width}ch` }}>
        <span class="number">{value}</span>
        {unit && <span class="unit">{unit}</span>}
      </span>
      {note && <span class="stat-note">{note}</span>}
    </div>
  )
}
