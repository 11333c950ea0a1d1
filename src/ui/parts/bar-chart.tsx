import { formatCompact } from '../format.ts'
import type { Bar } from '../model/usage.ts'

const HEIGHT = 120
/** The width of a bar in a chart of a few days. */
const BAR_WIDTH_MAX = 170
/** The day and the legend of a single bar. */
const WIDTH_MIN = 340

type BarChartProps = { bars: readonly Bar[]; label: string; unit: string; nameOf: (part: string) => string }

/** Stacked bars, one per day. The figures are in a table as well, for those who cannot see the bars. */
export function BarChart({ bars, label, unit, nameOf }: BarChartProps) {
  const totals = bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0))
  const high = Math.max(...totals, 1)
  const names = bars[0]?.parts.map(({ name }) => name) ?? []
  const first = bars[0]?.label ?? ''
  const last = bars.at(-1)?.label ?? ''
  return (
    <figure class="bar-chart" style={{ maxWidth: `${Math.max(WIDTH_MIN, bars.length * BAR_WIDTH_MAX)}px` }}>
      <div class="bars" role="img" aria-label={label}>
        <span class="bars-high number" aria-hidden="true">
          {formatCompact(Math.max(...totals, 0))} {unit}
        </span>
        {bars.map((bar, at) => (
          <span
            key={bar.label}
            class="bar-day"
            title={`${bar.label}: ${formatCompact(totals[at])} ${unit}${bar.parts
              .filter(({ value }) => value > 0)
              .map(({ name, value }) => `\n${nameOf(name)} ${formatCompact(value)}`)
              .join('')}`}
          >
            {bar.parts.map(({ name, value }) => (
              <i
                key={name}
                class={`series-${name}`}
                style={{ height: `${value === 0 ? 0 : Math.max(1, (value / high) * HEIGHT)}px` }}
              />
            ))}
          </span>
        ))}
      </div>
      <figcaption>
        <span class="number dim">{first}</span>
        <span class="bar-legend">
          {names.map((name) => (
            <span key={name} class="legend">
              <i class={`series-${name}`} />
              {nameOf(name)}
            </span>
          ))}
        </span>
        <span class="number dim">{last === first ? '' : last}</span>
      </figcaption>
    </figure>
  )
}
