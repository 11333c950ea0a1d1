import { formatAge, formatCompact } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Spark } from '../../../ui/spark.tsx'
import type { TopRow } from '../../model/top-board.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { Contract, Slot } from '../ui/hex.tsx'

const ROWS = 10

/** Part 5: the most accessed accounts and slots. */
export function TopTables() {
  const { model, version, nowMs } = useStore()
  void version.value
  const resetAtMs = model.tops.resetAtMs()
  return (
    <Panel
      id="tops"
      title="Most accessed"
      aside={
        <span class="legend">
          {resetAtMs === undefined
            ? 'counts reset every 5 min'
            : `counts reset ${formatAge(nowMs.value - resetAtMs)} ago`}
        </span>
      }
    >
      <div class="tops">
        <TopTable title="Accounts" rows={model.tops.accounts()} />
        <TopTable title="Slots" rows={model.tops.slots()} />
      </div>
    </Panel>
  )
}

function TopTable({ title, rows }: { title: string; rows: readonly TopRow[] }) {
  return (
    <table class="top-table" data-table={title}>
      <caption class="sr">{title} by accesses since the last reset</caption>
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" class="right">
            accesses
            <Explain id="topCount" />
          </th>
          <th scope="col" class="right" colSpan={2}>
            trend
            <Explain id="topTrend" />
          </th>
        </tr>
      </thead>
      <tbody>
        {Array.from({ length: ROWS }, (_, at) => {
          const row = rows[at]
          if (row === undefined) return <EmptyRow key={at} />
          return (
            <tr key={at}>
              <th scope="row">
                <span class="subject">
                  <Contract address={row.address} />
                  {row.slot !== undefined && <Slot slot={row.slot} />}
                </span>
              </th>
              <td class="right number">{formatCompact(row.count)}</td>
              <td class="right">
                <Spark values={row.steps} label="Accesses from report to report" width={42} height={14} />
              </td>
              <td class="right trend">
                <Trend gained={row.ranksGained} />
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function EmptyRow() {
  return (
    <tr class="empty" aria-hidden="true">
      <td>–</td>
      <td />
      <td />
      <td />
    </tr>
  )
}

function Trend({ gained }: { gained: number | undefined }) {
  if (gained === undefined) return <span class="trend-new">new</span>
  if (gained === 0)
    return (
      <span class="dim" role="img" aria-label="same rank">
        =
      </span>
    )
  return gained > 0 ? (
    <span class="trend-up" role="img" aria-label={`up ${gained}`}>
      ▲{gained}
    </span>
  ) : (
    <span class="trend-down" role="img" aria-label={`down ${-gained}`}>
      ▼{-gained}
    </span>
  )
}
