type SparkProps = {
  values: readonly number[]
  label: string
  width?: number
  height?: number
  min?: number
  max?: number
  tone?: string
}

/** A sparkline of the last values. */
export function Spark({ values, label, width = 60, height = 18, min, max, tone = 'line' }: SparkProps) {
  const low = min ?? Math.min(...values, 0)
  const high = max ?? Math.max(...values, low + 1)
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0
  const points = values.map((value, at) => {
    const y = height - 1.5 - ((value - low) / (high - low || 1)) * (height - 3)
    return `${(1 + at * step).toFixed(1)},${y.toFixed(1)}`
  })
  return (
    <svg
      class={`spark tone-${tone}`}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      {points.length > 1 && <polyline points={points.join(' ')} />}
    </svg>
  )
}
