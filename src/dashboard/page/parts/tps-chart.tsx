import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { formatCount, formatTime } from '../../model/format.ts'
import type { TpsRange } from '../../model/tps-series.ts'
import { useStore } from '../store.ts'
import { colours, useColours } from '../ui/colours.ts'
import { Panel } from '../ui/panel.tsx'
import { Stat } from '../ui/stat.tsx'
import { useVisible } from '../ui/visible.ts'

const SPAN_S: Readonly<Record<TpsRange, number>> = { '5m': 300, '1h': 3600 }
const REDRAW_MS = 500
const RANGE_LABELS: Readonly<Record<TpsRange, string>> = { '5m': '5 min', '1h': '1 h' }

/** Part 2: throughput over time. */
export function TpsChart() {
  const { model, version, nowMs } = useStore()
  const range = useSignal<TpsRange>('5m')
  const pointed = useSignal<Pointed | undefined>(undefined)
  void version.value
  const summary = model.tps.summary(range.value, nowMs.value)
  return (
    <Panel
      id="tps"
      title="Throughput"
      aside={
        <div class="switch" role="group" aria-label="Range of the chart">
          {(['5m', '1h'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={range.value === each} onClick={() => (range.value = each)}>
              {RANGE_LABELS[each]}
            </button>
          ))}
        </div>
      }
    >
      <div class="stats">
        <Stat id="tpsNow" label="now" value={formatCount(summary?.now)} unit="tx/s" width={6} tone="lead" />
        <Stat id="tpsAverage" label="average" value={formatCount(summary?.average)} width={6} />
        <Stat id="tpsPeak" label="peak" value={formatCount(summary?.peak)} width={6} />
        {pointed.value !== undefined && (
          <p class="pointed number">
            {formatTime(pointed.value.atMs)} <b>{formatCount(pointed.value.tps)}</b> tx/s
          </p>
        )}
      </div>
      <Line
        range={range.value}
        pointed={pointed}
        summary={
          summary === undefined
            ? 'No value yet.'
            : `Now ${summary.now}, average ${summary.average}, peak ${summary.peak} transactions per second over ${RANGE_LABELS[range.value]}.`
        }
      />
    </Panel>
  )
}

/** The value under the pointer. */
type Pointed = { readonly atMs: number; readonly tps: number }
type LineProps = { range: TpsRange; summary: string; pointed: Signal<Pointed | undefined> }

function Line({ range, summary, pointed }: LineProps) {
  const { model, nowMs } = useStore()
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot>(undefined)
  const colourVersion = useColours()
  const isVisible = useVisible(box)

  useEffect(() => {
    const parent = box.current
    if (parent === null) return
    const point = (made: uPlot): void => {
      const at = made.cursor.idx
      const atS = at == null ? undefined : made.data[0][at]
      const tps = at == null ? undefined : made.data[1]?.[at]
      pointed.value = atS == null || tps == null ? undefined : { atMs: atS * 1000, tps }
    }
    const made = new uPlot({ ...chartOptions(range, parent), hooks: { setCursor: [point] } }, [[], []], parent)
    chart.current = made
    const watch = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: parent.clientHeight }))
    watch.observe(parent)
    return () => {
      watch.disconnect()
      made.destroy()
    }
  }, [range, colourVersion])

  useEffect(() => {
    if (!isVisible || chart.current === undefined) return
    const { times, values } = model.tps.read(range, nowMs.value)
    const untilS = nowMs.value / 1000
    chart.current.setData([times, values], false)
    chart.current.setScale('x', { min: untilS - SPAN_S[range], max: untilS })
  }, [isVisible, range, colourVersion, Math.floor(nowMs.value / REDRAW_MS)])

  return <div ref={box} class="line-chart" role="img" aria-label={summary} />
}

function chartOptions(range: TpsRange, parent: HTMLElement): uPlot.Options {
  const { line, fill, grid, dim } = colours()
  const font = '11px ui-sans-serif, system-ui, sans-serif'
  const axis = { stroke: dim, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } }
  return {
    width: parent.clientWidth,
    height: parent.clientHeight,
    legend: { show: false },
    padding: [8, 22, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_chart, _low, high) => [0, Math.max(10, (high ?? 0) * 1.15)] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        values: (_chart, ticks) =>
          ticks.map((at) => new Date(at * 1000).toTimeString().slice(0, range === '5m' ? 8 : 5)),
      },
      { ...axis, size: 48, space: 28, values: (_chart, ticks) => ticks.map((value) => formatCount(value)) },
    ],
    series: [{}, { stroke: line, width: 1.5, fill, points: { show: false }, spanGaps: false }],
  }
}
