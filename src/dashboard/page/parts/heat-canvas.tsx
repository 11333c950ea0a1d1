import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { colours, useColours } from '../../../ui/colours.ts'
import { formatCount, formatTime, NONE } from '../../../ui/format.ts'
import { shortHex, shortSlot } from '../../../ui/safe-text.ts'
import { useVisible } from '../../../ui/visible.ts'
import { HEAT_ROWS_MAX, type HeatStrip } from '../../model/heat-strip.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'

/** Fewer columns on a narrow page, so that a column has at least two pixels. */
const columnsOf = (width: number): number => (width < 560 ? 48 : 120)
/** Width of the labels, contract and slot, each with room for a shortened address. */
const LABEL_WIDTH = 172
const SLOT_AT = 90
const LABEL_GAP = 7
const GAP = 1

type Cell = { readonly row: number; readonly column: number }

/** Blocks × slots as a canvas. The newest block is at the right edge. */
export function HeatCanvas({ strip }: { strip: HeatStrip }) {
  const { labels, paused, model } = useStore()
  const canvas = useRef<HTMLCanvasElement>(null)
  const size = useSignal({ width: 0, height: 0 })
  const pointed = useSignal<Cell | undefined>(undefined)
  const colourVersion = useColours()
  const isVisible = useVisible(canvas)

  useEffect(() => {
    const element = canvas.current
    if (element === null) return
    const watch = new ResizeObserver(() => (size.value = { width: element.clientWidth, height: element.clientHeight }))
    watch.observe(element)
    return () => watch.disconnect()
  }, [])

  useEffect(() => {
    if (isVisible && canvas.current !== null && size.value.width > 0) paint(canvas.current, strip, labels.all.value)
  }, [isVisible, strip, size.value, colourVersion, labels.all.value, paused.value])

  const cellAt = (event: MouseEvent): Cell | undefined => {
    const { width, height } = size.value
    const column =
      Math.floor((event.offsetX - LABEL_WIDTH) / columnWidth(width)) - columnsOf(width) + strip.blocks.length
    const row = Math.floor(event.offsetY / (height / HEAT_ROWS_MAX))
    return column >= 0 && column < strip.blocks.length && strip.rows[row] !== undefined ? { row, column } : undefined
  }

  const cell = pointed.value
  const row = cell && strip.rows[cell.row]
  const block = cell && strip.blocks[cell.column]
  const first = strip.rows[0]
  const timeOf = (number: number | undefined): string => {
    const timeMs = number === undefined ? undefined : model.blocks.timeMs(number)
    return timeMs === undefined ? NONE : formatTime(timeMs)
  }
  return (
    <div class="heat">
      <canvas
        ref={canvas}
        role="img"
        aria-label={
          first === undefined
            ? 'No contended slot yet.'
            : `Heat of ${strip.rows.length} slots over ${strip.blocks.length} blocks. Hottest: slot ${shortSlot(first.slot)} of ${shortHex(first.address)}, ${first.txnsTotal} transactions.`
        }
        onMouseMove={(event) => (pointed.value = cellAt(event))}
        onMouseLeave={() => (pointed.value = undefined)}
        onClick={(event) => {
          const clicked = cellAt(event)
          const number = clicked && strip.blocks[clicked.column]
          if (number !== undefined) goTo({ view: 'block', number })
        }}
      />
      <p class="heat-foot">
        {row === undefined || cell === undefined ? (
          <span class="dim">
            {/* Under the first and the last column. */}
            <span class="heat-times">
              <span class="number">{timeOf(strip.blocks.at(-columnsOf(size.value.width)) ?? strip.blocks[0])}</span>
              <span>one column per block; click to open</span>
              <span class="number">{timeOf(strip.blocks.at(-1))}</span>
            </span>
          </span>
        ) : (
          <>
            block <b class="number">{block}</b> at <span class="number">{timeOf(block)}</span> ·{' '}
            {labels.all.value.get(row.address) ?? shortHex(row.address)} slot {shortSlot(row.slot)} ·{' '}
            <b class="number">{formatCount(strip.cells[cell.row * strip.blocks.length + cell.column])}</b> tx
          </>
        )}
      </p>
    </div>
  )
}

function columnWidth(width: number): number {
  return (width - LABEL_WIDTH) / columnsOf(width)
}

function paint(canvas: HTMLCanvasElement, strip: HeatStrip, labels: ReadonlyMap<string, string>): void {
  const { clientWidth: width, clientHeight: height } = canvas
  const scale = devicePixelRatio
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  const context = canvas.getContext('2d')
  if (context === null) return
  const { heat, dim } = colours()
  context.scale(scale, scale)
  const rowHeight = height / HEAT_ROWS_MAX
  const cellWidth = columnWidth(width)
  const columns = columnsOf(width)
  const before = columns - strip.blocks.length
  context.font = `${Math.min(11, rowHeight - 2)}px ui-monospace, monospace`
  context.textBaseline = 'middle'
  for (let row = 0; row < HEAT_ROWS_MAX; row++) {
    const y = row * rowHeight
    const named = strip.rows[row]
    if (named !== undefined) {
      context.fillStyle = dim
      // Truncated to the label width, because canvas text would overlap the cells.
      const name = labels.get(named.address) ?? shortHex(named.address)
      context.fillText(cutToWidth(context, name, SLOT_AT - LABEL_GAP), 0, y + rowHeight / 2)
      const slot = cutToWidth(context, shortSlot(named.slot), LABEL_WIDTH - SLOT_AT - LABEL_GAP)
      context.fillText(slot, SLOT_AT, y + rowHeight / 2)
    }
    for (let column = 0; column < columns; column++) {
      const count =
        named === undefined || column < before ? 0 : (strip.cells[row * strip.blocks.length + column - before] ?? 0)
      context.fillStyle = heat[stepOf(count, strip.max)] ?? dim
      context.fillRect(LABEL_WIDTH + column * cellWidth, y, Math.max(1, cellWidth - GAP), Math.max(1, rowHeight - GAP))
    }
  }
}

/** Truncated in the middle, because similar names differ at their end. */
function cutToWidth(context: CanvasRenderingContext2D, text: string, width: number): string {
  const characters = Array.from(text)
  let cut = text
  for (let kept = characters.length - 1; kept > 2 && context.measureText(cut).width > width; kept--) {
    const tail = Math.min(4, Math.floor(kept / 3))
    cut = `${characters.slice(0, kept - tail).join('')}…${characters.slice(-tail).join('')}`
  }
  return cut
}

/** Colour steps grow with the square root, so that small counts are distinguishable. */
function stepOf(count: number, max: number): number {
  if (count === 0 || max === 0) return 0
  return Math.max(1, Math.min(5, Math.ceil(Math.sqrt(count / max) * 5)))
}
