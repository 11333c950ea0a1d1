import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { ChartData } from './chart-data.ts'
import { colours, useColours } from './colours.ts'
import { formatClock, formatTime } from './format.ts'
import { useVisible } from './visible.ts'

/** Below this span the axis has seconds. */
const SECONDS_SPAN_S = 600

/** The value under the pointer. */
type Pointed = { readonly atMs: number; readonly value: number }
type LineChartProps = {
  read: () => ChartData
  /** The line is drawn again when this changes. */
  drawnFor: string | number
  /** The chart in words. */
  label: string
  format: (value: number) => string
  unit: string
}

/** Values over the time of day. */
export function LineChart({ read, drawnFor, label, format, unit }: LineChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot>(undefined)
  const pointed = useSignal<Pointed | undefined>(undefined)
  const colourVersion = useColours()
  const isVisible = useVisible(box)

  useEffect(() => {
    const parent = box.current
    if (parent === null) return
    const made = openChart(parent, pointed, format)
    chart.current = made
    const watch = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: parent.clientHeight }))
    watch.observe(parent)
    return () => {
      watch.disconnect()
      made.destroy()
    }
  }, [colourVersion])

  useEffect(() => {
    if (isVisible && chart.current !== undefined) show(chart.current, read())
  }, [isVisible, colourVersion, drawnFor])

  return (
    <div ref={box} class="line-chart" role="img" aria-label={label}>
      {pointed.value !== undefined && (
        <p class="pointed number">
          {formatTime(pointed.value.atMs)} <b>{format(pointed.value.value)}</b> {unit}
        </p>
      )}
    </div>
  )
}

function show(chart: uPlot, { times, values, fromS, untilS }: ChartData): void {
  chart.setData([times, values], false)
  const box = chart.root.parentElement
  // For tests: a canvas cannot be read.
  if (box !== null) box.dataset['points'] = String(values.filter((value) => value !== null).length)
  chart.setScale('x', { min: fromS, max: untilS })
}

function openChart(
  parent: HTMLElement,
  pointed: Signal<Pointed | undefined>,
  format: (value: number) => string,
): uPlot {
  const { line, fill, grid, dim } = colours()
  const axis = { stroke: dim, font: '11px ui-sans-serif, system-ui, sans-serif', ticks: { show: false } }
  const point = (made: uPlot): void => {
    const at = made.cursor.idx
    const atS = at == null ? undefined : made.data[0][at]
    const value = at == null ? undefined : made.data[1]?.[at]
    pointed.value = atS == null || value == null ? undefined : { atMs: atS * 1000, value }
  }
  const timeOfDay = (made: uPlot, ticks: readonly number[]): string[] => {
    const { min = 0, max = 0 } = made.scales['x'] ?? {}
    const isShort = (max ?? 0) - (min ?? 0) < SECONDS_SPAN_S
    return ticks.map((atS) => (isShort ? formatTime(atS * 1000) : formatClock(atS * 1000)))
  }
  return new uPlot(
    {
      width: parent.clientWidth,
      height: parent.clientHeight,
      legend: { show: false },
      padding: [8, 22, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_chart, _low, high) => [0, Math.max(10, (high ?? 0) * 1.15)] } },
      axes: [
        { ...axis, grid: { stroke: grid, width: 1 }, size: 24, space: 70, values: timeOfDay },
        {
          ...axis,
          grid: { stroke: grid, width: 1 },
          size: 48,
          space: 28,
          values: (_chart, ticks) => ticks.map((value) => format(value)),
        },
      ],
      series: [{}, { stroke: line, width: 1.5, fill, points: { show: false }, spanGaps: false }],
      hooks: { setCursor: [point] },
    },
    [[], []],
    parent,
  )
}
