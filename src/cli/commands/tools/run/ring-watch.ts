import { type RingView, RingWatch, type WatchedBlock } from '../../../../execution/tools/watch.ts'
import { delay, systemClock } from '../../../../platform/process/clock.ts'
import type { CliContext } from '../../../define.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { alignColumns } from '../../../output/print.ts'
import { isScreen, terminalColumns } from '../../../output/terminal.ts'
import { fixed, shortHash } from './ring-text.ts'

const STEP_MS = 20
const DRAW_MS = 500
const SCREEN = {
  enter: '\u001b[?1049h\u001b[?25l',
  home: '\u001b[H',
  clearLine: '\u001b[K',
  clearRest: '\u001b[J',
  leave: '\u001b[?25h\u001b[?1049l',
}

export type WatchRequest = { readonly ring: string; readonly seconds: number | undefined; readonly isJson: boolean }

/** Follows a ring until the time is over or Ctrl-C: a live view on a terminal, lines elsewhere. */
export async function watchRing(context: CliContext, { ring, seconds, isJson }: WatchRequest): Promise<void> {
  const { process } = context
  const { stdout } = process
  const isDrawn = isScreen(process) && !isJson
  const report = (block: WatchedBlock, tps: number | null): void => {
    if (!isDrawn)
      stdout.write(`${isJson ? JSON.stringify({ tps, ...block }) : sanitizeForTerminal(describeBlock(block, tps))}\n`)
  }
  using watch = new RingWatch(ring, report)
  const endMs = systemClock.monotonicMs() + (seconds ?? Number.POSITIVE_INFINITY) * 1000
  let isStopped = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void (isStopped = true))
  let drawAtMs = 0
  let lastState = ''
  if (isDrawn) stdout.write(SCREEN.enter)
  try {
    while (!isStopped && systemClock.monotonicMs() < endMs) {
      const nowMs = systemClock.monotonicMs()
      watch.step(nowMs)
      if (nowMs >= drawAtMs) {
        drawAtMs = nowMs + DRAW_MS
        const view = watch.view(nowMs)
        if (isDrawn)
          stdout.write(draw(view, { columns: terminalColumns(stdout) ?? 80, rows: stdout.rows > 0 ? stdout.rows : 24 }))
        else if (view.state !== lastState) process.stderr.write(`${sanitizeForTerminal(`${ring}: ${view.state}`)}\n`)
        lastState = view.state
      }
      await delay(systemClock, STEP_MS)
    }
  } finally {
    if (isDrawn) stdout.write(SCREEN.leave)
  }
}

function describeBlock({ number, txns, stage, contention, reason }: WatchedBlock, tps: number | null): string {
  const figures =
    contention === undefined
      ? `no figures (${reason ?? 'open'})`
      : `efficiency ${fixed(contention.parallel_efficiency_pct, 1)} %, ${contention.contended_slot_count} slots contended`
  return `block ${number} ${stage}: TPS ${tps ?? '-'}, ${txns} transactions, ${figures}`
}

/** One frame, cut to the screen; each line ends with an erase sequence. */
function draw(view: RingView, { columns, rows }: { columns: number; rows: number }): string {
  const { stats, blocks, top } = view
  const newest = blocks.find(({ contention }) => contention !== undefined)?.contention
  const blockRows = Math.max(3, Math.min(blocks.length, rows - 22))
  const lines = [
    `${view.path}  ${view.state}`,
    `TPS ${view.tps ?? '-'}   events/s ${view.eventsPerSecond}   seqno ${view.cursor}   lag ${view.lagEvents}   lost ${stats.eventsLost} in ${stats.gaps} gaps   blocks ${stats.blocksFolded} complete, ${stats.blocksDropped + stats.blocksIncomplete} damaged`,
    '',
    ...table(
      ['BLOCK', 'ID', 'STAGE', 'TXNS', 'GAS', 'WALL MS', 'EFFICIENCY', 'CONTENDED', 'OF SLOTS'],
      blocks
        .slice(0, blockRows)
        .map(({ number, hash, stage, txns, gasUsed, contention, reason }) => [
          `${number}`,
          shortHash(hash),
          stage,
          `${txns}`,
          `${gasUsed ?? '-'}`,
          contention === undefined ? (reason ?? '-') : fixed(contention.block_wall_time_ns / 1e6, 2),
          contention === undefined ? '-' : `${fixed(contention.parallel_efficiency_pct, 1)} %`,
          `${contention?.contended_slot_count ?? '-'}`,
          `${contention?.total_unique_slots ?? '-'}`,
        ]),
    ),
    '',
    ...table(
      ['CONTENDED CONTRACTS', 'SLOTS', 'OF', 'ACCESSES', 'SCORE'],
      (newest?.top_contended_contracts ?? [])
        .slice(0, 6)
        .map((contract) => [
          contract.address,
          `${contract.contended_slots}`,
          `${contract.total_slots}`,
          `${contract.total_accesses}`,
          fixed(contract.contention_score, 3),
        ]),
    ),
    '',
    ...table(
      ['TOP ACCOUNTS', 'ACCESSES'],
      top.account.slice(0, 6).map(({ key, count }) => [key, `${count}`]),
    ),
  ]
  const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => sanitizeForTerminal(line).slice(0, columns))
  return SCREEN.home + shown.map((line) => `${line}${SCREEN.clearLine}\n`).join('') + SCREEN.clearRest
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return alignColumns([titles, ...rows])
    .trimEnd()
    .split('\n')
}
