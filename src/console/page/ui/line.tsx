import { type LinePoint, linesOf } from '../../model/hour-series.ts'

const BOX = { width: 470, height: 90 }

type LineProps = {
  title: string
  /** Beside the title: the sum, or the last value. */
  figure: string
  points: readonly LinePoint[]
  format: (value: number) => string
  unit: string
  tone?: 'line' | 'fair'
}

/** Values over time; the last one is not complete. Each has its time and value as a tooltip. */
export function Line({ title, figure, points, format, unit, tone = 'line' }: LineProps) {
  const high = Math.max(0, ...points.map(({ value }) => value ?? 0))
  const [first, last] = [points[0]?.label ?? '', points.at(-1)?.label ?? '']
  const width = BOX.width / Math.max(1, points.length - 1)
  return (
    <figure class={`line tone-${tone}`}>
      <figcaption>
        <span>{title}</span> <b class="number">{figure}</b>
      </figcaption>
      <div class="line-box">
        <span class="line-high number" aria-hidden="true">
          {format(high)}
        </span>
        <svg
          viewBox={`0 -2 ${BOX.width} ${BOX.height + 4}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title} from ${first} to ${last}: ${figure} ${unit}, at most ${format(high)}.`}
        >
          {linesOf(points, BOX).map(({ pairs, isOpen }) => (
            <polyline key={pairs} class={isOpen ? 'line-open' : undefined} points={pairs} />
          ))}
          {points.map(({ label, value }, at) => (
            <rect key={label} x={(at - 0.5) * width} y={-2} width={width} height={BOX.height + 4}>
              <title>{value === null ? `${label}: not known yet` : `${label}: ${format(value)} ${unit}`}</title>
            </rect>
          ))}
        </svg>
      </div>
      <p class="line-ends number dim" aria-hidden="true">
        <span>{first}</span>
        <span>{last}</span>
      </p>
    </figure>
  )
}
